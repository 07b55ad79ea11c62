"""Stands between a socket and its HTTP server until the client has signed in.

Until then the client has a deadline for each head, a bound on the bytes of a head, and a place among others that have
not signed in, which it loses when too many come. A connection whose client certificate was accepted is signed in from
its start.

Decision: a protocol of its own around that of the server, so that it sees bytes before any parser does and depends on
nothing that a library keeps to itself. It is found again from a request by its transport.
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
    """Bounds for connections that are not signed in.

    Args:
        connections: open at once, of one listener; and as many that have sent a head and wait for an answer.
        head_seconds: from the connection, or from its first byte after a request, to the end of the head.
        idle_seconds: from the end of an answer to the end of the next head.
        head_bytes: of one head.
    """

    connections: int = 256
    head_seconds: float = 10.0
    idle_seconds: float = 30.0
    head_bytes: int = 65_536


class ConnectionGuard(asyncio.Protocol):
    """The protocol of one connection.

    Args:
        inner: the server's own protocol.
        limits: what holds until the client has signed in.
        unknown: the others, who make room for each other.
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
        """Whether the client is not known yet."""
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
            # What is still sent of a body that was refused is not read: the connection ends soon.
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
        """Gives the place back."""
        self.sign_in()
        self._inner.connection_lost(error)

    def sign_in(self) -> None:
        """The client is known (or has gone): the limits hold no more."""
        self._stop_waiting()
        if self._unsigned:
            self._unsigned = False
            self._unknown.leave(self)

    def begin_request(self) -> None:
        """A head has ended."""
        self._stop_waiting()
        self._head_open = False
        if self._unsigned and not self._dropped:
            self._unknown.asks(self)

    def end_request(self, *, whole: bool) -> None:
        """The request has been answered; the next head may come, unless the body has not come whole."""
        self._head_open, self._head, self._tail = whole, 0, b""
        if self._unsigned and not self._dropped:
            self._refused = not whole
            self._unknown.waits(self)
            self._wait(self._limits.idle_seconds)

    def drop(self) -> None:
        """Ends the connection at once."""
        self._dropped = True
        self._stop_waiting()
        if self._transport is not None:
            self._transport.abort()

    def _fits(self, data: bytes) -> bool:
        """Whether the head is not too long yet; several pieces may come before the server begins its request."""
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
    """The connections of one listener whose clients have not signed in.

    Those that ask something are apart from those that have yet to send a head: who asks is about to be known, and no
    number of silent connections may push it out.

    Args:
        limits: how many there may be of each.
        drop: ends a connection that makes room.
    """

    def __init__(
        self, limits: ConnectionLimits, drop: Callable[[ConnectionGuard], None] = ConnectionGuard.drop
    ) -> None:
        self._waiting: FairSet[str, ConnectionGuard] = FairSet(limits.connections)
        self._asking: FairSet[str, ConnectionGuard] = FairSet(limits.connections)
        self._drop = drop

    def arrive(self, guard: ConnectionGuard, peer: str) -> None:
        """A connection from a peer was accepted."""
        guard.peer = peer
        self.waits(guard)

    def waits(self, guard: ConnectionGuard) -> None:
        """A head may come."""
        self._asking.leave(guard)
        self._enter(self._waiting, guard)

    def asks(self, guard: ConnectionGuard) -> None:
        """A head has come, and is being answered."""
        self._waiting.leave(guard)
        self._enter(self._asking, guard)

    def leave(self, guard: ConnectionGuard) -> None:
        """It is known, or has ended."""
        self._waiting.leave(guard)
        self._asking.leave(guard)

    def _enter(self, crowd: FairSet[str, ConnectionGuard], guard: ConnectionGuard) -> None:
        for other in crowd.enter(guard.peer, guard):
            self._drop(other)


def guard_of(transport: asyncio.BaseTransport | None) -> ConnectionGuard | None:
    """The guard of a connection; None where it has none, or is closed."""
    protocol = cast(asyncio.Transport, transport).get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, ConnectionGuard) else None


def mark_signed_in(request: web.Request) -> None:
    """Notes that the client of a request is known: its connection is no longer one of those that have limits."""
    guard = guard_of(request.transport)
    if guard is not None:
        guard.sign_in()
