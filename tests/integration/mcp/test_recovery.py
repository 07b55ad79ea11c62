"""Tests which failures are retried with a new session, and how often the server receives the call."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import tarsy.mcp.server
from integration.mcp.servers import http, resolve
from integration.mcp.tiny_web import TinyWeb
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.record.messages import ToolOutcome


@pytest.fixture
async def web() -> AsyncIterator[TinyWeb]:
    server = TinyWeb()
    await server.start()
    yield server
    await server.stop()


async def answered(web: TinyWeb, fault: str | int, *, repeatable: bool, kind: str = "http") -> ToolOutcome:
    """What a call is answered while the server has the fault; the next call, without it, is answered well."""
    path = "/sse" if kind == "sse" else "/mcp"
    server = http(web.url + path, name="tools", transport={"type": kind}, repeatable=("echo",) if repeatable else ())
    async with McpToolboxes(resolve, mask=str).open([server]) as box:
        assert box.unavailable == {}
        web.fault, web.calls = fault, 0
        limit = 2.0 if fault == "silence" else 60.0
        outcome = await box.call("tools.echo", "{}", timeout=limit, idempotency_key="k")
        made, web.fault = web.calls, None
        assert await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k") == ToolOutcome("hello")
        assert box.unavailable == {}
        web.calls = made
    return outcome


@pytest.mark.parametrize("fault", ["eof", "reset", "half", "stream", 502, 503, 504])
async def test_a_call_whose_connection_broke_is_made_again_only_when_its_tool_is_repeatable(
    web: TinyWeb, fault: str | int
) -> None:
    once = await answered(web, fault, repeatable=False)
    assert web.calls == 1
    assert once.is_error and "The outcome is unknown: the call may have taken effect or not" in once.content
    twice = await answered(web, fault, repeatable=True)
    assert web.calls == 2
    assert twice.is_error and "tools.echo failed" in twice.content


@pytest.mark.parametrize("fault", [401, 404])
async def test_a_call_that_was_refused_before_it_did_anything_is_made_again_once(web: TinyWeb, fault: int) -> None:
    outcome = await answered(web, fault, repeatable=False)
    assert web.calls == 2
    assert outcome.is_error and f"HTTP {fault}" in outcome.content and "outcome is unknown" not in outcome.content


@pytest.mark.parametrize(
    ("fault", "told"),
    [(400, "HTTP 400"), (403, "HTTP 403"), (429, "HTTP 429"), (500, "HTTP 500"), ("error", "no luck")],
)
@pytest.mark.parametrize("repeatable", [False, True])
async def test_an_answer_that_is_an_error_is_final(web: TinyWeb, fault: str | int, told: str, repeatable: bool) -> None:
    outcome = await answered(web, fault, repeatable=repeatable)
    assert web.calls == 1 and outcome.is_error and told in outcome.content


@pytest.mark.parametrize("repeatable", [False, True])
async def test_silence_is_final(web: TinyWeb, repeatable: bool) -> None:
    outcome = await answered(web, "silence", repeatable=repeatable)
    assert web.calls == 1
    assert outcome.is_error and "no answer within 2 s" in outcome.content
    assert ("may have taken effect" in outcome.content) is not repeatable


@pytest.mark.parametrize(("fault", "calls"), [("eof", 1), ("reset", 1), (502, 1), (401, 2), (500, 1)])
async def test_the_same_holds_for_server_sent_events(web: TinyWeb, fault: str | int, calls: int) -> None:
    outcome = await answered(web, fault, repeatable=False, kind="sse")
    assert web.calls == calls and outcome.is_error


async def test_a_server_is_missing_from_the_call_that_found_it_away_until_it_answers_again(web: TinyWeb) -> None:
    async with McpToolboxes(resolve, mask=str).open([http(f"{web.url}/mcp", name="tools")]) as box:
        web.fault = "eof"
        await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k")
        assert set(box.unavailable) == {"tools"}, "the outcome of its last call is unknown"
        web.fault = None
        await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k")
        assert box.unavailable == {}
        web.fault = "error"
        await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k")
        assert box.unavailable == {}, "an error is an answer"


async def test_a_host_that_does_not_exist_makes_its_server_unavailable() -> None:
    async with McpToolboxes(resolve, mask=str).open([http("http://no-such-host.invalid/mcp", name="tools")]) as box:
        assert "host no-such-host.invalid is not found" in box.unavailable["tools"]


async def test_a_session_is_opened_again_within_its_own_time_limit(
    web: TinyWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tarsy.mcp.server.REOPEN_SECONDS == 10.0
    monkeypatch.setattr(tarsy.mcp.server, "REOPEN_SECONDS", 0.3)
    server = http(f"{web.url}/mcp", name="tools", init_seconds=20)
    async with McpToolboxes(resolve, mask=str).open([server]) as box:
        web.fault = "eof"
        await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k")
        web.mute = True
        outcome = await box.call("tools.echo", "{}", timeout=60.0, idempotency_key="k")
        assert outcome.is_error and "did not start within 0.3 s" in outcome.content
        assert "did not start within" in box.unavailable["tools"]


async def test_a_repeated_call_waits_a_moment(web: TinyWeb) -> None:
    began = asyncio.get_running_loop().time()
    outcome = await answered(web, "eof", repeatable=True)
    assert outcome.is_error and asyncio.get_running_loop().time() - began >= 0.25
