"""Tests the Kubernetes tool server with a real MCP client, and a Kubernetes API over real HTTP."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tarsy.kubernetes_tools.cluster import ClusterReader
from tarsy.kubernetes_tools.tools import tool_server

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples" / "demo"
POD = "checkout-6f7d9c8b54-k8x2p"
PLURALS = {"Namespace": "namespaces", "ConfigMap": "configmaps", "Deployment": "deployments", "Pod": "pods"}
PLURALS |= {"ReplicaSet": "replicasets", "Event": "events", "Secret": "secrets"}


class FakeApi:
    """Some objects behind the paths of a Kubernetes API; `forbidden` resources answer 403, `logs` has real logs."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self.objects = objects
        self.forbidden: set[str] = set()
        self.logs: dict[str, str] = {}
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request.path_qs)
        self.tokens.add(request.headers.get("Authorization", ""))
        found = re.fullmatch(r"/apis?/(?:[^/]+/)?v\d(?:/namespaces/([^/]+))?/(\w+)(?:/([^/]+))?(/log)?", request.path)
        if found is None:
            return self.status(404, "the server could not find the requested resource")
        namespace, plural, name, log = found.groups()
        resource = "pods/log" if log else plural
        if resource in self.forbidden:
            return self.status(403, f'{plural} is forbidden: User "system:serviceaccount:shop:tools" cannot do that')
        items = [o for o in self.objects if PLURALS[o["kind"]] == plural]
        items = [o for o in items if namespace in (None, o["metadata"].get("namespace"))]
        if about := request.query.get("fieldSelector", "").removeprefix("involvedObject.name="):
            items = [o for o in items if o["involvedObject"]["name"] == about]
        if name is None:
            return web.json_response({"kind": "List", "metadata": {}, "items": items})
        one = next((o for o in items if o["metadata"]["name"] == name), None)
        if one is None:
            return self.status(404, f'{plural} "{name}" not found')
        if log:
            text = self.logs.get(name)
            return (
                self.status(400, f"pod {name} does not have a host assigned")
                if text is None
                else web.Response(text=text)
            )
        return web.json_response(one)

    @staticmethod
    def status(code: int, message: str) -> web.Response:
        return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    fake = FakeApi(list(yaml.safe_load_all((SAMPLES / "crashloop.yaml").read_text())))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("sesame\n")
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": api.url}}],
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    return tmp_path / "config"


@pytest.fixture
def server(kubeconfig: Path) -> Any:
    return tool_server(ClusterReader({"KUBECONFIG": str(kubeconfig)}))


async def call(server: Any, tool: str, **arguments: Any) -> str:
    async with Client(server) as client:
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return str(result.content[0].text)


async def refused(server: Any, tool: str, **arguments: Any) -> str:
    async with Client(server) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return str(result.content[0].text)


async def test_all_tools_say_that_they_only_read(server: Any) -> None:
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
    assert len(tools) == 11
    assert all(tool.annotations and tool.annotations.read_only_hint and tool.description for tool in tools)


@pytest.mark.parametrize("kind", ["Pod", "pods", "po", "PODS", "pods.v1"])
async def test_pods_are_listed_with_what_ails_them_by_any_of_their_names(server: Any, kind: str) -> None:
    text = await call(server, "list_resources", kind=kind, namespace="shop")
    assert f"{POD} ready=0/1 status=CrashLoopBackOff restarts=9 last-exit=1 (Error)" in text
    assert len(text.splitlines()) == 2


async def test_without_a_namespace_objects_are_listed_with_theirs(server: Any) -> None:
    assert (await call(server, "list_resources", kind="deploy")).startswith("shop/checkout ready=0/2")
    assert (await call(server, "list_resources", kind="ns", namespace="shop")).startswith("shop ")
    assert await call(server, "list_resources", kind="Job", namespace="none") == "no objects of kind Job"


async def test_the_token_is_read_at_every_request(server: Any, api: FakeApi, kubeconfig: Path) -> None:
    await call(server, "list_events", namespace="shop")
    (kubeconfig.parent / "token").write_text("rotated")
    await call(server, "list_events", namespace="shop")
    assert api.tokens == {"Bearer sesame", "Bearer rotated"}


async def test_an_object_is_shown_without_what_only_machines_read(server: Any, api: FakeApi) -> None:
    api.objects[4]["metadata"]["managedFields"] = [{"manager": "x"}]
    shown = json.loads(await call(server, "get_resource", kind="Pod", namespace="shop", name=POD))
    assert shown["status"]["containerStatuses"][0]["restartCount"] == 9
    assert "managedFields" not in shown["metadata"] and "annotations" not in shown["metadata"]


async def test_events_are_in_order_and_of_one_object_when_asked(server: Any) -> None:
    everything = (await call(server, "list_events", namespace="shop")).splitlines()
    assert everything == sorted(everything) and len(everything) == 5
    one = await call(server, "list_events", namespace="shop", involved_name=POD)
    assert f"Warning BackOff Pod/{POD} (x104): Back-off restarting failed container checkout in pod {POD}" in one
    assert len(one.splitlines()) == 2


async def test_logs_come_from_the_api_where_there_are_kubelets(server: Any, api: FakeApi) -> None:
    api.logs[POD] = "from the kubelet"
    assert (
        await call(server, "get_logs", namespace="shop", pod=POD, container="checkout", previous=True)
        == "from the kubelet"
    )
    assert "container=checkout&previous=true&tailLines=200" in api.requests[-1]


async def test_logs_come_from_annotations_where_there_are_none(server: Any) -> None:
    now = await call(server, "get_logs", namespace="shop", pod=POD)
    before = await call(server, "get_logs", namespace="shop", pod=POD, previous=True, tail_lines=2)
    assert "09:41:12" in now and "09:36:05" in before
    assert len(now.splitlines()) == 4 and len(before.splitlines()) == 2


async def test_logs_that_may_not_be_read_are_not_read_from_annotations(server: Any, api: FakeApi) -> None:
    api.forbidden.add("pods/log")
    text = await refused(server, "get_logs", namespace="shop", pod=POD)
    assert f'may not get pods/log "{POD}" in namespace shop' in text
    assert len(api.requests) == 1


async def test_a_pod_without_logs_anywhere_gives_the_apis_own_reason(server: Any, api: FakeApi) -> None:
    del api.objects[4]["metadata"]["annotations"]
    assert "does not have a host assigned" in await refused(server, "get_logs", namespace="shop", pod=POD)
    assert 'pods "nobody" not found' in await refused(server, "get_logs", namespace="shop", pod="nobody")


@pytest.mark.parametrize("kind", ["Secret", "secrets", "SECRETS", "secret.v1", " secrets "])
async def test_secrets_are_refused_without_asking_the_api(server: Any, api: FakeApi, kind: str) -> None:
    assert "Secrets are never shown" in await refused(server, "list_resources", kind=kind, namespace="shop")
    assert "Secrets are never shown" in await refused(server, "get_resource", kind=kind, namespace="shop", name="s")
    assert api.requests == []


@pytest.mark.parametrize("name", ["../../secrets/s", "..", "a/b", "a%2Fb", "a?x=1", "", "A", "a\n"])
async def test_a_name_cannot_lead_elsewhere(server: Any, api: FakeApi, name: str) -> None:
    assert "is not a Kubernetes name" in await refused(server, "get_resource", kind="Pod", namespace="shop", name=name)
    assert api.requests == []


async def test_a_refused_permission_names_verb_resource_and_namespace(server: Any, api: FakeApi) -> None:
    api.forbidden.add("pods")
    text = await refused(server, "list_resources", kind="Pod", namespace="shop")
    assert "may not list pods in namespace shop" in text and "system:serviceaccount:shop:tools" in text


async def test_what_does_not_exist_is_said_in_words(server: Any) -> None:
    assert "unknown kind 'Wombat'; known are Pod, " in await refused(server, "list_resources", kind="Wombat")
    assert "give `namespace`" in await refused(server, "get_resource", kind="Pod", name="x")
    assert 'pods "x" not found' in await refused(server, "get_resource", kind="Pod", namespace="shop", name="x")


async def test_long_results_are_bounded_and_say_so(server: Any, api: FakeApi) -> None:
    api.logs[POD] = "\n".join(f"line {number} " + "x" * 500 for number in range(1000))
    text = await call(server, "get_logs", namespace="shop", pod=POD, tail_lines=1000)
    assert len(text) < 33_000 and "characters shown" in text.splitlines()[0] and "line 999" in text
    api.objects[1]["data"] = {"big": "x" * 100_000}
    text = await call(server, "get_resource", kind="cm", namespace="shop", name="checkout-config")
    assert len(text) < 33_000 and "characters shown" in text.splitlines()[-1]


@pytest.fixture
def away(api: FakeApi, kubeconfig: Path) -> Any:
    """A server whose API is not there."""
    kubeconfig.write_text(kubeconfig.read_text().replace(api.url, "http://127.0.0.1:9"))
    return tool_server(ClusterReader({"KUBECONFIG": str(kubeconfig)}))


async def test_an_api_that_is_away_or_unknown_is_a_tools_error(away: Any, tmp_path: Path) -> None:
    assert "the Kubernetes API was not reached" in await refused(away, "list_events", namespace="shop")
    nowhere = tool_server(ClusterReader({"HOME": str(tmp_path)}))
    assert "set KUBECONFIG" in await refused(nowhere, "list_events", namespace="shop")


async def test_over_stdio_it_acts_with_the_kubeconfig_it_is_given(kubeconfig: Path) -> None:
    """The SDK gives the newer handshake ten seconds, which a process that starts on a busy machine may need itself."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "tarsy.kubernetes_tools"], env={"KUBECONFIG": str(kubeconfig)}
    )
    async with Client(parameters, mode="legacy", read_timeout_seconds=120) as client:
        result = await client.call_tool("list_resources", {"kind": "Pod", "namespace": "shop"})
    assert POD in str(result.content[0].text)


async def test_over_http_it_prints_its_address_and_serves_many(kubeconfig: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tarsy.kubernetes_tools", "--http"),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        assert POD in await call(url, "list_resources", kind="Pod", namespace="shop")
        texts = await asyncio.gather(*(call(url, "get_logs", namespace="shop", pod=POD) for _ in range(3)))
        assert all("PAYMENT_API_URL is not set" in text for text in texts)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 60)
