"""What Git says and what the operator does, side by side: applied in the worst order, all is Ready and as in Git."""

import asyncio
import contextlib
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from apis import ApiKind, new_api
from integration.manifests.cluster import Cluster, in_order
from integration.manifests.conftest import account, documents
from tarsy.resources.meta import API_VERSION
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.model import ScriptedModel, demo_script
from tarsy_dev.operator_process import OperatorProcess
from tarsy_dev.postgres import LocalPostgres

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.once("takes minutes; test_overlays is shown on both"),
    pytest.mark.heavy("an operator that starts again and again until all is there"),
]

SECONDS = 180.0


async def wait_until(what: str, look: Callable[[], Any]) -> None:
    """Waits until `look` has nothing to complain about any more."""
    deadline = time.monotonic() + SECONDS
    while complaint := await asyncio.to_thread(look):
        assert time.monotonic() < deadline, f"not within {SECONDS:g} s: {what}: {complaint}"
        await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def deployed(
    cluster: Cluster, deployment: dict[str, Any], config: Path, database: str, log: Path
) -> AsyncIterator[list[str]]:
    """The operator with the arguments of its Deployment and the rights of its account, started again when it ends.

    Gives the URLs that its probes ask.
    """
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    health = free_port()
    command, *options = (re.sub("^--config=.*", f"--config={config}", argument) for argument in container["args"])
    identity = account(cluster.api, "tarsy-system", "tarsy-operator")
    here = ["--kubeconfig", str(identity), "--http-host=127.0.0.1", f"--health-port={health}", "--drain-seconds=0"]
    free = [f"--{port}-port=0" for port in ("http", "record", "admission", "metrics")]
    process = OperatorProcess([*options, *here, *free], {"TARSY_DATABASE_URL": database}, log, command=command)
    kubelet = asyncio.create_task(process.keep_running())
    probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert {probe["port"] for probe in probes} == {"health"}
    try:
        yield [f"http://127.0.0.1:{health}{probe['path']}" for probe in probes]
    finally:
        kubelet.cancel()
        await asyncio.wait([kubelet])
        await process.stop()


# Older servers drop the condition of the webhook of promotions, and send all Chains to it before the operator runs.
@pytest.mark.newer_api
async def test_applied_in_the_worst_order_all_is_ready_at_the_end_and_as_in_git(
    api_kind: ApiKind, tmp_path: Path
) -> None:
    model = ScriptedModel(demo_script())
    provider = {
        "apiVersion": API_VERSION,
        "kind": "LLMProvider",
        "metadata": {"name": "default", "namespace": "tarsy-library"},
        "spec": {"type": "openai", "model": "scripted-demo", "baseURL": await model.start()},
    }
    with LocalPostgres(fsync=False, environ={}) as postgres, new_api(api_kind) as api:
        cluster = Cluster(api, tmp_path)
        product = [obj for name in ("overlays/ha", "library") for obj in documents(cluster.render(name))]
        (deployment,) = (
            obj for obj in product if obj["metadata"]["name"] == "tarsy-operator" and "replicas" in obj.get("spec", {})
        )
        (settings,) = (obj for obj in product if obj["metadata"]["name"] == "tarsy-config")
        (tmp_path / "config.yaml").write_text(settings["data"]["config.yaml"])
        git = [*product, provider]
        text = in_order(git)
        log = tmp_path / "operator.log"
        # Before anything is there: neither kinds, nor rights.
        async with deployed(cluster, deployment, tmp_path / "config.yaml", postgres.dsn, log) as probes:
            try:
                # Objects before their kinds and their namespaces.
                await asyncio.to_thread(cluster.apply_until_there, git[::-1])
                await wait_until("all is Ready", lambda: cluster.not_ready(git))
                await wait_until("certificates are believed", lambda: certificates_missing(cluster))
                await wait_until("the probes say yes", lambda: [url for url in probes if not says_yes(url)])
                assert await asyncio.to_thread(cluster.diff, text) == (0, "")
                once = await asyncio.to_thread(cluster.applied, text)
                assert await asyncio.to_thread(cluster.applied, text) == once
                assert not certificates_missing(cluster)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{log.read_text()[-4000:]}") from None
    await model.stop()


def says_yes(url: str) -> bool:
    """What the kubelet makes of a probe's answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return 200 <= answer.status < 400
    except OSError:
        return False


def certificates_missing(cluster: Cluster) -> list[str]:
    """Of whom the API server does not know yet whom to believe: that is written by the operator, and not in Git."""
    paths = {
        "apiservice/v1alpha1.record.tarsy.dev": "{.spec.caBundle}",
        "mutatingwebhookconfiguration/tarsy-admission": "{.webhooks[0].clientConfig.caBundle}",
    }
    return [name for name, path in paths.items() if not cluster.kubectl("get", name, "-o", f"jsonpath={path}").stdout]
