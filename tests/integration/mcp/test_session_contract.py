"""Checks what both ways to list and call tools over streamable HTTP send and take: headers, streams, cancellation."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from integration.mcp.servers import http
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.record.messages import ToolOutcome

Stream = Callable[["Server", web.Request, dict[str, Any]], Any]
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "hang")]
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "streams", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
}


def event(message: dict[str, Any], *, number: str = "") -> bytes:
    """A message as an event of a stream."""
    head = f"id: {number}\nretry: 10\n" if number else ""
    return f"{head}event: message\ndata: {json.dumps(message)}\n\n".encode()


def result(request: int | str, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request, "result": {"content": [{"type": "text", "text": text}]}}


class Server:
    """A server of the handshake era; `stream` writes the events of a call's answer."""

    def __init__(self, stream: Stream, *streams: str) -> None:
        self.url = ""
        self._streams = streams or ("tools/call",)
        self.received: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.resumed: list[str] = []
        self.arrived = asyncio.Event()
        self._stream = stream

    async def post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        self.received.append(message)
        self.arrived.set()
        self.headers.append(request.headers)
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        if message["method"] in self._streams:
            return await self._streamed(request, message)
        if message["method"] not in RESULTS:
            error = {"code": -32601, "message": "Method not found"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        response = web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]})
        response.headers["Mcp-Session-Id"] = "session-1"
        return response

    async def get(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID")
        if last is None:
            return web.Response(status=405)
        self.resumed.append(last)
        return await self._streamed(request, self.calls[-1])

    async def delete(self, request: web.Request) -> web.Response:
        return web.Response()

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [message for message in self.received if message.get("method") == "tools/call"]

    async def received_message(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Waits for a message."""
        async with asyncio.timeout(30):
            while not (found := [message for message in self.received if wanted(message)]):
                self.arrived.clear()
                await self.arrived.wait()
        return found[0]

    async def _streamed(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for part in self._stream(self, request, message):
            await response.write(part)
        return response


@asynccontextmanager
async def serving(stream: Stream, *streams: str) -> AsyncIterator[Server]:
    """Serves; the answers to the methods `streams` are streams, without any those to calls."""
    server = Server(stream, *streams)
    app = web.Application()
    app.router.add_post("/mcp", server.post)
    app.router.add_get("/mcp", server.get)
    app.router.add_delete("/mcp", server.delete)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield server
    finally:
        await runner.cleanup()


async def call(box: McpToolbox, name: str = "web.echo", timeout: float = 30) -> ToolOutcome:
    return await box.call(name, "{}", timeout=timeout, idempotency_key="key-1")


async def answering(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
    yield event(result(message["id"], "answered"))


async def test_calls_carry_the_session_and_its_version(toolboxes: McpToolboxes) -> None:
    async with serving(answering) as server, toolboxes.open([http(server.url)]) as box:
        assert await call(box) == ToolOutcome("answered")
    sent = next(h for h, m in zip(server.headers, server.received, strict=True) if m.get("method") == "tools/call")
    assert sent["Mcp-Session-Id"] == "session-1" and sent["MCP-Protocol-Version"] == "2025-06-18"
    assert {part.strip() for part in sent["Accept"].split(",")} == {"application/json", "text/event-stream"}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_events_beside_the_answer_are_passed_over(toolboxes: McpToolboxes, ending: str) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        parts = (
            b": comment\n\n" + event(progress) + b"event: other\ndata: {}\n\n" + event(result(message["id"], "done"))
        )
        yield b""
        for byte in parts.replace(b"\n", ending.encode()):
            yield bytes([byte])

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        assert await call(box) == ToolOutcome("done")


@pytest.mark.parametrize("method", ["ping", "elicitation/create", "sampling/createMessage"])
async def test_a_request_of_the_server_is_answered_before_its_result_comes(
    toolboxes: McpToolboxes, method: str
) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        params: dict[str, Any] = {}
        if method == "elicitation/create":
            params = {"message": "your name?", "requestedSchema": {"type": "object", "properties": {}}}
        elif method == "sampling/createMessage":
            params = {"messages": [], "maxTokens": 5}
        yield event({"jsonrpc": "2.0", "id": "server-1", "method": method, "params": params})
        answer = await server.received_message(lambda sent: sent.get("id") == "server-1")
        yield event(result(message["id"], "refused" if "error" in answer else "pong"))

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        assert await call(box) == ToolOutcome("pong" if method == "ping" else "refused")


async def test_a_stream_that_ends_before_its_answer_is_resumed_after_its_last_event(toolboxes: McpToolboxes) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        if len(server.resumed) < 2:
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
            yield event(note, number=f"event-{len(server.resumed)}")
        else:
            yield event(result(message["id"], "at last"), number="event-9")

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        assert await call(box) == ToolOutcome("at last")
    assert server.resumed == ["event-0", "event-1"] and len(server.calls) == 1


async def test_an_event_without_data_is_only_a_place_to_resume_from(toolboxes: McpToolboxes) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        if not server.resumed:
            yield b"id: primed\nretry: 0\ndata: \n\n"
        else:
            yield event(result(message["id"], "at last"))

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        assert await call(box) == ToolOutcome("at last")
    assert server.resumed == ["primed"] and len(server.calls) == 1


async def test_a_stream_without_an_answer_or_an_event_to_resume_from_has_an_unknown_outcome(
    toolboxes: McpToolboxes,
) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        yield b": nothing\n\n"

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        outcome = await call(box)
    assert outcome.is_error and "outcome is unknown" in outcome.content, outcome
    assert len(server.calls) == 1 and server.resumed == []


async def test_a_call_that_is_given_up_is_cancelled_on_the_server_and_the_next_one_works(
    toolboxes: McpToolboxes,
) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        if message["params"]["name"] == "hang":
            yield b": soon\n\n"
            await server.received_message(lambda sent: sent.get("method") == "notifications/cancelled")
        yield event(result(message["id"], "answered"))

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        late = await call(box, "web.hang", timeout=0.5)
        notice = await server.received_message(lambda sent: sent.get("method") == "notifications/cancelled")
        assert await call(box) == ToolOutcome("answered")
    assert late.is_error and "no answer within 0.5 s" in late.content
    assert notice["params"]["requestId"] == server.calls[0]["id"]


async def test_arguments_arrive_as_they_are_and_results_come_back_so(toolboxes: McpToolboxes) -> None:
    odd = {"large": 10**30, "text": "café \U0001f600 \u2028", "deep": [[[[{}]]]]}

    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        assert message["params"]["arguments"] == odd
        yield event(result(message["id"], "tab\t, nul \u0000, emoji \U0001f600"))

    async with serving(stream) as server, toolboxes.open([http(server.url)]) as box:
        outcome = await box.call("web.echo", json.dumps(odd), timeout=30, idempotency_key="key-1")
    assert not outcome.is_error and outcome.content.startswith("tab\t, nul ") and outcome.content.endswith("\U0001f600")


def listed(request: int, result: dict[str, Any]) -> bytes:
    return event({"jsonrpc": "2.0", "id": request, "result": result})


async def test_tools_are_listed_page_by_page_in_the_session_also_from_a_stream(toolboxes: McpToolboxes) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        cursor = message.get("params", {}).get("cursor")
        assert cursor in (None, "second")
        page = {"tools": TOOLS[:1], "nextCursor": "second"} if cursor is None else {"tools": TOOLS[1:]}
        yield b": soon\n\n" + listed(message["id"], page)

    async with serving(stream, "tools/list") as server, toolboxes.open([http(server.url)]) as box:
        assert [tool.name for tool in box.tools] == ["web.echo", "web.hang"]
    lists = [h for h, m in zip(server.headers, server.received, strict=True) if m.get("method") == "tools/list"]
    assert [(h["Mcp-Session-Id"], h["MCP-Protocol-Version"]) for h in lists] == [("session-1", "2025-06-18")] * 2


async def test_a_list_without_an_end_makes_a_server_unavailable(toolboxes: McpToolboxes) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        yield listed(message["id"], {"tools": TOOLS, "nextCursor": "again"})

    async with serving(stream, "tools/list") as server, toolboxes.open([http(server.url)]) as box:
        assert "more than 100 pages" in box.unavailable["web"], box.unavailable


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"tools": [{"name": 7}]}},
        {"result": {"tools": "none"}},
        {"error": {"code": -32603, "message": "the secret is hunter2"}},
    ],
)
async def test_an_answer_that_is_no_list_of_tools_makes_a_server_unavailable(
    toolboxes: McpToolboxes, answer: dict[str, Any]
) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        yield event({"jsonrpc": "2.0", "id": message["id"], **answer})

    async with serving(stream, "tools/list") as server, toolboxes.open([http(server.url)]) as box:
        assert not box.tools and "web" in box.unavailable
        assert "hunter2" not in box.unavailable["web"]


async def test_a_list_that_does_not_come_makes_a_server_unavailable_in_time(toolboxes: McpToolboxes) -> None:
    async def stream(server: Server, request: web.Request, message: dict[str, Any]) -> AsyncIterator[bytes]:
        yield b": soon\n\n"
        await asyncio.Event().wait()

    async with (
        serving(stream, "tools/list") as server,
        toolboxes.open([http(server.url, init_seconds=0.5)]) as box,
    ):
        assert "within 0.5 s" in box.unavailable["web"], box.unavailable
