"""What the history of objects costs: its start over 10,000 objects, and a storm of 1,000 changes a second.

The recorder is a process of its own (`history_child.py`), so that its memory and the pauses of its event loop are
measured without the Kubernetes API, which is the embedded one.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, Result

from tarsy.evidence.history.kinds import HISTORY_LABEL
from tarsy.kube.client import KubeClient
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy_dev.stack import running_stack

CHILD = Path(__file__).with_name("history_child.py")
NAMESPACE = "history"
RATE = 1000
CHILD_SECONDS = 600.0
_AT_ONCE = 16


async def run(quick: bool) -> Result:
    """Starts the recorder over the objects of a namespace, and hands it a storm."""
    objects, seconds = (200, 1) if quick else (10_000, 10)
    async with running_stack(api="embedded") as stack:
        pool = await open_pool(stack.database_url, min_size=1, max_size=2, application="tarsy bench")
        try:
            await migrate(pool)
        finally:
            await pool.close()
        await _fill(stack.client, objects)
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(CHILD), str(stack.kubeconfig), stack.database_url, NAMESPACE, str(seconds), str(RATE),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            out, _ = await asyncio.wait_for(child.communicate(), CHILD_SECONDS)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
    start, storm = (json.loads(line) for line in out.splitlines())
    return Result(
        f"{objects:,} objects in one namespace (40 % ConfigMaps, 40 % Pods that restarted, 10 % Deployments, 10 % "
        f"Services), of which nothing is recorded yet; then {RATE:,} changes a second for {seconds} s",
        [
            Figure("start: until all kinds are watched", start["seconds"], "s", "15"),
            Figure("start: CPU", start["cpu"], "s"),
            Figure("start: memory above that of the process", start["mebibytes"], "MiB", "150"),
            Figure("start: CPU of the event loop at a time, longest", start["busy_longest"], "ms", "5"),
            Figure("start: CPU of the event loop at a time, p99", start["busy_p99"], "ms"),
            Figure("start: delay of the event loop, p99", start["pause_p99"], "ms"),
            Figure("storm: changes given", storm["given"], ""),
            Figure("storm: changes recorded meanwhile", storm["recorded"], "", detail=storm["shed"]),
            *(Figure(f"storm: shed, {kind}", number, "") for kind, number in storm["shed"].items()),
            Figure("storm: CPU of the event loop at a time, longest", storm["busy_longest"], "ms", "5"),
            Figure("storm: CPU of the event loop at a time, p99", storm["busy_p99"], "ms"),
            Figure("storm: delay of the event loop, p99", storm["pause_p99"], "ms"),
        ],
    )


async def _fill(client: KubeClient, number: int) -> None:
    """Creates the namespace and its objects."""
    meta = {"name": NAMESPACE, "labels": {HISTORY_LABEL: "keys"}}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    places = asyncio.Semaphore(_AT_ONCE)

    async def make(index: int) -> None:
        async with places:
            await client.create(_object(index))

    async with asyncio.TaskGroup() as group:
        for index in range(number):
            group.create_task(make(index))


def _object(index: int) -> dict[str, Any]:
    name = f"object-{index:05d}"
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": name, "team": "payments"}}
    app = {
        "name": "app",
        "image": f"registry.example.com/payments/{name}:1.4.{index}",
        "env": [{"name": f"SETTING_{key}", "value": f"value-{key}"} for key in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
    }
    match index % 10:
        case 0:
            template = {"metadata": {"labels": meta["labels"]}, "spec": {"containers": [app]}}
            spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        case 1:
            spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
            return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        case 2 | 3 | 4 | 5:
            ended = {"finishedAt": "2026-01-01T00:00:00Z", "exitCode": 137, "reason": "OOMKilled"}
            state = {"name": "app", "restartCount": 3, "lastState": {"terminated": ended}}
            status = {"phase": "Running", "containerStatuses": [state]}
            return {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta,
                "spec": {"containers": [app]},
                "status": status,
            }
    data = {
        "application.yaml": "".join(f"setting-{line}: value-{index}-{line}\n" for line in range(60)),
        "LEVEL": "info",
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
