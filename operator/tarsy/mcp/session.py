"""Runs one session with one tool server, in a task of its own.

The client of the SDK must be exited by the task that entered it, so one task owns it; calls come from any task. The
owner is stopped by an event or by its cancel scope, never by cancelling the task: the SDK shields the shutdown of a
child process from scopes, but not from task cancellation, which would leave the child behind. An ended session is not
revived: the toolbox opens another.
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client, ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from tarsy.mcp.connection import Policy, ServerConnection, connect_server
from tarsy.mcp.connection_errors import without_addresses
from tarsy.mcp.errors import (
    ConnectionLost,
    McpError,
    OpenFailed,
    Protocol,
    Timeout,
    in_our_words,
    is_lost,
    readable_error,
)
from tarsy.mcp.http_calls import HttpCalls, can_stamp
from tarsy.mcp.namespace_binding import of_request
from tarsy.plan.model import ServerPlan

_IDEMPOTENCY_KEY = "tarsy.dev/idempotency-key"
_CLOSE_SECONDS = 8.0
_PAGES = 100
_LONGEST_REASON = 600
_ANSWER: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class McpSession:
    """A session; creating it starts opening it, and it must be closed.

    Args:
        server: The server, as planned.
        policy: Permissions and dependencies of the connection.
    """

    def __init__(self, server: ServerPlan, policy: Policy) -> None:
        self._server = server
        self._policy = policy
        self._scope = anyio.CancelScope()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._failure: McpError | None = None
        self._session: ClientSession | None = None
        self._link: ServerConnection | None = None
        self._last_words = ""
        self._calls = 0
        self._retired = False
        self.tools: Sequence[types.Tool] = ()
        self.instructions = ""
        self._owner = asyncio.create_task(self._own(), name=f"mcp {server.name}")

    async def started(self, seconds: float) -> None:
        """Waits until the session accepts calls; ends it on failure.

        Args:
            seconds: Maximum seconds for the start, including the list of tools.

        Raises:
            OpenFailed: The server could not be reached, or refused.
            Timeout: The server did not respond in time.
        """
        try:
            await asyncio.wait({self._ready, self._owner}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self.alive:
                return
            if self._ready.done() or self._owner.done():
                raise self._failure or OpenFailed("it ended while it was being opened")
            said = self._brief(self._link.last_words()) if self._link else ""
            why = self._link.ending() if self._link else ""
            late = f"it did not start within {seconds:g} s (spec.timeouts.initSeconds)"
            raise Timeout(f"{late}{f': {why}' if why else ''}{_quoted(said)}")
        finally:
            if not self.alive:
                self._end.set()
                self._scope.cancel()

    @property
    def alive(self) -> bool:
        """Whether the session accepts calls."""
        return self._ready.done() and not self._end.is_set() and not self._retired and not self._owner.done()

    @property
    def ended(self) -> bool:
        """Whether the session has ended completely."""
        return self._owner.done()

    def redact(self, text: str) -> str:
        """Replaces the declared secrets of this server in a text."""
        return self._link.redact(text) if self._link else text

    async def call(self, tool: str, arguments: dict[str, Any], *, idempotency_key: str) -> types.CallToolResult:
        """Calls a tool; the caller sets the timeout.

        Args:
            tool: Name of the tool on the server.
            arguments: Validated arguments.
            idempotency_key: Sent in `_meta`, for servers that support it.

        Raises:
            ConnectionLost: The session has ended; `sent` says whether the request may have arrived.
            Protocol: The server responded with an error, or with something other than a result.
        """
        if not self.alive or self._session is None:
            raise ConnectionLost("the session has ended")
        meta = {_IDEMPOTENCY_KEY: idempotency_key, **of_request(self._server)}
        self._calls += 1
        try:
            answer = await self._answer(self._session, tool, arguments, meta)
        except MCPError as error:
            raise await self._explained(error) from error
        except ValidationError as error:
            raise Protocol("its answer is not a tool result", sent=True) from error
        finally:
            self._calls -= 1
            self._end_when_idle()
        if isinstance(answer, types.InputRequiredResult):
            raise Protocol("it asks for input from a person, which an agent cannot give", sent=True)
        return answer

    async def _answer(
        self, session: ClientSession, tool: str, arguments: dict[str, Any], meta: dict[str, Any]
    ) -> types.CallToolResult | types.InputRequiredResult:
        calls = self._link.calls if self._link else None
        if calls is not None and can_stamp(session):
            params = {"name": tool, "arguments": arguments, "_meta": meta}
            return _ANSWER.validate_python(await calls.request(session, "tools/call", params), by_name=False)
        parameters = types.CallToolRequestParams(name=tool, arguments=arguments, _meta=meta)
        return await session.send_request(types.CallToolRequest(params=parameters), _ANSWER)

    def retire(self) -> None:
        """Accepts no more calls, and ends after the last open one."""
        self._retired = True
        self._end_when_idle()

    async def close(self) -> None:
        """Ends the session and waits for its complete end, even if the calling task is cancelled."""
        self._end.set()
        if not self._ready.done():
            self._scope.cancel()
        cancelled: asyncio.CancelledError | None = None
        loop = asyncio.get_running_loop()
        graceful_until = loop.time() + _CLOSE_SECONDS
        give_up_at = graceful_until + _CLOSE_SECONDS
        while not self._owner.done() and (now := loop.time()) < give_up_at:
            if now >= graceful_until:
                self._scope.cancel()
            try:
                await asyncio.wait(
                    {self._owner}, timeout=(graceful_until if now < graceful_until else give_up_at) - now
                )
            except asyncio.CancelledError as error:
                cancelled = error
                graceful_until = now
        if cancelled:
            raise cancelled

    def _end_when_idle(self) -> None:
        if self._retired and not self._calls:
            self._end.set()

    async def _explained(self, error: MCPError) -> McpError:
        if not is_lost(error):
            return Protocol(self._brief(f"it answered with an error: {error.message}"), sent=True)
        if self._end.is_set():
            await asyncio.wait({self._owner}, timeout=1.0)
        sent = not (isinstance(error.data, dict) and error.data.get("sent") is False)
        return ConnectionLost(self._brief(error.message) + _quoted(self._last_words), sent=sent)

    def _brief(self, text: str) -> str:
        text = without_addresses(" ".join(self.redact(text).split()))
        return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "..."

    def _with_ending(self, failure: McpError, way: ServerConnection) -> McpError:
        """Adds the exit of the command and its last output to a failure."""
        told = way.ending() or failure.sentence
        return OpenFailed(told + _quoted(self._last_words), ours=way.ending() or failure.ours)

    def _not_opened(self, error: Exception) -> OpenFailed:
        return OpenFailed(self._brief(readable_error(error)), ours=self._brief(in_our_words(error)))

    async def _own(self) -> None:
        with self._scope:
            try:
                async with connect_server(self._server, self._policy, self._end.set) as way:
                    self._link = way
                    try:
                        await self._live(way)
                    except Exception as error:
                        self._failure = self._not_opened(error)
                    finally:
                        self._end.set()
                        self._last_words = self._brief(way.last_words())
                    if self._failure:
                        self._failure = self._with_ending(self._failure, way)
            except McpError as error:
                self._failure = error
            except Exception as error:
                self._failure = self._not_opened(error)
            finally:
                self._end.set()

    async def _live(self, way: ServerConnection) -> None:
        async with Client(way.transport, cache=None, client_info=_ourselves()) as client:
            self.tools = await _all_tools(client, way.calls)
            self.instructions = client.instructions or ""
            self._session = client.session
            self._ready.set_result(None)
            await self._end.wait()


@cache
def _ourselves() -> types.Implementation:
    """Returns the name and version of this program; it reads the installed package once a process."""
    return types.Implementation(name="tarsy-operator", version=version("tarsy-operator"))


def _quoted(said: str) -> str:
    return f" (it said: {said})" if said else ""


async def _all_tools(client: Client, calls: HttpCalls | None) -> list[types.Tool]:
    """Lists the tools of a server, with requests of our own where there are any."""
    if client.server_capabilities.tools is None:
        return []
    tools: list[types.Tool] = []
    cursor: str | None = None
    ours = calls if calls is not None and can_stamp(client.session) else None
    for _ in range(_PAGES):
        page = await (client.list_tools(cursor=cursor) if ours is None else ours.tools(client.session, cursor))
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise Protocol(f"its list of tools has more than {_PAGES} pages")
