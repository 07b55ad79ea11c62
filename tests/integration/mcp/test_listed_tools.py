"""Runs the tool servers of other projects as their components do, and compares the tools with the table of facts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from e2e.grafana_mcp import grafana_program
from e2e.kubernetes_mcp import NotToBeHad, program
from unit.manifests.test_tool_servers import FACTS, shipped

pytestmark = [
    pytest.mark.heavy("fetches the programs once; the unit tests hold the manifests against the table"),
    pytest.mark.once("no Kubernetes API takes part"),
]
NOWHERE = """{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}], users: [{name: a, user: {token: a}}]}"""
CASES: list[tuple[str, Callable[[], Path], set[str], tuple[str, ...]]] = [
    ("grafana-tools", grafana_program, {"-t", "--address", "--allowed-hosts"}, ("-t", "stdio")),
    ("loki-tools", grafana_program, {"-t", "--address", "--allowed-hosts"}, ("-t", "stdio")),
    ("kubernetes-mcp-tools", program, {"--port", "--cluster-provider"}, ("--kubeconfig", "KUBECONFIG")),
]


@pytest.mark.parametrize(("component", "fetch", "of_transport", "instead"), CASES, ids=[case[0] for case in CASES])
async def test_a_server_takes_the_arguments_of_its_component_and_lists_the_tools_of_the_table(
    component: str, fetch: Callable[[], Path], of_transport: set[str], instead: tuple[str, ...], tmp_path: Path
) -> None:
    try:
        command = fetch()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    given = shipped(component).container["args"]
    kept = [word for at, word in enumerate(given) if word not in of_transport and given[at - 1] not in of_transport]
    swapped = [str(tmp_path / "kubeconfig") if word == "KUBECONFIG" else word for word in instead]
    env = {"HOME": str(tmp_path), "GRAFANA_URL": "http://127.0.0.1:9", "GRAFANA_SERVICE_ACCOUNT_TOKEN": "none"}
    server = StdioServerParameters(command=str(command), args=[*kept, *swapped], env=env)
    tools: list[Any] = []
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
    assert sorted(tool.name for tool in tools) == FACTS[component]["annotated"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
