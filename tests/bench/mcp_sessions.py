"""Sessions with tool servers: how long one takes to open, and a call to come back, beside a bare SDK client.

The same server for both, in turns, so that what else the machine does is in both figures. Ours does more: it resolves
and redacts secrets, reads and digests the list of tools, parses and checks arguments, and masks answers. Memory is that
of this process for agents that hold a session each with a command of their own (a shell script, so that it is small).
"""

import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.bench.children import listening
from tests.bench.figures import Figure, Result
from tests.bench.processes import memory

from tarsy.masking import default_masker
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan, StdioTransport, Value
from tarsy_dev.apiserver.process import free_port

SERVER = Path(__file__).with_name("tool_server.py")
TINY = Path(__file__).parents[1] / "integration" / "mcp" / "tiny_server.sh"
Call = Callable[[], Awaitable[object]]
Open = Callable[[], AbstractAsyncContextManager[Call]]


async def run(quick: bool) -> Result:
    """Milliseconds for each transport, and MiB for an agent."""
    opens, calls, agents = (2, 5, 3) if quick else (15, 200, 50)
    toolboxes = McpToolboxes(_value, mask=default_masker().mask, allow_stdio=True)
    figures: list[Figure] = []
    for kind in ("http", "sse"):
        async with _serving(kind) as url:
            figures += await _compared(kind, _ours(toolboxes, _by_http(kind, url)), _bare(kind, url), opens, calls)
    command = (sys.executable, str(SERVER), "stdio")
    figures += await _compared(
        "stdio", _ours(toolboxes, _by_stdio(command)), _bare_stdio(command), min(opens, 5), calls
    )
    figures += await _agents(toolboxes, agents)
    how = f"median of {opens} openings and {calls} calls of one tool with 2,000 characters; the SDK's own server"
    return Result(how, figures, ("tarsy", "bare SDK"))


async def _compared(kind: str, ours: Open, bare: Open, opens: int, calls: int) -> list[Figure]:
    opened: dict[str, list[float]] = {"ours": [], "bare": []}
    called: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(opens):
        for name, open_ in (("ours", ours), ("bare", bare)):
            began = time.perf_counter()
            async with open_() as call:
                opened[name].append(time.perf_counter() - began)
                for _ in range(calls // opens if number else calls - calls // opens * (opens - 1)):
                    began = time.perf_counter()
                    await call()
                    called[name].append(time.perf_counter() - began)

    def figure(what: str, found: dict[str, list[float]]) -> Figure:
        mine, beside = (statistics.median(found[name]) * 1000 for name in ("ours", "bare"))
        return Figure(f"{kind}: {what}", mine, "ms", beside=beside)

    return [figure("session open, with its tools", opened), figure("call", called)]


async def _agents(toolboxes: McpToolboxes, number: int) -> list[Figure]:
    tiny = ServerPlan(ref=_ref(), name="tools", transport=StdioTransport(command="sh", args=(str(TINY),)))
    async with toolboxes.open([tiny]):
        before, _ = memory(os.getpid())
    began = time.perf_counter()
    async with AsyncExitStack() as stack:
        for _ in range(number):
            await stack.enter_async_context(toolboxes.open([tiny]))
        took = time.perf_counter() - began
        after, _ = memory(os.getpid())
        commands = [memory(pid)[0] for pid in _children()]
    return [
        Figure(f"memory of {number} agents with a command each, for an agent", (after - before) / number, "MiB"),
        Figure("memory of such a command, resident", statistics.fmean(commands), "MiB"),
        Figure(f"opening {number} of them one after the other, for an agent", took / number * 1000, "ms"),
    ]


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def _ours(toolboxes: McpToolboxes, server: ServerPlan) -> Open:
    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        async with toolboxes.open([server]) as box:
            if box.unavailable:
                raise RuntimeError(str(dict(box.unavailable)))
            yield lambda: _made(box)

    return opened


async def _made(box: McpToolbox) -> None:
    outcome = await box.call("tools.look_up", '{"name": "checkout"}', timeout=30, idempotency_key="bench")
    if outcome.is_error:
        raise RuntimeError(outcome.content)


def _bare(kind: str, url: str) -> Open:
    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        way = sse_client(url) if kind == "sse" else streamable_http_client(url)
        async with Client(way, cache=None) as client:
            await client.list_tools()
            yield lambda: client.call_tool("look_up", {"name": "checkout"})

    return opened


def _bare_stdio(command: Sequence[str]) -> Open:
    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        way = stdio_client(StdioServerParameters(command=command[0], args=list(command[1:])))
        async with Client(way, cache=None) as client:
            await client.list_tools()
            yield lambda: client.call_tool("look_up", {"name": "checkout"})

    return opened


def _by_http(kind: str, url: str) -> ServerPlan:
    transport = HttpTransport(type="sse" if kind == "sse" else "http", url=url)
    return ServerPlan(ref=_ref(), name="tools", transport=transport)


def _by_stdio(command: Sequence[str]) -> ServerPlan:
    return ServerPlan(ref=_ref(), name="tools", transport=StdioTransport(command=command[0], args=tuple(command[1:])))


def _ref() -> ObjectRef:
    return ObjectRef(kind="MCPServer", namespace="bench", name="tools")


async def _value(value: Value) -> str:
    return value.value or ""


@contextlib.asynccontextmanager
async def _serving(kind: str) -> AsyncIterator[str]:
    port = free_port()
    extra = ["sse"] if kind == "sse" else []
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), str(port), *extra)
    try:
        await listening(port)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
