"""Bounds a connection until its client is authenticated.

Until then, the client has a deadline for each request head, a maximum size of the head, and a place in a bounded set of
unauthenticated connections, from which the oldest are dropped. A connection with an accepted client certificate is
authenticated from its start.

Decision: the guard is a protocol that wraps that of the server, so it sees bytes before any parser and uses no private
API of a library. The guard of a request is found by its transport.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from aiohttp import web

from tarsy.listening.fair_set import FairSet

_UNREAD_BYTES = 65_536
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of unauthenticated connections.

    Args:
        connections: maximum idle connections of a listener, and maximum connections with an open request.
        head_seconds: maximum seconds from the connection, or the first byte of a later request, to the end of the head.
        idle_seconds: maximum seconds from the end of a response to the end of the next head.
        head_bytes: maximum size of a head.
    """

    connections: int = 256
    head_seconds: float = 10.0
    idle_seconds: float = 30.0
    head_bytes: int = 65_536


class ConnectionGuard(asyncio.Protocol):
    """The guarding protocol of one connection.

    Args:
        inner: the protocol of the server.
        limits: limits until the client is authenticated.
        unknown: the set of unauthenticated connections.
    """

    def __init__(self, inner: asyncio.Protocol, limits: ConnectionLimits, unknown: "Unknown") -> None:
        self._inner = inner
        self._limits = limits
        self._unknown = unknown
        self.peer = ""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsigned = True
        self._dropped = False
        self._head_open = True
        self._refused = False
        self._unread = 0
        self._head = 0
        self._tail = b""

    @property
    def unsigned(self) -> bool:
        """Whether the client is not authenticated yet."""
        return self._unsigned

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the deadline of the first head."""
        self._transport = found = cast(asyncio.Transport, transport)  # uvloop's are of no common class
        self._inner.connection_made(transport)
        if self._dropped:
            found.abort()
        elif transport.get_extra_info("peercert"):
            self.sign_in()
        else:
            self._wait(self._limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Passes bytes on; ends a connection whose head does not end."""
        if self._refused and self._transport is not None:
            # The rest of a refused body is not read: the connection ends soon.
            self._unread += len(data)
            if self._unread > _UNREAD_BYTES:
                self._transport.pause_reading()
        elif self._unsigned and self._head_open and not self._fits(data):
            self.drop()
        else:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Passes it on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Passes it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Passes it on."""
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Removes the connection from the set."""
        self.sign_in()
        self._inner.connection_lost(error)

    def sign_in(self) -> None:
        """Lifts the limits: the client is authenticated, or has disconnected."""
        self._stop_waiting()
        if self._unsigned:
            self._unsigned = False
            self._unknown.leave(self)

    def begin_request(self) -> None:
        """Handles the end of a head."""
        self._stop_waiting()
        self._head_open = False
        if self._unsigned and not self._dropped:
            self._unknown.asks(self)

    def end_request(self, *, whole: bool) -> None:
        """Handles the end of a request.

        Args:
            whole: whether the whole body was received, so that another head may follow.
        """
        self._head_open, self._head, self._tail = whole, 0, b""
        if self._unsigned and not self._dropped:
            self._refused = not whole
            self._unknown.waits(self)
            self._wait(self._limits.idle_seconds)

    def drop(self) -> None:
        """Aborts the connection."""
        self._dropped = True
        self._stop_waiting()
        if self._transport is not None:
            self._transport.abort()

    def _fits(self, data: bytes) -> bool:
        """Returns whether the head is within the size limit; it may arrive in several pieces."""
        seen = self._tail + data
        end = seen.find(_END)
        self._head += len(data) if end < 0 else end + len(_END) - len(self._tail)
        self._head_open, self._tail = end < 0, seen[1 - len(_END) :]
        return self._head <= self._limits.head_bytes

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.drop)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Unknown:
    """The unauthenticated connections of one listener.

    Connections with an open request are counted apart from idle ones: they are about to be authenticated, and idle
    connections must not displace them.

    Args:
        limits: maximum number of each.
        drop: closes a displaced connection.
    """

    def __init__(
        self, limits: ConnectionLimits, drop: Callable[[ConnectionGuard], None] = ConnectionGuard.drop
    ) -> None:
        self._waiting: FairSet[str, ConnectionGuard] = FairSet(limits.connections)
        self._asking: FairSet[str, ConnectionGuard] = FairSet(limits.connections)
        self._drop = drop

    def arrive(self, guard: ConnectionGuard, peer: str) -> None:
        """Adds a new connection from a peer."""
        guard.peer = peer
        self.waits(guard)

    def waits(self, guard: ConnectionGuard) -> None:
        """Moves a connection to the idle ones."""
        self._asking.leave(guard)
        self._enter(self._waiting, guard)

    def asks(self, guard: ConnectionGuard) -> None:
        """Moves a connection to those with an open request."""
        self._waiting.leave(guard)
        self._enter(self._asking, guard)

    def leave(self, guard: ConnectionGuard) -> None:
        """Removes a connection that is authenticated or closed."""
        self._waiting.leave(guard)
        self._asking.leave(guard)

    def _enter(self, crowd: FairSet[str, ConnectionGuard], guard: ConnectionGuard) -> None:
        for other in crowd.enter(guard.peer, guard):
            self._drop(other)


def guard_of(transport: asyncio.BaseTransport | None) -> ConnectionGuard | None:
    """Returns the guard of a connection; None without one, or if it is closed."""
    protocol = cast(asyncio.Transport, transport).get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, ConnectionGuard) else None


def mark_signed_in(request: web.Request) -> None:
    """Marks the client of a request as authenticated, which lifts the limits of its connection."""
    guard = guard_of(request.transport)
    if guard is not None:
        guard.sign_in()
