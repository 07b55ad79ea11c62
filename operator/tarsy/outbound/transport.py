"""Connects httpx2 at checked addresses only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

from tarsy.outbound.address_check import AddressCheck, NotAllowed, Resolve, judged, resolve_host

_CONNECT_SECONDS = 10.0


class PinnedTransport(httpx2.AsyncHTTPTransport):
    """Sends requests over HTTP/1.1, never through a proxy.

    httpx2 has no option for the network backend of its connection pool, so the pool is replaced; TLS, Host and the
    reuse of connections still follow the URL.

    Args:
        judge: checks addresses.
        tls: TLS context that verifies servers; None: the CAs of the system and of `SSL_CERT_FILE`.
        limits: limits of the connection pool.
        look_up: resolves names.
    """

    def __init__(
        self,
        judge: AddressCheck,
        *,
        tls: ssl.SSLContext | None = None,
        limits: httpx2.Limits | None = None,
        look_up: Resolve = resolve_host,
    ) -> None:
        context = tls or httpx2.create_ssl_context()
        limits = limits or httpx2.Limits(max_connections=100, max_keepalive_connections=20)
        super().__init__(verify=context, trust_env=False, limits=limits)
        if not isinstance(self._pool, httpcore2.AsyncConnectionPool):
            raise RuntimeError("httpx2 has no connection pool that could be replaced")
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Pinned(judge, look_up),
        )


class _Pinned(httpcore2.AnyIOBackend):
    def __init__(self, judge: AddressCheck, look_up: Resolve) -> None:
        self._judge = judge
        self._look_up = look_up

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connects to the first checked address of a host that accepts the connection.

        Args:
            host: host of the URL.
            port: port of the URL.
            timeout: maximum seconds for the lookup and all addresses together; None: 10 seconds.
            local_address: address to connect from; None: any.
            socket_options: options to set on the socket; None: none.

        Raises:
            httpcore2.ConnectError: connections to the host are not allowed, or no address accepts one.
            httpcore2.ConnectTimeout: the lookup or the connection took too long.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (timeout or _CONNECT_SECONDS)
        try:
            async with asyncio.timeout_at(until):
                addresses = await judged(host, port, self._judge, self._look_up)
        except NotAllowed as error:
            raise httpcore2.ConnectError(str(error)) from error
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"the lookup of host {host} timed out") from error
        except OSError as error:
            raise httpcore2.ConnectError(error.strerror or str(error)) from error
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = max(0.0, until - loop.time()) / left  # an unresponsive address leaves time for the next
            try:
                return await super().connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore2.ConnectError(f"host {host} has no address")
