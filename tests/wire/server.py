"""A server on loopback that says what a script tells it, byte for byte, and keeps what it was asked.

It knows no provider's API: `wire.openai` and its like make the parts of a stream in the recorded shape of theirs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Part = bytes | asyncio.Event


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of a model, whatever API it goes through: thinking, then text, each in pieces, then tool calls."""

    text: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event; text is sent as it is, everything else as JSON."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def stream(
    *parts: Part, cut: bool = False, hang: bool = False, status: int = 200, content_type: str = "text/event-stream"
) -> Answerer:
    """Answers with these bytes, in packets of their own; then it ends, cuts the connection, or says nothing more.

    An Event among the parts is waited for: a drip as slow as the test wants it.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": content_type})
        await response.prepare(request)
        for part in parts:
            if isinstance(part, asyncio.Event):
                await part.wait()
            else:
                await response.write(part)
                await asyncio.sleep(0)
        if cut:
            assert request.transport is not None
            request.transport.close()
            return response
        if hang:
            await asyncio.Event().wait()
        await response.write_eof()
        return response

    return answer


def fail(
    status: int, body: Any, headers: dict[str, str] | None = None, content_type: str = "application/json"
) -> Answerer:
    """Answers with a whole body; what is no text is sent as JSON."""

    async def answer(request: web.Request) -> web.StreamResponse:
        content = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=content, headers=headers, content_type=content_type)

    return answer


async def hang(request: web.Request) -> web.StreamResponse:
    """Accepts the request and never answers."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


@dataclass(slots=True)
class StandIn:
    """The server: `answers` are used in order, the last one for ever; the lists are what it was asked.

    With `known`, whoever asks for a model's description (a GET: the operator, before it calls a provider Ready) gets it
    at any time, and is in none of the lists.
    """

    url: str = ""
    known: Any = None
    answers: list[Answerer] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    peers: set[Any] = field(default_factory=set)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def base_url(self) -> str:
        """What an LLMProvider of the OpenAI kind has as baseURL."""
        return f"{self.url}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request; `left` is set when its client went away before the end."""
        if request.method == "GET" and self.known is not None:
            return web.json_response(self.known)
        self.bodies.append(await request.read())
        self.requests.append(json.loads(self.bodies[-1] or b"null"))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path_qs)
        self.peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        try:
            return await answer(request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise


@asynccontextmanager
async def standing_in() -> AsyncIterator[StandIn]:
    """The server, listening on a free port."""
    standin = StandIn()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", standin.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        standin.url = f"http://{host}:{port}"
        yield standin
    finally:
        await runner.cleanup()
