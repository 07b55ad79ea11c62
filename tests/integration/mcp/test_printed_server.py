"""Runs the tool server that docs/tool-servers.md prints, with the launcher and the gateway, as in its pod."""

import asyncio
import re
from pathlib import Path

import httpx2
import pytest
import yaml
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.kubernetes_mcp import NotToBeHad, program
from integration.mcp.gateway import TOKEN, WAIT, launching, serving
from integration.mcp.test_launcher import ENVIRONMENT
from integration.mcp.test_listed_tools import NOWHERE
from tarsy.mcp.gateway import GatewayLimits
from tarsy.mcp.server_process import Launcher

PAGE = Path(__file__).parents[3] / "docs" / "tool-servers.md"
pytestmark = [
    pytest.mark.heavy("fetches the program once; test_launcher.py runs servers of the SDK"),
    pytest.mark.once("no Kubernetes API takes part"),
]


async def test_the_printed_server_lists_tools_that_only_read(tmp_path: Path) -> None:
    try:
        fetched = program()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    printed = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (run,) = (found for text in printed if (found := yaml.safe_load(text).get("spec", {}).get("run")))
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    env = {**ENVIRONMENT, "KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path)}
    limits = GatewayLimits()
    async with launching(tmp_path, str(fetched), *run["command"][1:], env=env) as (path, _):
        async with serving(tmp_path, Launcher(path, limits.message_bytes), limits) as running:
            http = httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=WAIT)
            async with (
                http,
                asyncio.timeout(WAIT),
                Client(streamable_http_client(running.url, http_client=http)) as client,
            ):
                tools = (await client.list_tools()).tools
    assert len(tools) > 5
    assert [tool.name for tool in tools if not (tool.annotations and tool.annotations.read_only_hint)] == []
