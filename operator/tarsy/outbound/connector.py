"""Connects aiohttp to one host, at checked addresses only."""

from __future__ import annotations

import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tarsy.outbound.address_check import AddressCheck, NotAllowed, Resolve, check_addresses, judged, resolve_host

_MOST = 1024


class PinnedConnector(aiohttp.TCPConnector):
    """Connects to one host only, and only to checked addresses.

    Names are checked when they are resolved. The socket of each connection is checked too, because aiohttp resolves no
    IP addresses, and caches resolved names for ten seconds.

    Args:
        host: the host, in the form of `tarsy.plan.place.Place`.
        judge: checks addresses.
        look_up: resolves names.
        options: options of `aiohttp.TCPConnector`.
    """

    def __init__(self, host: str, judge: AddressCheck, *, look_up: Resolve = resolve_host, **options: Any) -> None:
        resolver = _Resolver(host, judge, look_up)

        def connect_from(info: tuple[Any, ...]) -> socket.socket:
            family, kind, protocol, _, where = info
            if where[0] not in resolver.found:
                check_addresses(host, where[0], judge)
            return socket.socket(family, kind, protocol)

        super().__init__(resolver=resolver, socket_factory=connect_from, **options)


class _Resolver(AbstractResolver):
    def __init__(self, host: str, judge: AddressCheck, look_up: Resolve) -> None:
        self._host = host
        self._judge = judge
        self._look_up = look_up
        self.found: set[str] = set()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Returns the checked addresses of a host, in the order to try.

        Args:
            host: host of the request; it must be the host of the connector.
            port: port of the request.
            family: ignored; addresses of all families are returned.

        Raises:
            NotAllowed: it is another host, or connections to it are not allowed.
            OSError: the host is not found; the message names it.
            TimeoutError: the lookup took too long.
        """
        if host.rstrip(".").lower() != self._host:
            raise NotAllowed(f"host {host} is not {self._host}, the host that was checked")
        addresses = await judged(host, port, self._judge, self._look_up)
        if len(self.found) > _MOST:
            self.found.clear()
        self.found.update(addresses)  # keeps those of concurrent connections
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Does nothing: the resolver has no open resources."""
