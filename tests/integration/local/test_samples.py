"""Tests the demo's objects on a real Kubernetes API through the Kubernetes tool server, as the demo's agents use it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from apis import LocalApi
from tarsy.kube.client import KubeClient
from tarsy.kubernetes_tools.cluster import ClusterReader
from tarsy.kubernetes_tools.tools import tool_server
from tarsy_dev.model import demo_script
from tarsy_dev.objects import documents, put_all

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples" / "demo"


@pytest.fixture
async def shop(kube_api: LocalApi) -> AsyncIterator[None]:
    """The objects of crashloop.yaml, with the status of those that have one."""
    objects = documents((SAMPLES / "crashloop.yaml").read_text())
    async with await KubeClient.load(kube_api.kubeconfig) as client:
        await put_all(client, objects)
        yield
        for obj in objects:
            if obj["kind"] != "Namespace":
                await client.delete(obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])


async def result(server: Any, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    return bool(answer.is_error), str(answer.content[0].text)


def tool_of(call_id: str) -> str:
    """The tool that `@callId(TOOL#N)` stands for."""
    found = re.fullmatch(r"@callId\(([\w.]+)(?:#\d+)?\)", call_id)
    assert found, call_id
    return found[1]


@pytest.mark.usefixtures("shop")
async def test_every_quote_of_the_demo_is_what_a_real_cluster_says(kube_api: LocalApi) -> None:
    server = tool_server(ClusterReader({"KUBECONFIG": str(kube_api.kubeconfig)}))
    said: dict[str, str] = {}
    quotes: list[tuple[str, str]] = []
    for agent in demo_script().agents.values():
        for entry in agent.entries:
            for call in entry.calls:
                assert isinstance(call.arguments, dict)
                failed, text = await result(server, call.name.removeprefix("kubernetes."), call.arguments)
                assert not failed, text
                said[call.name] = said.get(call.name, "") + text
            for block in re.findall(r"```finding\n(.*?)\n```", entry.text or "", re.DOTALL):
                claims = json.loads(block)["claims"]
                quotes += [(tool_of(c["callId"]), c["quote"]) for claim in claims for c in claim["citations"]]
    assert [(tool, quote) for tool, quote in quotes if quote not in said.get(tool, "")] == []


@pytest.mark.usefixtures("shop")
async def test_a_permission_the_account_lacks_is_named_to_the_model(kube_api: LocalApi) -> None:
    server = tool_server(ClusterReader({"KUBECONFIG": str(kube_api.kubeconfig_for("stranger"))}))
    failed, text = await result(server, "list_resources", {"kind": "Pod", "namespace": "shop"})
    assert failed and "may not list pods in namespace shop" in text and "stranger" in text
    failed, text = await result(server, "get_logs", {"namespace": "shop", "pod": "checkout-6f7d9c8b54-k8x2p"})
    assert failed and "may not get pods/log" in text
