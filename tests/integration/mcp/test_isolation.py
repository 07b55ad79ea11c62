"""Tests that each execution has clients of its own, and leaves nothing behind."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from integration.mcp.servers import http, plan, resolve
from integration.mcp.tiny_web import TinyWeb
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import ServerPlan, StdioTransport
from tarsy.record.messages import ToolOutcome

TINY = Path(__file__).with_name("tiny_server.sh")
AT_ONCE = 10


@pytest.fixture
async def web() -> AsyncIterator[TinyWeb]:
    server = TinyWeb()
    await server.start()
    yield server
    await server.stop()


def command() -> ServerPlan:
    return plan("tools", StdioTransport(command="sh", args=(str(TINY),)))


def by_http(web: TinyWeb) -> ServerPlan:
    return http(f"{web.url}/mcp", name="tools")


def by_sse(web: TinyWeb) -> ServerPlan:
    return http(f"{web.url}/sse", name="tools", transport={"type": "sse"})


async def call(box: McpToolbox, tool: str, timeout: float = 20.0) -> ToolOutcome:
    return await box.call(f"tools.{tool}", "{}", timeout=timeout, idempotency_key="k")


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def left() -> dict[str, int]:
    """What there is of this process: sockets are among the descriptors.

    The threads in which asyncio looks names up are its own pool, which has a bound and grows to it as it likes.
    """
    return {
        "children": len(children()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "tasks": len(asyncio.all_tasks()),
        "threads": sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate()),
    }


async def one(toolboxes: McpToolboxes, server: ServerPlan, number: int) -> None:
    """An execution that ends well, or (each in its turn) in a timeout or by cancellation in one of its moments."""

    async def execution() -> None:
        async with toolboxes.open([server]) as box:
            assert box.unavailable == {}
            assert await call(box, "echo") == ToolOutcome("hello")
            if number % 25 == 3:
                assert (await call(box, "hang", 0.05)).is_error
            if number % 25 in (4, 5):
                await call(box, "hang")

    if number % 25 not in (4, 5, 6, 7):
        return await execution()
    task = asyncio.create_task(execution())
    await asyncio.sleep({4: 0.1, 5: 0.05, 6: 0.0, 7: 0.005}[number % 25])
    task.cancel()
    await asyncio.wait({task})
    return None


async def run_all(toolboxes: McpToolboxes, servers: Sequence[ServerPlan], executions: int) -> None:
    turns = iter(range(executions))

    async def take_turns() -> None:
        for number in turns:
            kind = {7: 1, 14: 2}.get(number % 20, 0)  # most of them on the cheapest transport
            await one(toolboxes, servers[kind], number // 20 if kind else number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(take_turns())


@pytest.mark.parametrize("executions", [100, pytest.param(1000, marks=pytest.mark.heavy("a hundred are beside it"))])
async def test_executions_leave_no_process_descriptor_task_or_thread(web: TinyWeb, executions: int) -> None:
    toolboxes = McpToolboxes(resolve, mask=str, allow_stdio=True)
    servers = [command(), by_http(web), by_sse(web)]
    for server in servers:
        await one(toolboxes, server, 0)
    before = left()
    await run_all(toolboxes, servers, executions)
    for _ in range(1200):
        if web.open_now == 0 and left() == before:
            break
        await asyncio.sleep(0.05)
    assert web.open_now == 0
    after = left()
    assert {name: count for name, count in after.items() if count > before[name]} == {}
