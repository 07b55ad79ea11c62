"""Tests at the socket that a replay connects to no tool server, unless it asks live ones."""

import asyncio
from uuid import uuid4

import pytest

from tarsy.evals.toolbox import ReplayOptions, ReplayToolboxes
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan, Value
from tarsy.resources.v1alpha1.investigation import OnMiss
from unit.evals.cassettes import call, cassette


async def _plain(value: Value) -> str:
    return value.value or ""


@pytest.mark.parametrize(("on_miss", "connects"), [("Refuse", False), ("Simulate", False), ("Live", True)])
async def test_a_replay_connects_to_no_tool_server_unless_live(on_miss: OnMiss, connects: bool) -> None:
    connections = 0

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    plan = ServerPlan(
        ref=ObjectRef(kind="MCPServer", namespace="shop", name="k"),
        name="k",
        transport=HttpTransport(url=f"http://127.0.0.1:{port}/mcp"),
    )
    record = cassette(call("logs", "out of memory", pod="a"), call("scale", "scaled", replicas=0))
    options = ReplayOptions(on_miss, live=McpToolboxes(_plain, mask=str))
    async with listener, ReplayToolboxes(uuid4(), record, options).open([plan]) as toolbox:
        for tool, arguments in (("logs", '{"pod": "a"}'), ("logs", '{"pod": "b"}'), ("scale", '{"replicas": 3}')):
            await toolbox.call(f"k.{tool}", arguments, timeout=5, idempotency_key="key")
    assert (connections > 0) is connects
