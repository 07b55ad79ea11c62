"""Passes a request of aiohttp on to an ASGI application, and its response back.

The MCP SDK serves ASGI. Its responses here are whole (JSON, no stream), so the body is collected and sent at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp import web

AsgiMessage = MutableMapping[str, Any]
AsgiApp = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]
_PASSED_ON = frozenset({b"accept", b"content-type", b"mcp-protocol-version", b"mcp-method", b"mcp-name"})
"""Headers that the application sees: those of MCP. Credentials stay here."""


async def call_asgi(app: AsgiApp, request: web.Request, body: bytes, state: dict[str, Any]) -> web.Response:
    """Returns the response of an ASGI application.

    Args:
        app: the application.
        request: the request.
        body: its body, already read within limits.
        state: what handlers find in the scope of the request.
    """
    status, headers, content = 500, list[tuple[bytes, bytes]](), bytearray()
    given = False

    async def receive() -> AsgiMessage:
        nonlocal given
        if given:  # a client that leaves cancels the request, so there is nothing more to tell
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: AsgiMessage) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            content.extend(message.get("body", b""))

    await app(_scope(request, state), receive, send)
    response = web.Response(status=status, body=bytes(content))
    for name, value in headers:
        if name.lower() not in (b"content-length", b"transfer-encoding"):
            response.headers[name.decode("latin-1")] = value.decode("latin-1")
    return response


def _scope(request: web.Request, state: dict[str, Any]) -> AsgiMessage:
    raw = [(name.lower(), value) for name, value in request.raw_headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name, value) for name, value in raw if name in _PASSED_ON or name.startswith(b"mcp-param-")],
        "client": None,
        "server": None,
        "state": state,
    }
