"""Tests health checks of tool servers, by each transport."""

import asyncio
import ssl
import sys
from pathlib import Path

import pytest

from integration.mcp.servers import SECRET, SMALL, http, plan, resolve, served, stdio
from tarsy.mcp.connection import Policy
from tarsy.mcp.health import look
from tarsy.plan.model import SecretKey, StdioTransport, Value

POLICY = Policy(resolve, ssl.create_default_context(), allow_stdio=True)
TOKEN = Value(name="TOKEN", secret=SecretKey(namespace="n", name="s", key="k"))


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_look_finds_the_tools_and_makes_a_session_only_where_the_protocol_asks_for_one(
    kind: str, legacy: bool
) -> None:
    async with served(sse=kind == "sse") as web:
        web.legacy = legacy
        found = await look(http(web.url, transport={"type": kind}), POLICY, 20)
        assert found.reason is None and sorted(found.digests) == ["big", "echo", "explode", "key", "refuse", "wait"]
        assert ("initialize" in web.methods) is legacy
        assert "tools/call" not in web.methods


async def test_a_look_at_a_command_starts_and_ends_it() -> None:
    before = children()
    found = await look(stdio(), POLICY, 60)
    assert found.reason is None and "echo" in found.digests
    assert children() <= before


@pytest.mark.parametrize(
    ("mode", "seconds", "reason", "words"),
    [("exit", 60, "OpenFailed", "no configuration, token [redacted]"), ("mute", 1, "Timeout", "1 s")],
)
async def test_a_command_that_fails_is_quoted_without_its_secrets(
    mode: str, seconds: float, reason: str, words: str
) -> None:
    before = children()
    found = await look(stdio(mode, env=(TOKEN,)), POLICY, seconds)
    assert found.reason == reason and words in found.failure and SECRET not in found.failure
    assert found.digests == {}
    assert children() <= before


async def test_a_look_that_is_cancelled_leaves_no_process() -> None:
    before = children()
    slow = plan("small", StdioTransport(command=sys.executable, args=("-S", str(SMALL), "mute")))
    task = asyncio.create_task(look(slow, POLICY, 30))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() <= before


async def test_a_server_that_is_away_is_said_in_our_words() -> None:
    found = await look(http("http://127.0.0.1:9/mcp"), POLICY, 60)
    assert (found.reason, found.failure) == (
        "OpenFailed",
        "no connection to http://127.0.0.1:9/mcp: connection refused (is the server running on this port?)",
    )
