"""Which addresses runbooks may be fetched from.

Decision: what is not plainly public is refused, addresses that carry another inside (mapped, translated, tunnelled)
by what they carry, so no spelling of an inner address gets through.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from aiohttp.abc import AbstractResolver, ResolveResult

from tarsy.runbook.errors import RunbookUnavailable

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NOT_PUBLIC = (
    "answers from an address that is not public; ask the administrator to start the operator with --runbook-host for it"
)


def is_public(address: str) -> bool:
    """Whether an IP address (a scope after `%` is ignored) belongs to the public internet."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_plainly_public(inner) for inner in (found, *_carried(found)))


def _plainly_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _carried(address: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    if isinstance(address, IPv4Address):
        return ()
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        carried.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(inner for inner in carried if inner is not None)


class CheckedResolver(AbstractResolver):
    """Resolves the names of one request and refuses those with an address that is not allowed.

    aiohttp connects to the addresses that this gives and to no others, and asks once for each connection.
    """

    def __init__(self, inner: AbstractResolver, allowed: Callable[[str], bool]) -> None:
        self._inner = inner
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            RunbookUnavailable: one of them is not allowed.
        """
        found = await self._inner.resolve(host, port, family)
        for result in found:
            check_address(host, result["host"], self._allowed)
        return found

    async def close(self) -> None:
        """Leaves the inner resolver open: it is its maker's."""


def check_address(host: str, address: str, allowed: Callable[[str], bool]) -> None:
    """Refuses an address of a host.

    Raises:
        RunbookUnavailable: it is not allowed.
    """
    if not allowed(address):
        raise RunbookUnavailable(f"host {host} {_NOT_PUBLIC}")
