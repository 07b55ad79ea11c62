"""Serves a stdio tool server over streamable HTTP with a bearer token (`tarsy mcp-gateway`).

Each HTTP session has its own child process in its own process group, and both end together: if a child exits, its
session ends (404), and the next session of the client starts a new child. Sessions begin with `initialize`; the
sessionless protocol (2026-07-28) is refused as an unknown method, on which clients fall back. The token file is read
for each request, so that a rotated token applies at once; no child receives the token.

The child is one of this process, or one that `tarsy-launcher` starts in the container of the server's own image
(`tarsy.mcp.server_process`). Then `/readyz` also asks whether that container runs.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import mcp_types as types
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from tarsy.listening.asgi import SIGN_IN
from tarsy.mcp.gateway_session import GatewaySession, Tool
from tarsy.mcp.http_failures import LARGEST_ANSWER
from tarsy.mcp.server_process import Launcher, connect

_log = logging.getLogger(__name__)

_PATH = "/mcp"
SESSION = "mcp-session-id"
_CLOSE_SECONDS = 15.0
"""Maximum seconds for sessions to end."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """Limits of a gateway.

    Args:
        sessions: maximum concurrent sessions.
        message_bytes: maximum size of a message in bytes, in either direction.
        idle_seconds: seconds after which a session without requests ends.
    """

    sessions: int = 64
    message_bytes: int = LARGEST_ANSWER
    idle_seconds: float = 600.0


class Gateway:
    """The ASGI application of the gateway; serve it inside `running`.

    Args:
        tool: the program to start for each session, or the launcher that starts it.
        token_file: file with the bearer token.
        limits: limits of the gateway.
    """

    def __init__(self, tool: Tool | Launcher, token_file: Path, limits: GatewayLimits | None = None) -> None:
        self._tool = tool
        self._token_file = token_file
        self._limits = limits or GatewayLimits()
        self._sessions: dict[str, tuple[GatewaySession, asyncio.Task[None]]] = {}
        self._application = RequestBodyLimitMiddleware(self._mcp, self._limits.message_bytes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends all sessions and the process groups of their children on exit."""
        try:
            yield
        finally:
            await self.end_sessions()

    async def end_sessions(self) -> None:
        """Ends all sessions, and waits for them."""
        tasks = [task for _, task in self._sessions.values()]
        for session, _ in self._sessions.values():
            session.end()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request (ASGI)."""
        if scope["type"] != "http":
            return
        if scope["path"] == "/healthz":
            await PlainTextResponse("ok\n")(scope, receive, send)
        elif scope["path"] == "/readyz":
            await (await self._ready())(scope, receive, send)
        elif scope["path"] != _PATH:
            paths = f"{_PATH}, /healthz and /readyz"
            await PlainTextResponse(f"unknown path; the paths are {paths}\n", 404)(scope, receive, send)
        elif (refused := self._refused(Headers(scope=scope))) is not None:
            await refused(scope, receive, send)
        else:
            scope.get(SIGN_IN, _nobody)()
            await self._application(scope, receive, send)

    async def _ready(self) -> PlainTextResponse:
        """Returns whether a session would find its server's container running."""
        if isinstance(self._tool, Launcher):
            try:
                (await connect(self._tool.socket)).close()
            except OSError:
                return PlainTextResponse("the container of the tool server does not run\n", 503)
        return PlainTextResponse("ok\n")

    def _refused(self, headers: Headers) -> PlainTextResponse | None:
        """Returns the error response to a request without the token; None with it."""
        try:
            token = self._token_file.read_text().strip()
        except OSError as error:
            _log.error("cannot read the token file %s: %s", self._token_file, error.strerror)
            return PlainTextResponse("the gateway cannot read its token\n", 503)
        scheme, _, brought = headers.get("authorization", "").partition(" ")
        if token and scheme.lower() == "bearer" and hmac.compare_digest(brought.strip().encode(), token.encode()):
            return None
        return PlainTextResponse("a bearer token is required\n", 401, {"WWW-Authenticate": "Bearer"})

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            text = f"protocol version {version} is not supported; begin a session with initialize"
            await _error(404, types.METHOD_NOT_FOUND, text)(scope, receive, send)
            return
        name = headers.get(SESSION)
        if name is None:
            await self._open(scope, receive, send)
            return
        found = self._sessions.get(name)
        if found is None or found[0].ended:
            await _error(404, types.INVALID_REQUEST, "the session has ended; begin a new one")(scope, receive, send)
            return
        await found[0].answer(scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Opens a session for a request; unless the request is an `initialize`, the session ends at once."""
        if len(self._sessions) >= self._limits.sessions:
            text = f"the limit of {self._limits.sessions} sessions is reached; end one, or wait"
            await _error(503, types.INTERNAL_ERROR, text)(scope, receive, send)
            return
        session = GatewaySession(self._tool, self._limits.idle_seconds)
        task = asyncio.create_task(session.run(), name=f"session {session.id}")
        self._sessions[session.id] = session, task
        task.add_done_callback(lambda _: self._sessions.pop(session.id, None))
        established = False
        try:
            await session.connected.wait()
            established = await _answered(session, scope, receive, send)
        finally:
            if not established:
                session.end()


def _nobody() -> None:
    """Does nothing, for servers without a connection guard."""


async def _answered(session: GatewaySession, scope: Scope, receive: Receive, send: Send) -> bool:
    """Passes the first request to a session; returns whether it succeeded."""
    status = 500

    async def watch(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    await session.answer(scope, receive, watch)
    return status < 400


def _error(status: int, code: int, text: str) -> JSONResponse:
    error = {"code": code, "message": text}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)
