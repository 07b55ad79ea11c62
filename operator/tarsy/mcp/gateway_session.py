"""Connects one HTTP session of the gateway with its child process.

Decision: messages are passed unchanged; child and client negotiate version and capabilities with each other. The
gateway answers only two kinds of requests itself: those that are open when the child exits (`Connection closed` and how
it ended, so that the client opens another session), and cancelled ones, which get no response. The transport is that of
the SDK, with JSON responses: a result of any size is one body, without the limits of an event stream.
"""

import contextlib
import logging
import math
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import anyio
import mcp_types as types
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from starlette.types import Receive, Scope, Send

from tarsy.mcp.connection_errors import exit_of
from tarsy.mcp.server_process import Command, Launcher
from tarsy.mcp.stdio_transport import Tail, child

_log = logging.getLogger(__name__)

ENDED = "Connection closed: the tool server has ended"
_SHORTEST_SECRET = 4
_ANSWER_SECONDS = 5.0
"""Maximum seconds for clients to receive the responses to open requests."""

_Reading = ReadStream[SessionMessage | Exception]
_Writing = WriteStream[SessionMessage]
_Unanswered = Callable[[], Awaitable[None]]
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class Tool:
    """The program to start for each session.

    Args:
        path: absolute path of the program.
        args: arguments.
        environment: environment without HOME, which is an empty folder of each session.
        largest: maximum size of a message in bytes, in either direction.
    """

    path: str
    args: Sequence[str]
    environment: Mapping[str, str]
    largest: int

    def redact(self, text: str) -> str:
        """Replaces values of the environment in a text."""
        for value in sorted(self.environment.values(), key=len, reverse=True):
            text = text.replace(value, "[redacted]") if len(value) >= _SHORTEST_SECRET else text
        return text


class GatewaySession:
    """A session that one task runs, and any task sends requests to.

    Args:
        tool: the program to start, or the launcher that starts it in another container.
        idle_seconds: seconds without an open request after which the session ends.
    """

    def __init__(self, tool: Tool | Launcher, idle_seconds: float) -> None:
        self.id = uuid4().hex
        self._tool = tool
        self._transport = StreamableHTTPServerTransport(
            self.id, is_json_response_enabled=True, idle_timeout=idle_seconds if math.isfinite(idle_seconds) else None
        )
        self._open: dict[types.RequestId, _Unanswered | None] = {}
        self._asking = 0
        self._answered = anyio.Event()
        self._over = False
        self._scope = anyio.CancelScope()
        self.connected = anyio.Event()

    @property
    def ended(self) -> bool:
        """Whether the session accepts no more requests."""
        return self._over or self._transport.is_terminated

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request; `scope`, `receive` and `send` are the arguments of an ASGI application."""
        asks = scope["method"] == "POST"
        self._asking += asks
        try:
            await self._transport.handle_request(scope, receive, send)
        finally:
            self._asking -= asks
            if not self._asking:
                self._answered.set()

    def end(self) -> None:
        """Makes `run` end, with the process group of the child."""
        self._scope.cancel()

    async def run(self) -> None:
        """Runs the child until it exits, the client ends the session, or the session is idle."""
        tail, ended = Tail(), ENDED
        try:
            async with self._transport.connect() as (from_client, to_client):
                try:
                    self.connected.set()
                    with self._scope, self._transport.idle_scope or anyio.CancelScope():
                        await self._live(tail, from_client, to_client)
                except OSError as error:
                    why = error.strerror or type(error).__name__
                    _log.warning("the tool server could not be started: %s", why)
                    ended = f"{ENDED}: it could not be started ({why})"
                    await self._take_the_first(from_client)
                finally:
                    self._over = True
                    with anyio.CancelScope(shield=True):
                        await self._answer_what_is_open(to_client, ended + _how(tail))
                        await self._transport.terminate()
        finally:
            self.connected.set()
            said = "" if isinstance(self._tool, Launcher) else self._tool.redact(tail.last_words())
            _log.info("session %s ended%s", self.id[:8], f"; the tool server said: {said}" if said else "")

    async def _live(self, tail: Tail, from_client: _Reading, to_client: _Writing) -> None:
        async with (
            _started(self._tool, tail) as (from_child, to_child),
            anyio.create_task_group() as ways,
        ):
            ways.start_soon(self._inwards, from_client, to_child, ways.cancel_scope)
            ways.start_soon(self._outwards, from_child, to_client, ways.cancel_scope)

    async def _inwards(self, from_client: _Reading, to_child: _Writing, ways: anyio.CancelScope) -> None:
        with contextlib.suppress(*_BROKEN):
            async for item in from_client:
                if isinstance(item, Exception):
                    continue
                cancelled = self._note(item)
                await to_child.send(SessionMessage(item.message))
                if cancelled is not None:
                    await cancelled()
        ways.cancel()

    async def _outwards(self, from_child: _Reading, to_client: _Writing, ways: anyio.CancelScope) -> None:
        with contextlib.suppress(*_BROKEN):
            async for item in from_child:
                if isinstance(item, Exception):
                    continue
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError) and item.message.id is not None:
                    self._open.pop(item.message.id, None)
                await to_client.send(SessionMessage(item.message))
        ways.cancel()

    def _note(self, item: SessionMessage) -> _Unanswered | None:
        """Tracks open requests; returns the callback of a request that the message cancels."""
        match item.message:
            case types.JSONRPCRequest(id=asked):
                known = item.metadata if isinstance(item.metadata, ServerMessageMetadata) else None
                self._open[asked] = known.on_request_unanswered if known else None
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": asked}):
                return self._open.pop(asked, None)
            case _:
                pass
        return None

    async def _take_the_first(self, from_client: _Reading) -> None:
        """Receives the request that opened the session, which is answered with the reason."""
        with contextlib.suppress(*_BROKEN, anyio.EndOfStream), anyio.move_on_after(_ANSWER_SECONDS):
            while not self._open:
                item = await from_client.receive()
                if not isinstance(item, Exception):
                    self._note(item)

    async def _answer_what_is_open(self, to_client: _Writing, ended: str) -> None:
        error = types.ErrorData(code=types.CONNECTION_CLOSED, message=ended)
        with contextlib.suppress(*_BROKEN), anyio.move_on_after(_ANSWER_SECONDS):
            for asked in self._open:
                await to_client.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=asked, error=error)))
            if self._open and self._asking:
                self._answered = anyio.Event()
                await self._answered.wait()


@asynccontextmanager
async def _started(tool: Tool | Launcher, tail: Tail) -> AsyncIterator[TransportStreams]:
    """Starts the server; a child has an empty HOME until it ends."""
    if isinstance(tool, Launcher):
        async with child(tool, tail, _nothing) as streams:
            yield streams
        return
    with tempfile.TemporaryDirectory(prefix="tarsy-home-", ignore_cleanup_errors=True) as home:
        command = Command(tool.path, tool.args, {**tool.environment, "HOME": home}, home, tool.largest)
        async with child(command, tail, _nothing) as streams:
            yield streams


def _how(tail: Tail) -> str:
    """Returns the end of a sentence about a server that ended."""
    if tail.code is not None:
        return f": it {exit_of(tail.code)}"
    return ": its container has ended" if tail.lost else ""


def _nothing() -> None:
    """Does nothing: the streams show the end of the child."""
