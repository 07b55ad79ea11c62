"""Provides real tool servers: child processes, and one under uvicorn on loopback."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer

from e2e.waiting import until
from integration.mcp.tool_server import make_server
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan, StdioTransport, Value

SMALL = Path(__file__).with_name("small_server.py")
SDK_SERVER = Path(__file__).with_name("tool_server.py")
SECRET = "token-of-the-test"


async def resolve(value: Value) -> str:
    return SECRET if value.value is None else value.value


def stdio(
    *args: str, script: Path = SMALL, env: tuple[Value, ...] = (), name: str = "small", **rest: Any
) -> ServerPlan:
    transport = StdioTransport(command=sys.executable, args=("-S", str(script), *args), env=env)
    return plan(name, transport, **rest)


def http(url: str, *, name: str = "web", transport: Mapping[str, Any] | None = None, **rest: Any) -> ServerPlan:
    """A server by HTTP; `transport` and `headers` are of its transport, what follows is of its plan."""
    fields = {"headers": rest.pop("headers", ()), **(transport or {})}
    return plan(name, HttpTransport(url=url, **fields), **rest)


def plan(name: str, transport: Any, **rest: Any) -> ServerPlan:
    return ServerPlan(
        ref=ObjectRef(kind="MCPServer", namespace="tests", name=name), name=name, transport=transport, **rest
    )


@dataclass
class Web:
    """A tool server under uvicorn, and the gate in front of it."""

    url: str
    server: MCPServer
    refuse: int | None = None
    refuse_calls: list[int] = field(default_factory=list)
    accepted: str | None = None
    legacy: bool = False
    methods: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@asynccontextmanager
async def served(port: int = 0, *, sse: bool = False, tls: tuple[Path, Path] | None = None) -> AsyncIterator[Web]:
    """`tls` are the files of certificate and key."""
    web = Web("", make_server())
    inner = web.server.sse_app() if sse else web.server.streamable_http_app()

    async def gate(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        if scope["method"] != "POST":
            opening = {name.decode(): value.decode() for name, value in scope["headers"]}
            if sse and (refused := _status(web, "", opening)) is not None:
                await send({"type": "http.response.start", "status": refused, "headers": []})
                await send({"type": "http.response.body", "body": f"page that quotes {SECRET}".encode()})
                return
            await inner(scope, receive, send)
            return
        body = await _body(receive)
        method = json.loads(body)["method"]
        web.methods.append(method)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        web.headers.append(headers)
        status = _status(web, method, headers)
        if status is not None:
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/html")]})
            await send({"type": "http.response.body", "body": f"<p>page that quotes {SECRET}".encode()})
            return
        sent = False

        async def replay() -> Any:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await inner(scope, replay, send)

    listening = socket.create_server(("127.0.0.1", port))
    scheme, path = "https" if tls else "http", "sse" if sse else "mcp"
    web.url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/{path}"
    files = {"ssl_certfile": str(tls[0]), "ssl_keyfile": str(tls[1])} if tls else {}
    server = uvicorn.Server(uvicorn.Config(gate, log_level="error", timeout_graceful_shutdown=1, **files))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield web
    finally:
        server.should_exit = True
        await task


async def called(web: Web) -> None:
    """Waits until a call of a tool has come in."""

    async def look() -> bool:
        return "tools/call" in web.methods

    await until("a tool is called", look)


def _status(web: Web, method: str, headers: dict[str, str]) -> int | None:
    if web.legacy and method == "server/discover":
        return 404
    if web.accepted is not None and headers.get("authorization") != web.accepted:
        return 401
    if method == "tools/call" and web.refuse_calls:
        return web.refuse_calls.pop()
    return web.refuse


async def _body(receive: Callable[[], Awaitable[Any]]) -> bytes:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body
