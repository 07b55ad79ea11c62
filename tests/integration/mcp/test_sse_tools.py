"""Tests tool servers behind the older HTTP transport with server-sent events: calls, refusals, recovery."""

import asyncio
import json
import re

import pytest

from integration.mcp.servers import SECRET, called, http, resolve, served
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import SecretKey, ServerPlan, Value
from tarsy.record.messages import ToolOutcome

TOKEN = Value(name="bearerTokenSecretRef", secret=SecretKey(namespace="n", name="s", key="k"))


@pytest.fixture
def toolboxes() -> McpToolboxes:
    """One, since only calls over streamable HTTP are made in two ways."""
    return McpToolboxes(resolve, mask=str, allow_stdio=True)


def sse(url: str, **rest: object) -> ServerPlan:
    return http(url, transport={"type": "sse", "bearer_token": TOKEN}, **rest)


async def call(box: McpToolbox, name: str, arguments: str = "{}", timeout: float = 60) -> ToolOutcome:
    return await box.call(name, arguments, timeout=timeout, idempotency_key="key-1")


@pytest.mark.parametrize("legacy", [False, True])
async def test_tools_answer_in_both_eras_and_every_request_carries_the_token(
    toolboxes: McpToolboxes, legacy: bool
) -> None:
    async with served(sse=True) as web:
        web.legacy = legacy
        web.accepted = f"Bearer {SECRET}"
        async with toolboxes.open([sse(web.url)]) as box:
            assert box.unavailable == {}
            assert box.tools[0].name == "web.big"
            assert box.instructions == {"web": "Ask `echo` first."}
            assert await call(box, "web.echo", '{"text": "a", "times": 3}') == ToolOutcome("aaa")
            refused = await call(box, "web.refuse", '{"text": "no such pod"}')
            echoed = await call(box, "web.echo", json.dumps({"text": f"I saw {SECRET}"}))
            key = await call(box, "web.key")
        assert ("initialize" in web.methods) is legacy
    assert refused.is_error and "no such pod" in refused.content
    assert echoed.content == "I saw [redacted]"
    assert "'tarsy.dev/idempotency-key': 'key-1'" in key.content


async def test_a_result_of_five_megabytes_arrives_whole(toolboxes: McpToolboxes) -> None:
    async with served(sse=True) as web, toolboxes.open([sse(web.url)]) as box:
        outcome = await call(box, "web.big", '{"megabytes": 5}', timeout=60)
        after = await call(box, "web.echo", '{"text": "on"}')
    assert not outcome.is_error and len(outcome.content) == 5 * 1024 * 1024
    assert after == ToolOutcome("on")


async def test_calls_run_side_by_side_and_a_timeout_ends_one_of_them_only(toolboxes: McpToolboxes) -> None:
    async with served(sse=True) as web, toolboxes.open([sse(web.url)]) as box:
        patient = asyncio.create_task(call(box, "web.wait", '{"seconds": 600}', timeout=600))
        hurried = asyncio.create_task(call(box, "web.wait", '{"seconds": 600}', timeout=0.2))
        outcomes = await asyncio.gather(*(call(box, "web.wait", '{"seconds": 0.3}') for _ in range(8)))
        late = await hurried
        assert not patient.done()
        patient.cancel()
        await asyncio.wait([patient])
    assert [outcome.content for outcome in outcomes] == ["waited"] * 8
    assert late.is_error and "no answer within 0.2 s" in late.content


@pytest.mark.parametrize(("status", "told"), [(401, "HTTP 401 Unauthorized"), (500, "HTTP 500")])
async def test_a_server_that_refuses_at_the_start_is_unavailable_with_its_status(
    toolboxes: McpToolboxes, status: int, told: str
) -> None:
    async with served(sse=True) as web:
        web.refuse = status
        async with toolboxes.open([sse(web.url)]) as box:
            assert told in box.unavailable["web"]
            assert SECRET not in box.unavailable["web"] and "page" not in box.unavailable["web"]


async def test_what_is_no_stream_of_events_makes_its_server_unavailable(toolboxes: McpToolboxes) -> None:
    async with served() as web:
        servers = [sse(web.url.replace("/mcp", "/nothing"), name="away"), sse("http://127.0.0.1:9/sse", name="refused")]
        async with toolboxes.open(servers) as box:
            assert "HTTP 404 Not Found" in box.unavailable["away"]
            assert "connection" in box.unavailable["refused"]


async def test_a_message_that_was_refused_is_an_answer_at_once_and_made_again_only_when_repeatable(
    toolboxes: McpToolboxes,
) -> None:
    async with served(sse=True) as web:
        async with toolboxes.open([sse(web.url), sse(web.url, name="safe", repeatable=("echo",))]) as box:
            web.refuse_calls = [502]
            once = await call(box, "web.echo", '{"text": "a"}')
            web.refuse_calls = [502]
            twice = await call(box, "safe.echo", '{"text": "b"}')
            again = await call(box, "web.echo", '{"text": "c"}')
    assert once.is_error and "HTTP 502" in once.content and "outcome is unknown" in once.content
    assert [twice, again] == [ToolOutcome("b"), ToolOutcome("c")]


async def test_a_server_that_was_restarted_is_reached_by_the_next_call(toolboxes: McpToolboxes) -> None:
    async with served(sse=True) as web:
        port = int(re.findall(r":(\d+)/", web.url)[0])
        opened = toolboxes.open([sse(web.url)])
        box = await opened.__aenter__()
        waiting = asyncio.create_task(call(box, "web.wait", '{"seconds": 600}', timeout=600))
        await called(web)
    lost = await waiting
    away = await call(box, "web.echo", '{"text": "a"}')
    async with served(port, sse=True):
        back = await call(box, "web.echo", '{"text": "b"}')
        await opened.__aexit__(None, None, None)
    assert lost.is_error and "outcome is unknown" in lost.content
    assert away.is_error and back == ToolOutcome("b")


async def test_messages_are_sent_to_no_other_host(toolboxes: McpToolboxes) -> None:
    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        writer.write(b"event: endpoint\ndata: http://127.0.0.2:80/messages\n\n")
        await writer.drain()
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
    async with listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/sse"
        async with toolboxes.open([sse(url)]) as box:
            assert "to another host" in box.unavailable["web"]


async def test_cancelling_in_the_middle_of_a_call_closes_the_stream(toolboxes: McpToolboxes) -> None:
    async with served(sse=True) as web:
        entered = asyncio.Event()

        async def execution() -> None:
            async with toolboxes.open([sse(web.url)]) as box:
                entered.set()
                await call(box, "web.wait", '{"seconds": 600}', timeout=600)

        task = asyncio.create_task(execution())
        await asyncio.wait_for(entered.wait(), 60)
        await called(web)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(60):
                await task
