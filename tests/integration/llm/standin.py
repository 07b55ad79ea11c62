"""A small OpenAI stand-in on loopback: each request is answered by the next function of a list."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a chat completion."""
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(**fields: Any) -> dict[str, Any]:
    """The chunk that reports usage: no choices."""
    return {**delta(), "choices": [], "usage": fields}


def event(chunk: dict[str, Any] | str) -> bytes:
    """One server-sent event."""
    return b"data: " + (chunk if isinstance(chunk, str) else json.dumps(chunk)).encode() + b"\n\n"


def stream(*parts: dict[str, Any] | bytes, done: bool = True, cut: bool = False, hang: bool = False) -> Answerer:
    """Answers 200 with these events (bytes as they are); then `[DONE]`, or a cut connection, or silence."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in parts:
            await response.write(part if isinstance(part, bytes) else event(part))
            await asyncio.sleep(0)
        if cut:
            assert request.transport is not None
            request.transport.close()
            return response
        if hang:
            await asyncio.Event().wait()
        if done:
            await response.write(event("[DONE]"))
        await response.write_eof()
        return response

    return answer


def text(*words: str) -> Answerer:
    """A proper answer in these pieces."""
    return stream(delta(role="assistant", content=""), *(delta(content=word) for word in words), delta("stop"))


def fail(
    status: int, body: Any = None, headers: dict[str, str] | None = None, content_type: str = "application/json"
) -> Answerer:
    """Answers with an error, in OpenAI's shape unless the body is given as text."""

    async def answer(request: web.Request) -> web.StreamResponse:
        content = body if isinstance(body, str) else json.dumps({"error": body or {"message": "no", "type": "t"}})
        return web.Response(status=status, text=content, headers=headers, content_type=content_type)

    return answer


async def hang(request: web.Request) -> web.StreamResponse:
    """Accepts the request and never answers."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


class StandIn:
    """The server: `answers` are used in order, the last one for ever; `requests` are bodies and headers as seen."""

    def __init__(self) -> None:
        self.answers: list[Answerer] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.peers: set[Any] = set()
        self.left = asyncio.Event()
        self.base_url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
        self.requests.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path)
        self.peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        try:
            return await answer(request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise


async def serve(standin: StandIn) -> web.AppRunner:
    """Starts it on a free port."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{path:.*}", standin.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    standin.base_url = f"http://{host}:{port}/v1"
    return runner
