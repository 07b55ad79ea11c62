"""Tests tool servers behind streamable HTTP: both protocol versions, refusals, and recovery."""

import asyncio
import json
import re

import pytest

from integration.mcp.servers import SECRET, called, http, resolve, served
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey, Value
from tarsy.record.messages import ToolOutcome

BEARER = Value(name="Authorization", secret=SecretKey(namespace="n", name="s", key="k"))


async def call(box: McpToolbox, name: str, arguments: str = "{}", timeout: float = 60) -> ToolOutcome:
    return await box.call(name, arguments, timeout=timeout, idempotency_key="key-1")


@pytest.mark.parametrize("legacy", [False, True])
async def test_tools_answer_in_both_eras_of_the_protocol(toolboxes: McpToolboxes, legacy: bool) -> None:
    async with served() as web:
        web.legacy = legacy
        async with toolboxes.open([http(web.url)]) as box:
            assert box.tools[0].name == "web.big"
            assert box.instructions == {"web": "Ask `echo` first."}
            assert await call(box, "web.echo", '{"text": "a", "times": 3}') == ToolOutcome("aaa")
            refused = await call(box, "web.refuse", '{"text": "no such pod"}')
            exploded = await call(box, "web.explode")
            key = await call(box, "web.key")
        assert ("initialize" in web.methods) is legacy
    assert refused.is_error and "no such pod" in refused.content
    assert exploded.is_error and "inside" not in exploded.content
    assert "'tarsy.dev/idempotency-key': 'key-1'" in key.content


@pytest.mark.sweep("another transport of as much")
@pytest.mark.parametrize("legacy", [False, True])
async def test_a_result_of_twenty_megabytes_arrives_whole(toolboxes: McpToolboxes, legacy: bool) -> None:
    async with served() as web:
        web.legacy = legacy
        async with toolboxes.open([http(web.url)]) as box:
            outcome = await call(box, "web.big", '{"megabytes": 20}', timeout=60)
    assert not outcome.is_error and len(outcome.content) == 20 * 1024 * 1024


@pytest.mark.parametrize("legacy", [False, True])
async def test_calls_run_side_by_side_and_a_timeout_ends_one_of_them_only(
    toolboxes: McpToolboxes, legacy: bool
) -> None:
    async with served() as web:
        web.legacy = legacy
        async with toolboxes.open([http(web.url)]) as box:
            patient = asyncio.create_task(call(box, "web.wait", '{"seconds": 600}', timeout=600))
            hurried = asyncio.create_task(call(box, "web.wait", '{"seconds": 600}', timeout=0.2))
            outcomes = await asyncio.gather(*(call(box, "web.wait", '{"seconds": 0.3}') for _ in range(8)))
            late = await hurried
            assert not patient.done()
            patient.cancel()
            await asyncio.wait([patient])
    assert [outcome.content for outcome in outcomes] == ["waited"] * 8
    assert late.is_error and "no answer within 0.2 s" in late.content


async def test_headers_come_from_secrets_and_never_from_the_environment(
    toolboxes: McpToolboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with served() as web:
        headers = (BEARER, Value(name="X-Tenant", value="blue"))
        async with toolboxes.open([http(web.url, headers=headers)]) as box:
            assert await call(box, "web.echo", '{"text": "direct"}') == ToolOutcome("direct")
            echoed = await call(box, "web.echo", json.dumps({"text": f"I saw {SECRET}"}))
        assert {sent["authorization"] for sent in web.headers} == {SECRET}
        assert {sent["x-tenant"] for sent in web.headers} == {"blue"}
    assert echoed.content == "I saw [redacted]"


@pytest.mark.parametrize(
    ("status", "told"), [(401, "HTTP 401 Unauthorized"), (500, "HTTP 500"), (307, "HTTP 307 Temporary Redirect")]
)
async def test_a_server_that_refuses_at_the_start_is_unavailable_with_its_status(
    toolboxes: McpToolboxes, status: int, told: str
) -> None:
    async with served() as web:
        web.refuse = status
        async with toolboxes.open([http(web.url, headers=(BEARER,))]) as box:
            assert told in box.unavailable["web"]
            assert SECRET not in box.unavailable["web"] and "<p>" not in box.unavailable["web"]


async def test_servers_that_are_not_there_or_never_answer_are_unavailable(toolboxes: McpToolboxes) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with listener:
        mute = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
        servers = [
            http("http://127.0.0.1:9/mcp", name="refused"),
            http(mute, name="mute", init_seconds=0.5),
            http("ftp://127.0.0.1/mcp", name="scheme"),
        ]
        async with toolboxes.open(servers) as box:
            assert "no connection to http://127.0.0.1:9/mcp: connection refused" in box.unavailable["refused"]
            assert "within 0.5 s" in box.unavailable["mute"]
            assert set(box.unavailable) == {"refused", "mute", "scheme"}


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("169.254.169.254", "host 169.254.169.254 has a link-local, multicast or unspecified address"),
        ("127.0.0.1", "host 127.0.0.1 is the operator's own pod"),
        ("localhost", "host localhost is the operator's own pod"),
        ("tools.elsewhere.svc", "host tools.elsewhere.svc is a Service of namespace elsewhere, not of "),
        ("2130706433", "the URL's host 2130706433 is not an IPv4 address of four decimal numbers"),
        ("\U0001fbf1\U0001fbf2\U0001fbf7.0.0.1", "the URL contains the character U+1FBF1"),
    ],
)
async def test_a_url_that_leads_where_no_tenant_may_go_is_not_contacted(host: str, told: str) -> None:
    async with served() as web:
        url = web.url.replace("127.0.0.1", host)
        async with McpToolboxes(resolve, mask=str, destinations=Destinations(in_pod=True)).open([http(url)]) as box:
            assert told in box.unavailable["web"] and "its URL is not allowed: " in box.unavailable["web"]
        assert web.methods == []


async def test_a_host_that_the_administrator_opened_is_asked_at_any_of_its_addresses() -> None:
    async with served() as web:  # on IPv4 only; localhost may be found at ::1 first
        url = web.url.replace("127.0.0.1", "localhost")
        opened = Destinations.of(["localhost"], in_pod=True)
        async with McpToolboxes(resolve, mask=str, destinations=opened).open([http(url)]) as box:
            assert await call(box, "web.echo", '{"text": "a"}') == ToolOutcome("a")


async def test_a_server_that_was_restarted_is_reached_by_the_next_call(toolboxes: McpToolboxes) -> None:
    async with served() as web:
        port = int(re.findall(r":(\d+)/", web.url)[0])
        web.legacy = True
        opened = toolboxes.open([http(web.url)])
        box = await opened.__aenter__()
    away = await call(box, "web.echo", '{"text": "a"}')
    async with served(port) as web:
        web.legacy = True
        back = await call(box, "web.echo", '{"text": "b"}')
        again = await call(box, "web.echo", '{"text": "c"}')
        assert web.methods.count("tools/call") == 2
        await opened.__aexit__(None, None, None)
    assert away.is_error and f"no connection to http://127.0.0.1:{port}/mcp: connection refused" in away.content
    assert [back, again] == [ToolOutcome("b"), ToolOutcome("c")]


async def test_a_session_that_the_server_forgot_is_opened_again_and_the_call_made_once(
    toolboxes: McpToolboxes,
) -> None:
    async with served() as web:
        port = int(re.findall(r":(\d+)/", web.url)[0])
        web.legacy = True
        opened = toolboxes.open([http(web.url)])
        box = await opened.__aenter__()
    async with served(port) as web:
        web.legacy = True
        back = await call(box, "web.echo", '{"text": "b"}')
        await opened.__aexit__(None, None, None)
    assert back == ToolOutcome("b")


async def test_a_rotated_credential_is_fetched_when_the_old_one_is_refused() -> None:
    current = ["old"]

    async def rotating(value: Value) -> str:
        return f"Bearer {current[0]}"

    async with served() as web:
        async with McpToolboxes(rotating, mask=str).open([http(web.url, headers=(BEARER,))]) as box:
            web.accepted = "Bearer new"
            refused = await call(box, "web.echo", '{"text": "a"}')
            current[0] = "new"
            accepted = await call(box, "web.echo", '{"text": "b"}')
    assert refused.is_error and "HTTP 401" in refused.content and "old" not in refused.content
    assert accepted == ToolOutcome("b")


async def test_a_call_that_the_gateway_lost_is_not_repeated_unless_its_tool_is_repeatable(
    toolboxes: McpToolboxes,
) -> None:
    async with served() as web:
        async with toolboxes.open([http(web.url), http(web.url, name="safe", repeatable=("echo",))]) as box:
            web.refuse_calls = [502]
            once = await call(box, "web.echo", '{"text": "a"}')
            web.refuse_calls = [502]
            twice = await call(box, "safe.echo", '{"text": "b"}')
            web.refuse_calls = [429]
            busy = await call(box, "safe.echo", '{"text": "c"}')
    assert once.is_error and "HTTP 502" in once.content and "outcome is unknown" in once.content
    assert twice == ToolOutcome("b")
    assert busy.is_error and "HTTP 429 Too Many Requests" in busy.content


async def test_cancelling_in_the_middle_of_a_call_closes_the_session(toolboxes: McpToolboxes) -> None:
    async with served() as web:
        web.legacy = True
        entered = asyncio.Event()

        async def execution() -> None:
            async with toolboxes.open([http(web.url)]) as box:
                entered.set()
                await call(box, "web.wait", '{"seconds": 600}', timeout=600)

        task = asyncio.create_task(execution())
        await asyncio.wait_for(entered.wait(), 60)
        await called(web)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(60):
                await task
        assert [left.get_name() for left in asyncio.all_tasks() if left.get_name().startswith("mcp ")] == []
