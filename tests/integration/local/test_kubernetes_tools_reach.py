"""Tests that the Kubernetes tool server keeps to the namespaces of a request, whatever its arguments are."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tarsy.kubernetes_tools.cluster import ClusterReader
from tarsy.kubernetes_tools.reach import NAMESPACES
from tarsy.kubernetes_tools.tools import tool_server
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import HttpTransport, ObjectRef, ReachPlan, ServerPlan, Value
from tarsy.record.messages import ToolOutcome


def named(kind: str, name: str, namespace: str | None = None, **rest: Any) -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": meta, **rest}


def volume(name: str, namespace: str) -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "1Gi"},
        "storageClassName": "fast",
        "claimRef": {"namespace": namespace, "name": "c"},
    }
    return named("PersistentVolume", name, spec=spec, status={"phase": "Bound"})


def on_n1(name: str, namespace: str) -> dict[str, Any]:
    return named("Pod", name, namespace, spec={"nodeName": "n1", "containers": [{"name": "c"}]})


def delivered(name: str, *into: str) -> dict[str, Any]:
    resources = [{"kind": "Deployment", "name": "d", "namespace": namespace, "status": "Synced"} for namespace in into]
    state = {"operationState": {"phase": "Failed", "message": f"said of {name}"}, "resources": resources}
    return named("Application", name, "argocd", spec={"destination": {"namespace": into[0]}}, status=state)


BOTH = delivered("umbrella", "shop", "pay")

OBJECTS = {
    "/api/v1/namespaces/shop/configmaps": [named("ConfigMap", "settings", "shop", data={"colour": "red"})],
    "/api/v1/namespaces/pay/configmaps": [named("ConfigMap", "settings", "pay", data={"colour": "secret-of-pay"})],
    "/api/v1/namespaces": [named("Namespace", "shop"), named("Namespace", "pay")],
    "/api/v1/nodes": [named("Node", "n1", status={"images": [{"names": ["pay/app"]}], "capacity": {"cpu": "2"}})],
    "/api/v1/persistentvolumes": [volume("ours", "shop"), volume("theirs", "pay")],
    "/apis/storage.k8s.io/v1/storageclasses": [named("StorageClass", "fast", provisioner="csi")],
    "/api/v1/pods": [on_n1("till", "shop"), on_n1("ledger", "pay")],
    "/api/v1/namespaces/shop/pods": [on_n1("till", "shop")],
    "/apis/metrics.k8s.io/v1beta1/nodes": [named("NodeMetrics", "n1", usage={"cpu": "1"})],
    "/apis/argoproj.io/v1alpha1/applications": [delivered("till", "shop"), delivered("ledger", "pay"), BOTH],
}


@pytest.fixture
async def asked() -> list[str]:
    return []


@pytest.fixture
async def cluster(asked: list[str], tmp_path: Path) -> AsyncIterator[ClusterReader]:
    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        for path, items in OBJECTS.items():
            if request.path == path:
                return web.json_response({"items": items})
            for item in items:
                if request.path == f"{path}/{item['metadata']['name']}":
                    return web.json_response(item)
        return web.json_response({"message": "not found"}, status=404)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k"}}],
        "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    yield ClusterReader({"KUBECONFIG": str(path)})
    await runner.cleanup()


def plan(reach: ReachPlan | None, home: str = "library") -> ServerPlan:
    ref = ObjectRef(kind="MCPServer", namespace=home, name="kubernetes")
    return ServerPlan(ref=ref, name="kubernetes", transport=HttpTransport(url="http://x/mcp"), reach=reach)


SHOP = ReachPlan(foreign=True, namespace="shop", bound_by="Server")


async def _value(value: Value) -> str:
    return value.value or ""


class Caller:
    """Calls as an agent does: through the worker's own toolbox, which is the server's only way to know the run."""

    def __init__(self, box: McpToolbox) -> None:
        self.box = box

    async def outcome(self, tool: str, **arguments: Any) -> ToolOutcome:
        return await self.box.call(f"kubernetes.{tool}", json.dumps(arguments), timeout=60, idempotency_key="k")

    async def read(self, tool: str, **arguments: Any) -> str:
        found = await self.outcome(tool, **arguments)
        assert not found.is_error, found
        return found.content

    async def refused(self, tool: str, **arguments: Any) -> str:
        found = await self.outcome(tool, **arguments)
        assert found.is_error, found
        return found.content


@pytest.fixture(params=["library", None], ids=["bound", "not bound by itself"])
async def shop(cluster: ClusterReader, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    server = tool_server(cluster, owner=request.param)
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([plan(SHOP)]) as box:
        assert len(box.tools) == 11, box.unavailable
        yield Caller(box)


async def test_what_is_in_the_runs_namespace_is_read_whether_it_is_named_or_not(shop: Caller) -> None:
    assert "red" in await shop.read("get_resource", kind="ConfigMap", name="settings", namespace="shop")
    assert "red" in await shop.read("get_resource", kind="ConfigMap", name="settings")
    assert await shop.read("list_resources", kind="cm") == await shop.read(
        "list_resources", kind="cm", namespace="shop"
    )


async def test_no_other_namespace_is_asked_for(shop: Caller, asked: list[str]) -> None:
    for said in (
        await shop.refused("get_resource", kind="ConfigMap", name="settings", namespace="pay"),
        await shop.refused("list_resources", kind="ConfigMap", namespace="pay"),
        await shop.refused("list_events", namespace="pay"),
        await shop.refused("get_logs", namespace="pay", pod="p"),
        await shop.refused("get_resource", kind="Namespace", name="pay"),
        await shop.refused("get_usage", namespace="pay"),
        await shop.refused("get_rollout_history", namespace="pay", kind="Deployment", name="d"),
        await shop.refused("get_endpoints", namespace="pay", service="s"),
        await shop.refused("get_owners", namespace="pay", kind="Pod", name="p"),
        await shop.refused("get_quota_use", namespace="pay"),
        await shop.refused("get_gitops", namespace="pay"),
    ):
        assert "namespace pay is out of reach: this investigation reaches namespace shop and no other" in said
    assert asked == []


async def test_what_is_in_no_namespace_is_read_without_what_it_tells_of_others(shop: Caller) -> None:
    assert (await shop.read("list_resources", kind="ns")).split()[0] == "shop"
    assert "pay" not in await shop.read("list_resources", kind="ns")
    node = await shop.read("get_resource", kind="Node", name="n1")
    assert '"cpu"' in node and "pay/app" not in node
    assert "csi" in await shop.read("get_resource", kind="StorageClass", name="fast")
    assert "provisioner=csi" in await shop.read("list_resources", kind="sc")
    volumes = await shop.read("list_resources", kind="pv")
    assert "theirs phase=Bound class=fast capacity=1Gi" in volumes and "pay" not in volumes
    theirs = await shop.read("get_resource", kind="pv", name="theirs")
    assert "Bound" in theirs and "pay" not in theirs and "claimRef" not in theirs
    assert "claimRef" in await shop.read("get_resource", kind="pv", name="ours")


async def test_a_node_shows_only_pods_in_reach(shop: Caller, asked: list[str]) -> None:
    shown = await shop.read("describe_node", name="n1")
    assert "shop/till" in shown and "pay" not in shown and "ledger" not in shown
    assert "pods outside of namespace shop are not shown or counted" in shown
    assert "/api/v1/pods" not in asked


async def test_deliveries_are_shown_by_the_namespace_that_they_go_to(shop: Caller) -> None:
    for shown in (await shop.read("get_gitops"), await shop.read("get_gitops", namespace="shop")):
        assert "argocd/till" in shown and "said of till" in shown
        assert "ledger" not in shown
        assert "argocd/umbrella" in shown and "said of umbrella" not in shown and "withheld" in shown


async def test_a_run_that_is_not_bound_reads_everything(cluster: ClusterReader) -> None:
    server = tool_server(cluster, owner="library")
    everywhere = plan(ReachPlan(bound_by="Server"))
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([everywhere]) as box:
        free = Caller(box)
        assert "secret-of-pay" in await free.read("get_resource", kind="cm", name="settings", namespace="pay")
        assert "pay/app" in await free.read("get_resource", kind="Node", name="n1")
        assert "pay/ledger" in await free.read("describe_node", name="n1")
        assert "said of umbrella" in await free.read("get_gitops")


async def test_a_bound_server_answers_no_request_without_a_namespace(cluster: ClusterReader, asked: list[str]) -> None:
    """Such as one of an older worker."""
    server = tool_server(cluster, owner="library")
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([plan(None)]) as box:
        said = await Caller(box).refused("list_resources", kind="pv")
    assert NAMESPACES in said and asked == []


async def test_an_mcp_server_of_another_namespace_at_the_same_url_reaches_its_own_namespace(
    cluster: ClusterReader, asked: list[str]
) -> None:
    server = tool_server(cluster, owner="library")
    granted = plan(ReachPlan(bound_by="Server"), home="shop")
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([granted]) as box:
        caller = Caller(box)
        assert "out of reach" in await caller.refused("get_resource", kind="cm", name="settings", namespace="pay")
        assert asked == []
        assert "red" in await caller.read("get_resource", kind="cm", name="settings")
    lent = plan(ReachPlan(foreign=True, namespace="pay", bound_by="Server"), home="shop")
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([lent]) as box:
        said = await Caller(box).refused("list_resources", kind="cm")
    assert "MCPServer shop/kubernetes is not of namespace library" in said


@pytest.mark.parametrize("owner", [None, "library"])
async def test_held_by_its_argument_the_same_server_reaches_no_further(
    cluster: ClusterReader, asked: list[str], owner: str | None
) -> None:
    """As the object, or the stored plan, of an earlier version has it, which says nothing of `reach`."""
    server = tool_server(cluster, owner=owner)
    reach = ReachPlan(foreign=True, namespace="shop")
    async with McpToolboxes(_value, mask=str, reach=lambda _: server).open([plan(reach)]) as box:
        caller = Caller(box)
        assert "shop" in await caller.refused("get_resource", kind="cm", name="settings", namespace="pay")
        assert asked == []
        assert "settings" in await caller.read("list_resources", kind="cm")
        assert asked == ["/api/v1/namespaces/shop/configmaps"]
