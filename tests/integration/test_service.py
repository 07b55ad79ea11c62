"""Probes the health endpoints of a long-running process."""

import aiohttp

from apis import LocalApi
from tarsy.app.lifecycle import Shutdown
from tarsy.app.process import connected
from tarsy.app.settings.processes import ProcessSettings
from tarsy.app.settings.serving_topics import ObservabilitySettings
from tarsy.app.settings.work_topics import DatabaseSettings, KubernetesSettings
from tarsy_dev.apiserver.process import free_port


async def test_a_process_is_ready_once_it_works_and_is_not_while_it_drains(
    database_url: str, kube_api: LocalApi
) -> None:
    shutdown, port = Shutdown(), free_port()
    settings = ProcessSettings(
        database=DatabaseSettings(url=database_url),
        kubernetes=KubernetesSettings(kubeconfig=str(kube_api.kubeconfig)),
        observability=ObservabilitySettings(health_port=port),
    )
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def told(path: str) -> tuple[int, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text()

        async with connected(settings, shutdown, "tarsy test") as world:
            assert await told("/readyz") == (503, "starting")
            world.readiness.start()
            assert await told("/readyz") == (200, "ready")
            missing: list[str] = ["alerts are not watched"]
            world.readiness.depend_on(lambda: missing[0] if missing else None)
            assert await told("/readyz") == (503, "alerts are not watched")
            missing.clear()
            assert await told("/readyz") == (200, "ready")
            shutdown.signal()
            assert await told("/readyz") == (503, "stopping")
            assert await told("/healthz") == (200, "ok"), "or it would be restarted while it drains"
