"""Opens a port for an aiohttp application.

Decision: connections are accepted here instead of by asyncio's server, because the limits must count from the accept: a
client that never finishes its TLS handshake never reaches a protocol. The server reports the end of a head and of a
request to the guard of the connection, by the two public callables of `web.Server`.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from tarsy.listening.connection_guard import ConnectionGuard, ConnectionLimits, Unknown, guard_of

_log = logging.getLogger(__name__)
HANDSHAKE_SECONDS = 10.0
_CLOSE_SECONDS = 3.0
HEADER_BYTES = 32_768
_HEADERS = 1_024
"""Maximum number of headers: a proxy sends a header for each group of the user."""
KEEP_ALIVE_SECONDS = 3_600.0
"""For authenticated clients: longer than a proxy in front keeps a connection."""
_LINGER_SECONDS = 2.0
_BACKLOG = 1_024
_BUFFER_BYTES = 16_384
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AGAIN_SECONDS = 0.2
_SAID_SECONDS = 60.0


@contextlib.asynccontextmanager
async def listen(
    app: web.Application,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    limits: ConnectionLimits | None = None,
    close_seconds: float = _CLOSE_SECONDS,
) -> AsyncIterator[int]:
    """Serves an application while entered, and yields the port.

    Args:
        app: the application. It must refuse compressed bodies (`plain_bodies_only`).
        host: address to listen on.
        port: port to listen on; 0: any free port.
        tls: TLS context; None: plain HTTP.
        limits: limits of unauthenticated connections.
        close_seconds: maximum seconds for open requests to end at shutdown.

    Raises:
        OSError: the port is in use.
    """
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=close_seconds)
    await runner.setup()
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(runner.cleanup)
        assert runner.server is not None
        listener = _Listener(runner.server, tls, limits or ConnectionLimits())
        sockets = await _bind(host, port)
        for one in sockets:
            closing.callback(one.close)
        closing.push_async_callback(listener.end_handshakes)
        for one in sockets:
            listener.start(one)
            closing.callback(listener.stop, one)
        yield int(sockets[0].getsockname()[1])


class _Listener:
    """Accepts connections for one server."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext | None, limits: ConnectionLimits) -> None:
        self._server = server
        self._tls = tls
        self._limits = limits
        self._unknown = Unknown(limits, self._make_room)
        self._accepted: dict[ConnectionGuard, socket.socket] = {}
        self._opening: dict[ConnectionGuard, asyncio.Task[None]] = {}
        self._said = 0.0
        self._stopped = False
        make, answer = server.request_factory, server.request_handler

        def begin(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            """Makes a request after its head was read, and reports its start to the guard of the connection.

            Args:
                message: the parsed head.
                payload: stream of the body.
                protocol: protocol of the connection, which leads to its guard.
                writer: writer of the response.
                task: task that handles the request.
            """
            if (guard := guard_of(protocol.transport)) is not None:
                guard.begin_request()
            return make(message, payload, protocol, writer, task)

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            guard = guard_of(request.transport)
            try:
                response = await answer(request)
            except web.HTTPException as refusal:
                _close_after(refusal, request, guard)
                raise
            finally:
                if guard is not None:
                    guard.end_request(whole=request.content.is_eof())
            _close_after(response, request, guard)
            return response

        server.request_factory, server.request_handler = begin, handle

    def start(self, listening: socket.socket) -> None:
        """Starts accepting."""
        asyncio.get_running_loop().add_reader(listening.fileno(), self._accept, listening)

    def stop(self, listening: socket.socket) -> None:
        """Stops accepting."""
        self._stopped = True
        asyncio.get_running_loop().remove_reader(listening.fileno())

    def _accept(self, listening: socket.socket) -> None:
        """Accepts several connections at a time, so that open connections do not delay new ones.

        At most a quarter of the limit, so that each connection is read several times before it can be evicted.
        """
        loop = asyncio.get_running_loop()
        for _ in range(max(1, self._limits.connections // 4)):
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue  # the client disconnected before the accept
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                _log.error("cannot accept connections, trying again in %g s: %s", _AGAIN_SECONDS, error.strerror)
                loop.remove_reader(listening.fileno())
                loop.call_later(_AGAIN_SECONDS, self._start_again, listening)
                return
            connection.setblocking(False)
            guard = ConnectionGuard(self._protocol(loop), self._limits, self._unknown)
            self._unknown.arrive(guard, peer_of(address))
            self._accepted[guard] = connection
            self._opening[guard] = task = loop.create_task(self._open(guard))
            task.add_done_callback(lambda _, guard=guard: self._opened(guard))  # type: ignore[misc]

    def _start_again(self, listening: socket.socket) -> None:
        if not self._stopped:
            self.start(listening)

    async def end_handshakes(self) -> None:
        """Ends connections during their handshake."""
        await _end(list(self._opening.values()))

    def _protocol(self, loop: asyncio.AbstractEventLoop) -> web.RequestHandler:
        return web.RequestHandler(
            self._server,
            loop=loop,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            access_log=None,  # type: ignore[arg-type]
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            max_headers=_HEADERS,
            lingering_time=_LINGER_SECONDS,
            read_bufsize=_BUFFER_BYTES,
            auto_decompress=False,
        )

    async def _open(self, guard: ConnectionGuard) -> None:
        """Performs the handshake; from here on the socket belongs to its transport, which alone may close it."""
        connection = self._accepted.pop(guard)
        seconds = None if self._tls is None else HANDSHAKE_SECONDS
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: guard, connection, ssl=self._tls, ssl_handshake_timeout=seconds)
        except (OSError, TimeoutError):  # the handshake failed; errors of ssl are OSErrors
            self._unknown.leave(guard)
            guard.drop()
        except asyncio.CancelledError:
            self._unknown.leave(guard)
            guard.drop()  # the handshake may have ended just now: its transport would wait for the client's goodbye
            raise

    def _opened(self, guard: ConnectionGuard) -> None:
        self._opening.pop(guard, None)
        if (connection := self._accepted.pop(guard, None)) is not None:  # cancelled before its first step
            self._unknown.leave(guard)
            connection.close()

    def _make_room(self, guard: ConnectionGuard) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._said > _SAID_SECONDS or not self._said:
            self._said = now
            _log.warning(
                "more than %d unauthenticated connections are open; the oldest are closed",
                self._limits.connections,
            )
        guard.drop()
        if (task := self._opening.get(guard)) is not None:
            task.cancel()


def _close_after(response: web.StreamResponse, request: web.BaseRequest, guard: ConnectionGuard | None) -> None:
    """Closes the connection of an unauthenticated client after the response if its body is incomplete."""
    if guard is not None and guard.unsigned and not request.content.is_eof() and not response.prepared:
        response.force_close()


async def _bind(host: str, port: int) -> list[socket.socket]:
    """Opens listening sockets at every address of a host, with port 0 all at the same free port.

    Raises:
        OSError: the port is in use, or the host has no local address.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    bound: list[socket.socket] = []
    try:
        for family, *_, address in dict.fromkeys(found):
            one = socket.socket(family, socket.SOCK_STREAM)
            bound.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken = bound[0].getsockname()[1] if port == 0 and len(bound) > 1 else port
            one.bind((address[0], taken, *address[2:]))
            one.listen(_BACKLOG)
            one.setblocking(False)
    except BaseException:
        for one in bound:
            one.close()
        raise
    return bound


def peer_of(address: Any) -> str:
    """Returns the group of a peer: its IPv4 address, or its IPv6 /64 network."""
    if not isinstance(address, tuple):
        return ""
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
