"""A cluster with nodes and pods, on which the overlay `ha` is installed: `make cluster`, or any other.

Decision: these tests run only where TARSY_CLUSTER names the cluster's kubeconfig, because bringing one up takes root
and minutes. The model is this process's, so that a test holds its answers back while pods come and go; pods reach it by
a Service without pods, at the address of this machine that TARSY_CLUSTER_HOST names (the one of `make cluster` when not
set; on kind the gateway of its Docker network).
"""

import asyncio
import contextlib
import json
import os
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from apis import find_kubectl
from tarsy.resources.meta import API_VERSION
from tarsy_dev.model import ScriptedModel
from tarsy_dev.model.script import parse_script

KUBECONFIG = os.environ.get("TARSY_CLUSTER", "")
HOST = os.environ.get("TARSY_CLUSTER_HOST", "198.18.0.1")
SYSTEM, LIBRARY = "tarsy-system", "tarsy-library"
SECONDS = 300.0
SCRIPT = """
agents:
  kubernetes-agent:
    - text: I look.
      gate: first
      calls: [{name: kubernetes.list_events, arguments: {namespace: tarsy-system}}]
    - text: Pods come and go.
      gate: second
  tenant-agent:
    - text: I look at both.
      calls:
        - {name: as-agent.list_resources, arguments: {kind: Pod, namespace: NAMESPACE}}
        - {name: as-agent.list_resources, arguments: {kind: Pod, namespace: tarsy-system}}
    - text: One I may not see.
  log-analyst: [{text: The logs say so too.}]
  change-analyst: [{text: They were told to.}]
  synthesis-agent: [{text: Somebody restarts them.}]
  executive-summary: [{text: All is well.}]
"""
CALLS = {("kubernetes-agent", 0), ("kubernetes-agent", 1), *((name, 0) for name in ("log-analyst", "change-analyst"))}
"""What the model is asked at least, each of it answered once: (agent, turn)."""
Complaint = str | list[str] | None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests of this folder where there is no cluster."""
    if KUBECONFIG:
        return
    reason = "needs a cluster that runs pods: make cluster, then TARSY_CLUSTER=<its kubeconfig>"
    for item in items:
        if item.nodeid.startswith("tests/cluster/"):
            item.add_marker(pytest.mark.skip(reason=reason))


class Cluster:
    """What people do with a cluster, by kubectl."""

    def kubectl(self, *arguments: str, stdin: str | None = None, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as the cluster's administrator."""
        program = find_kubectl()
        assert program is not None, "there is no kubectl on this machine"
        command = [program, "--kubeconfig", KUBECONFIG, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 or not ok, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def json(self, *arguments: str) -> Any:
        """What kubectl says as JSON."""
        return json.loads(self.kubectl(*arguments, "-o", "json").stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Applies objects; an API server of 1.20 does not validate by CRDs as kubectl asks it to."""
        self.kubectl("apply", "--validate=false", "-f", "-", stdin="\n".join(map(json.dumps, objects)))

    def pods(self, name: str) -> dict[str, bool]:
        """Pods of a Deployment that were not told to end, and whether each is ready."""
        found = self.json("get", "pods", "-n", SYSTEM, "-l", f"app.kubernetes.io/name={name}")["items"]
        return {
            pod["metadata"]["name"]: {"type": "Ready", "status": "True"}.items()
            <= next((c for c in pod["status"].get("conditions", ()) if c["type"] == "Ready"), {}).items()
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }

    def evict(self, pod: str) -> str:
        """Asks as `kubectl drain` does; empty when it was granted, else the reason."""
        version = self.json("version")["serverVersion"]
        api = "policy/v1beta1" if (version["major"], int(version["minor"].rstrip("+"))) < ("1", 22) else "policy/v1"
        body = {"apiVersion": api, "kind": "Eviction", "metadata": {"name": pod, "namespace": SYSTEM}}
        path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod}/eviction"
        done = self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body), ok=False)
        return "" if done.returncode == 0 else done.stderr


async def wait_until(what: str, look: Callable[[], Complaint]) -> None:
    """Waits until `look` has nothing to complain about any more."""
    deadline = time.monotonic() + SECONDS
    while complaint := await asyncio.to_thread(look):
        assert time.monotonic() < deadline, f"not within {SECONDS:g} s: {what}: {complaint}"
        await asyncio.sleep(0.5)


@pytest.fixture
async def cluster() -> Cluster:
    """The cluster, with all pods of TARSY ready and nothing that a test before has left to do."""
    cluster = Cluster()

    def unready() -> Complaint:
        names = ("tarsy-operator", "tarsy-worker")
        return [f"{name}: {pods}" for name in names if len(pods := cluster.pods(name)) != 2 or not all(pods.values())]

    await wait_until("two operators and two workers are ready", unready)
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@contextlib.asynccontextmanager
async def _forwarded(port: int) -> AsyncIterator[int]:
    """A port at HOST behind which is one of this machine's own."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(reader, back))
            group.create_task(pass_on(there, writer))

    async with await asyncio.start_server(connected, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def model(cluster: Cluster, namespace: str) -> AsyncIterator[ScriptedModel]:
    """The library's model, whose gates are closed; see SCRIPT."""
    async with ScriptedModel(parse_script(SCRIPT.replace("NAMESPACE", namespace))) as model:
        local = int(model.base_url.removesuffix("/v1").rpartition(":")[2])
        async with _forwarded(local) as port:
            where = {"name": "model", "namespace": LIBRARY}
            ports = [{"name": "http", "port": 8000}]
            cluster.apply(
                {"apiVersion": "v1", "kind": "Service", "metadata": where, "spec": {"ports": ports}},
                {
                    "apiVersion": "v1",
                    "kind": "Endpoints",
                    "metadata": where,
                    "subsets": [{"addresses": [{"ip": HOST}], "ports": [{"name": "http", "port": port}]}],
                },
                {
                    "apiVersion": API_VERSION,
                    "kind": "LLMProvider",
                    "metadata": {"name": "default", "namespace": LIBRARY},
                    "spec": {
                        "type": "openai",
                        "model": "scripted",
                        "baseURL": f"http://model.{LIBRARY}.svc:8000/v1",
                        "allowedNamespaces": {"from": "All"},
                    },
                },
            )
            await asyncio.to_thread(
                cluster.kubectl, "wait", "-n", LIBRARY, "--for=condition=Ready", "--timeout=120s", "tarsy", "--all"
            )
            yield model
