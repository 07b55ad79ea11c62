"""Tests MCPServers that the operator runs itself (`spec.run`): their objects and how workers reach them.

There is no kubelet here: a test says what one would in a Deployment's status, and serves the tool where the Service is.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

import rights
from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.mcp.gateway import gateway
from tarsy.controllers.machinery import active
from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.relist import learn
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import LABEL, Secrets
from tarsy.kube.values import Values
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import ServerPlan
from tarsy.plan.workload import workload_name
from tarsy.record.messages import ToolOutcome
from tarsy.resources.v1alpha1 import MCPServer
from tarsy.runtime.workloads import RunToolboxes
from tarsy.store.runs.claims import ClaimedRun
from tarsy.store.runs.workloads import Workloads
from tarsy_dev.objects import documents

KINDS = ("Deployment", "Service", "Secret", "NetworkPolicy")
RUN: dict[str, Any] = {"image": "tools:1", "command": ["tool-server", "--quiet"], "env": [{"name": "A", "value": "b"}]}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.tool_workloads.shared.NOT_READY_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.tool_workloads.shared.SETTLED_SECONDS", 0.5)
    monkeypatch.setattr("tarsy.controllers.tool_workloads.per_run.LOOK_SECONDS", 0.5)


def spec(**run: Any) -> dict[str, Any]:
    return {"transport": {"type": "stdio"}, "run": {**RUN, **run}, "toolPolicy": "All"}


async def there(desk: Desk, *kinds: str, name: str = "mcp-tools") -> dict[str, dict[str, Any]]:
    """The workload's objects, once all of them are there."""

    async def look() -> dict[str, dict[str, Any]] | None:
        found = {kind: await desk.kube.find(kind, desk.namespace, name) for kind in kinds}
        assert all(found.values()), f"missing: {[kind for kind, obj in found.items() if obj is None]}"
        return {kind: obj for kind, obj in found.items() if obj is not None}

    return await eventually(look) or {}


async def gone(desk: Desk, *kinds: str, name: str = "mcp-tools") -> None:
    async def look() -> bool:
        return all([await desk.kube.find(kind, desk.namespace, name) is None for kind in kinds])

    await eventually(look)


async def ready(desk: Desk) -> None:
    """What a kubelet and the Deployment's controller would say."""
    generation = (await desk.get("Deployment", "mcp-tools"))["metadata"]["generation"]
    status = {"observedGeneration": generation, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    await desk.kube.patch("Deployment", desk.namespace, "mcp-tools", {"status": status}, subresource="status")


def token_of(secret: dict[str, Any]) -> str:
    return base64.b64decode(secret["data"]["token"]).decode()


async def test_a_workload_loses_its_user_where_the_cluster_assigns_one(desk: Desk, tmp_path: Path) -> None:
    async def users() -> dict[str, Any]:
        found = await desk.kube.find("Deployment", desk.namespace, "mcp-tools")
        return found["spec"]["template"]["spec"]["securityContext"] if found else {}

    async with desk.controller():
        await desk.put("MCPServer", "tools", spec())
        await eventually(lambda: _has(users, "runAsUser", there=True))
    async with desk.controller(pod_users="Assigned"):
        await eventually(lambda: _has(users, "runAsUser", there=False))
    assert (await users())["runAsNonRoot"] is True


async def _has(read: Callable[[], Awaitable[dict[str, Any]]], field: str, *, there: bool) -> bool:
    found = await read()
    return bool(found) and (field in found) is there


async def running_with_tools(desk: Desk) -> tuple[ClaimedRun, ServerPlan]:
    """A run under way whose agent has the tools; what its worker has in hand of them."""
    await desk.configure(skip=("Agent",))
    await desk.put("Agent", "one", {"mcpServers": [{"name": "tools"}], "toolPolicy": "All"})
    await desk.alert()
    await desk.queued()
    claimed = await desk.claim()
    ((server,),) = [agent.servers for stage in claimed.plan.stages for agent in stage.agents]
    return claimed, server


async def test_a_shared_server_has_its_objects_is_ready_when_its_pod_is_and_is_asked_with_its_own_token(
    desk: Desk, tmp_path: Path
) -> None:
    async with gateway(tmp_path) as tool:

        def here(name: str, namespace: str) -> str:
            assert (name, namespace) == ("mcp-tools", desk.namespace)
            return tool.url.removesuffix("/mcp")

        async with desk.controller(look_every=0.3, address=here):
            await desk.put("MCPServer", "tools", spec())
            message = await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadNotReady")
            assert "spec.run" in message and "Deployment mcp-tools" in message
            found = await there(desk, *KINDS)
            uid = (await desk.get("MCPServer", "tools"))["metadata"]["uid"]
            assert {obj["metadata"]["ownerReferences"][0]["uid"] for obj in found.values()} == {uid}
            assert found["Secret"]["metadata"]["labels"][LABEL] == "true"
            token = token_of(found["Secret"])
            assert token not in str([found["Deployment"], found["Service"], await desk.get("MCPServer", "tools")])
            tool.token_file.write_text(token)
            await ready(desk)
            await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
            assert "14 tools" in await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
            assert (await desk.get("MCPServer", "tools"))["status"]["workload"] == "mcp-tools"
            again = await there(desk, *KINDS)
            assert token_of(again["Secret"]) == token, "made once"
            assert again["Deployment"]["metadata"]["generation"] == found["Deployment"]["metadata"]["generation"]


async def test_what_was_changed_by_hand_is_put_right_and_what_the_object_says_anew_is_taken_over(desk: Desk) -> None:
    async with desk.controller():
        await desk.put("MCPServer", "tools", spec())
        await there(desk, *KINDS)
        await desk.kube.patch("NetworkPolicy", desk.namespace, "mcp-tools", {"spec": {"ingress": []}})

        async def closed() -> bool:
            return len((await desk.get("NetworkPolicy", "mcp-tools"))["spec"].get("ingress", ())) == 1

        await eventually(closed)
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"run": {"image": "tools:2"}}})

        async def updated() -> bool:
            pod = (await desk.get("Deployment", "mcp-tools"))["spec"]["template"]["spec"]
            return [container["image"] for container in pod["containers"]] == ["tools:2", "tarsy-operator:test"]

        await eventually(updated)


async def test_the_objects_go_when_run_is_taken_away(desk: Desk) -> None:
    async with desk.controller():
        await desk.put("MCPServer", "tools", spec())
        await there(desk, *KINDS)
        http = {"transport": {"type": "http", "http": {"url": "http://tools.example/mcp"}}, "run": None}
        await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadNotReady")
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": http})
        await gone(desk, *KINDS)
        await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
        assert "workload" not in (await desk.get("MCPServer", "tools"))["status"]


async def test_an_object_of_somebody_else_is_not_taken_over_nor_deleted(desk: Desk) -> None:
    theirs = await desk.core("Service", "mcp-tools", {"spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}}})
    async with desk.controller():
        await desk.put("MCPServer", "tools", spec())
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadNameTaken")
        assert "Service mcp-tools exists and does not belong to this MCPServer" in message
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"run": {"scope": "PerRun"}}})
        await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
        assert (await desk.get("Service", "mcp-tools"))["spec"]["selector"] == theirs["spec"]["selector"]


@pytest.mark.real_only("the embedded API does not compare what is promised with what is the most")
async def test_a_pod_that_the_api_server_refuses_is_said_by_field(desk: Desk) -> None:
    async with desk.controller():
        limits = {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}
        await desk.put("MCPServer", "tools", spec(resources=limits))
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadInvalid")
        assert "requests" in message


async def test_each_run_under_way_has_a_server_of_its_own_that_its_worker_waits_for_and_that_goes_with_it(
    desk: Desk, tmp_path: Path
) -> None:
    async with desk.controller():
        await desk.put("MCPServer", "tools", spec(scope="PerRun"))
        await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
        await there(desk, "NetworkPolicy")
        assert await desk.kube.find("Deployment", desk.namespace, "mcp-tools") is None
        claimed, server = await running_with_tools(desk)
        name = workload_name("tools", claimed.id)
        found = await there(desk, "Job", "Service", "Secret", name=name)
        job, token = found["Job"], token_of(found["Secret"])
        assert 60 < job["spec"]["activeDeadlineSeconds"] <= 3600 * 24 and token not in str(job)
        assert [obj["metadata"]["ownerReferences"][0]["kind"] for obj in found.values()] == ["MCPServer", "Job", "Job"]
        async with gateway(tmp_path) as tool:

            def here(wanted: str, namespace: str) -> str:
                assert (wanted, namespace) == (name, desk.namespace)
                return tool.url.removesuffix("/mcp")

            tool.token_file.write_text(token)
            boxes = McpToolboxes(Values(desk.kube, Secrets(desk.kube)), mask=str)
            async with RunToolboxes(boxes, claimed.id, address=here).open([server]) as box:
                said = await box.call("tools.echo", '{"text": "hello"}', timeout=60, idempotency_key="k")
            assert said == ToolOutcome("hello")
        await desk.finish(claimed)
        await gone(desk, "Job", "Service", "Secret", name=name)


async def test_no_server_of_a_run_is_ended_before_the_configuration_was_listed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch of a controller that has just started may have told of one MCPServer and not of the other."""
    await desk.put("MCPServer", "tools", spec(scope="PerRun"))
    listed, looked = asyncio.Event(), list[bool]()

    async def running(_: Workloads) -> list[Any]:
        looked.append(listed.is_set())
        return []

    async def learn_later(client: KubeClient, cache: Cache, *rest: Any, **more: Any) -> None:
        async def told() -> bool:
            return cache.get(MCPServer, desk.namespace, "tools") is not None

        await eventually(told)
        await asyncio.sleep(0.3)  # several rounds
        await learn(client, cache, *rest, **more)
        listed.set()

    monkeypatch.setattr(active, "WORKLOADS_SECONDS", 0.05)
    monkeypatch.setattr(active, "learn", learn_later)
    monkeypatch.setattr(Workloads, "running", running)

    async def has_looked() -> bool:
        return bool(looked)

    async with desk.controller():
        await eventually(has_looked)
    assert all(looked)


async def test_what_an_operator_that_died_left_of_a_run_is_deleted_and_nothing_of_others(desk: Desk) -> None:
    run = UUID(int=7)
    name = workload_name("tools", run)
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    for job, marks in (
        (name, {"tarsy.dev/run": str(run), "tarsy.dev/mcp-server": "tools"}),
        ("theirs", {"tarsy.dev/run": str(run), "tarsy.dev/mcp-server": "tools"}),
    ):
        meta = {"name": job, "namespace": desk.namespace, "labels": marks}
        await desk.kube.create(
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": pod}}}
        )
        await desk.core("Secret", job, {})
    async with desk.controller():
        await desk.put("MCPServer", "tools", spec(scope="PerRun"))
        await gone(desk, "Job", "Secret", name=name)
        await there(desk, "Job", "Secret", name="theirs")


async def test_a_server_of_a_run_that_never_comes_is_missing_and_no_more(desk: Desk) -> None:
    await desk.put("MCPServer", "tools", spec(scope="PerRun"))
    async with desk.controller():
        claimed, server = await running_with_tools(desk)
    boxes = McpToolboxes(Values(desk.kube, Secrets(desk.kube)), mask=str)
    here = RunToolboxes(boxes, claimed.id, address=lambda *_: "http://127.0.0.1:9", wait_seconds=0.2)
    async with asyncio.timeout(60), here.open([server]) as box:
        assert box.tools == () and "tools" in box.unavailable


async def test_the_operator_runs_servers_only_where_a_namespace_lets_it_by_the_component(
    desk: Desk, tarsy_api: LocalApi, tmp_path: Path
) -> None:
    manifests = files("tarsy").joinpath("manifests")
    base = ("namespace", "serviceaccount", "clusterrole", "role", "secret-reader", "tool-runner")
    for file in base:
        await rights.put_rights(desk.kube, documents(manifests.joinpath("base", f"{file}.yaml").read_text("utf-8")))
    async with await KubeClient.load(operator(tarsy_api, await token(desk), tmp_path)) as client:
        assert await client.version()
    async with desk.controller(kubeconfig=tmp_path / "operator.kubeconfig", everywhere=True):
        await desk.put("MCPServer", "tools", spec())
        message = await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadForbidden")
        assert "spec.run" in message and "`tenant-workloads`" in message and desk.namespace in message
        for component in ("tenant", "tenant-workloads"):
            text = manifests.joinpath("components", component, "rolebinding.yaml").read_text("utf-8")
            for binding in documents(text):
                binding["metadata"]["namespace"] = desk.namespace
                await rights.put_rights(desk.kube, [binding])
        await desk.reason("MCPServer", "tools", "Ready", "False", "WorkloadNotReady")
        await there(desk, *KINDS)
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"run": {"scope": "PerRun"}}})
        await gone(desk, "Deployment", "Service", "Secret")
        claimed, _ = await running_with_tools(desk)
        await there(desk, "Job", "Service", "Secret", name=workload_name("tools", claimed.id))
        await desk.finish(claimed)
        await gone(desk, "Job", "Service", "Secret", name=workload_name("tools", claimed.id))


async def token(desk: Desk) -> str:
    return await desk.kube.create_token("tarsy-system", "tarsy-operator")


def operator(api: LocalApi, bearer: str, folder: Path) -> Path:
    """A kubeconfig of the operator's ServiceAccount."""
    document: dict[str, Any] = yaml.safe_load(api.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": bearer}
    path = folder / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
