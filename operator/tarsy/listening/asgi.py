"""Applies the connection limits to ASGI applications that uvicorn serves: tool servers and the gateway.

Decision: uvicorn opens its own port, so a connection counts from the creation of its protocol; these servers use no
TLS, so there is no handshake to bound. The scope of a request contains the callable that marks its client as
authenticated.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from tarsy.listening.connection_guard import ConnectionGuard, ConnectionLimits, Unknown
from tarsy.listening.server import peer_of
from tarsy.listening.uncompressed_bodies import PACKED

SIGN_IN: Final = "tarsy.sign_in"
"""Key of the scope: a callable without arguments that marks the client as authenticated."""


class Gate:
    """Connection limits of one uvicorn server: pass it `protocol` as `http`, and `wrap` its application.

    Args:
        limits: limits of unauthenticated connections.
    """

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        bounds = limits or ConnectionLimits()
        make: Callable[..., asyncio.Protocol] = AutoHTTPProtocol
        unknown = Unknown(bounds)
        self._guards: dict[Any, ConnectionGuard] = {}
        guards = self._guards

        class Guarded(ConnectionGuard):
            """A connection of this server."""

            def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
                inner = make(config=config, server_state=server_state, app_state=app_state)
                super().__init__(inner, bounds, unknown)
                self._address: Any = None

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                address = transport.get_extra_info("peername")
                self._address = tuple(address[:2]) if address else None
                guards[self._address] = self
                unknown.arrive(self, peer_of(address))
                super().connection_made(transport)

            def connection_lost(self, error: Exception | None) -> None:
                guards.pop(self._address, None)
                super().connection_lost(error)

        self.protocol: type[asyncio.Protocol] = Guarded

    def wrap(self, app: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps an application, to report the start and end of requests to the guard of their connection."""

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            """Serves one request; `scope`, `receive` and `send` are the arguments of an ASGI application."""
            guard = self._guards.get(tuple(scope.get("client") or ())) if scope["type"] == "http" else None
            if guard is None:
                await app(scope, receive, send)
                return
            guard.begin_request()
            try:
                if _is_packed(scope["headers"]):
                    await _refuse(send)
                else:
                    await app({**scope, SIGN_IN: guard.sign_in}, receive, send)
            finally:
                guard.end_request(whole=True)

        return guarded


def _is_packed(headers: list[tuple[bytes, bytes]]) -> bool:
    codings = {
        word.strip().lower() for name, value in headers if name == b"content-encoding" for word in value.split(b",")
    }
    return bool(codings - {b"identity", b""})


async def _refuse(send: Any) -> None:
    text = PACKED.encode()
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 415, "headers": headers})
    await send({"type": "http.response.body", "body": text})
