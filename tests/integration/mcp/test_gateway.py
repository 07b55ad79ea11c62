"""Tests `tarsy mcp-gateway`: a stdio server behind streamable HTTP, called by our own toolbox."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from integration.mcp.gateway import TOKEN, WAIT, Running, gateway, gateway_process
from integration.mcp.servers import resolve
from tarsy.cli.main import app
from tarsy.mcp.gateway import GatewayLimits
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.record.messages import ToolOutcome

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture
def toolboxes() -> McpToolboxes:
    """One of the two ways to call; test_http_tools.py shows that they do the same."""
    return McpToolboxes(resolve, mask=str)


@pytest.fixture(params=["child", "launcher"])
async def running(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Running]:
    """A gateway whose server is a child, and one whose server runs in another container."""
    async with gateway(tmp_path, env={"TOKEN": "tool-token"}, launched=request.param == "launcher") as found:
        yield found


async def call(box: McpToolbox, tool: str, arguments: str = "{}", timeout: float = WAIT) -> ToolOutcome:
    return await box.call(f"small.{tool}", arguments, timeout=timeout, idempotency_key="key-1")


async def gone(pid: int) -> bool:
    """Whether a process ends (one that nobody waited for yet has ended too)."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if of_process(pid, "stat").rpartition(")")[2].split()[0] == "Z":
            return True
        await asyncio.sleep(0.05)
    return False


def of_process(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ") Z"


async def post(client: httpx2.AsyncClient, url: str, body: object, session: str | None = None) -> httpx2.Response:
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "accept": "application/json, text/event-stream",
        **({"mcp-session-id": session} if session else {}),
    }
    return await client.post(url, json=body, headers=headers)


async def test_a_stdio_server_has_its_tools_instructions_and_answers_behind_http(
    running: Running, toolboxes: McpToolboxes
) -> None:
    async with toolboxes.open([running.server()]) as box:
        assert box.unavailable == {}
        assert len(box.tools) == 14 and box.instructions == {"small": "Be brief."}
        assert await call(box, "echo", '{"text": "hello"}') == ToolOutcome("hello")
        assert (await call(box, "rpc_error")).is_error
        assert "tarsy.dev/idempotency-key" in (await call(box, "meta")).content


async def test_each_session_has_a_process_of_its_own_that_ends_with_it(
    running: Running, toolboxes: McpToolboxes
) -> None:
    async with toolboxes.open([running.server()]) as one, toolboxes.open([running.server()]) as other:
        pids = [int((await call(box, "pid")).content) for box in (one, other)]
        assert len(set(pids)) == 2
    assert await gone(pids[0]) and await gone(pids[1])


async def test_a_large_result_arrives_whole(running: Running, toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([running.server()]) as box:
        outcome = await call(box, "big", '{"n": 20000000}')
    assert not outcome.is_error and len(outcome.content) == 20_000_000


async def test_many_sessions_work_side_by_side(running: Running, toolboxes: McpToolboxes) -> None:
    async def one(number: int) -> str:
        async with toolboxes.open([running.server()]) as box:
            assert box.unavailable == {}
            return (await call(box, "echo", json.dumps({"text": f"n{number}"}))).content

    assert await asyncio.gather(*(one(n) for n in range(12))) == [f"n{n}" for n in range(12)]


async def test_a_cancelled_call_leaves_the_session_usable(running: Running, toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([running.server()]) as box:
        pid = (await call(box, "pid")).content
        late = await call(box, "wait", '{"n": 600}', timeout=0.2)
        assert late.is_error and "no answer within 0.2 s" in late.content
        assert (await call(box, "pid")).content == pid


async def test_a_child_that_dies_is_another_session_and_the_call_is_not_lost_in_silence(
    running: Running, toolboxes: McpToolboxes
) -> None:
    async with toolboxes.open([running.server()]) as box:
        before = (await call(box, "pid")).content
        died = await call(box, "die")
        assert died.is_error and "the tool server has ended: it exited with code 3" in died.content
        assert "outcome is unknown" in died.content
        assert "tool-token" not in died.content
        assert (await call(box, "pid")).content not in ("", before)


async def test_a_repeatable_call_is_made_again_with_a_new_child(tmp_path: Path, toolboxes: McpToolboxes) -> None:
    count = tmp_path / "count"
    async with gateway(tmp_path, env={"COUNT_FILE": str(count)}) as running:
        async with toolboxes.open([running.server(repeatable=("count_then_die",))]) as box:
            assert (await call(box, "count_then_die")).is_error
    assert count.read_text() == "called\ncalled\n"


async def test_a_server_that_ends_at_its_start_is_unavailable_and_says_so(
    tmp_path: Path, toolboxes: McpToolboxes
) -> None:
    async with gateway(tmp_path, "exit") as running, toolboxes.open([running.server()]) as box:
        assert "the tool server has ended" in box.unavailable["small"]


async def test_without_the_token_nothing_is_answered_but_health(running: Running, toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([running.server(token="wrong")]) as box:
        assert "401" in box.unavailable["small"]
    async with httpx2.AsyncClient() as client:
        base = running.url.removesuffix("/mcp")
        assert (await client.get(f"{base}/healthz")).status_code == 200
        assert (await client.get(f"{base}/other")).status_code == 404
        for headers in (
            {},
            {"authorization": TOKEN},
            {"authorization": "Bearer x"},
            {"authorization": f"Basic {TOKEN}"},
        ):
            assert (await client.post(running.url, json=INITIALIZE, headers=headers)).status_code == 401


async def test_a_rotated_token_counts_at_once(running: Running, toolboxes: McpToolboxes) -> None:
    running.token_file.write_text("another-token")
    async with toolboxes.open([running.server(token="another-token")]) as box:
        assert await call(box, "echo", '{"text": "in"}') == ToolOutcome("in")
    async with toolboxes.open([running.server()]) as box:
        assert "401" in box.unavailable["small"]


async def test_more_sessions_than_allowed_are_refused_until_one_has_ended(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, limits=GatewayLimits(sessions=1)) as running,
        httpx2.AsyncClient(timeout=WAIT) as client,
    ):
        first = await post(client, running.url, INITIALIZE)
        session = first.headers["mcp-session-id"]
        assert first.status_code == 200 and first.json()["result"]["serverInfo"]["name"] == "small"
        refused = await post(client, running.url, INITIALIZE)
        assert refused.status_code == 503 and "the limit of 1 sessions is reached" in refused.json()["error"]["message"]
        ended = await client.delete(
            running.url, headers={"authorization": f"Bearer {TOKEN}", "mcp-session-id": session}
        )
        assert ended.status_code == 200
        assert (await post(client, running.url, INITIALIZE, session)).status_code == 404
        async with asyncio.timeout(WAIT):
            for _ in range(600):
                again = await post(client, running.url, INITIALIZE)
                if again.status_code != 503:
                    break
                await asyncio.sleep(0.1)
        assert again.status_code == 200


async def test_a_message_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, limits=GatewayLimits(message_bytes=2**20)) as running,
        httpx2.AsyncClient(timeout=WAIT) as client,
    ):
        large = {**INITIALIZE, "params": {**INITIALIZE["params"], "x": "x" * 2**20}}
        assert (await post(client, running.url, large)).status_code == 413
        assert (await post(client, running.url, {**INITIALIZE, "method": "tools/list"})).status_code == 400


async def test_a_session_that_nobody_asks_ends(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path, limits=GatewayLimits(idle_seconds=0.2)) as running,
        httpx2.AsyncClient(timeout=WAIT) as client,
    ):
        session = (await post(client, running.url, INITIALIZE)).headers["mcp-session-id"]
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        async with asyncio.timeout(WAIT):
            while True:
                await asyncio.sleep(0.5)
                if (await post(client, running.url, ask, session)).status_code == 404:
                    break


async def test_a_gateway_in_a_process_of_its_own_gives_its_child_what_is_declared_and_ends_with_it_at_sigterm(
    tmp_path: Path,
) -> None:
    toolboxes = McpToolboxes(resolve, mask=str)
    async with gateway_process(tmp_path, "--env", "TOKEN", mode="stubborn") as (running, process):
        async with toolboxes.open([running.server()]) as box:
            environment = json.loads((await call(box, "environment")).content)
            assert set(environment) == {"PATH", "HOME", "TOKEN"} and environment["TOKEN"] == "tool-token"
            assert environment["HOME"] != str(tmp_path)
            assert TOKEN not in of_process(process.pid, "environ") + of_process(process.pid, "cmdline")
            pids = [int((await call(box, tool)).content) for tool in ("pid", "spawn")]
            waiting = asyncio.create_task(call(box, "wait", '{"n": 600}'))
            await asyncio.sleep(0.2)
            process.terminate()
            async with asyncio.timeout(WAIT):
                assert await process.wait() == 0
                assert (await waiting).is_error
            assert [await gone(pid) for pid in pids] == [True, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "was not found on PATH"), (("--env", "NOT_SET"), "variable NOT_SET (--env) is not set")],
)
def test_what_cannot_be_started_is_one_sentence(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["mcp-gateway", "--token-file", str(tmp_path), *options, "--", "no-such-program"])
    assert result.exit_code == 1 and said in result.output and "Traceback" not in result.output
