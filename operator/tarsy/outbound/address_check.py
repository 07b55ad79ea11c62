"""Resolves a host and judges each of its addresses, once for each new connection."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tarsy.plan.destinations import Destinations

RESOLVE_SECONDS = 10.0


class NotAllowed(Exception):
    """A host may not be connected to; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """Addresses of a name; `canonical` is the name that they belong to, another one where the name is an alias."""

    addresses: Sequence[str]
    canonical: str = ""


Resolve = Callable[[str, int], Awaitable[Found]]
"""Looks up a name for a port; raises OSError."""


class AddressCheck(Protocol):
    """Decides where one object's requests may go."""

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host."""
        ...

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why a host may not be connected to at an address, None where it may.

        Args:
            host: as the URL has it.
            address: one of its addresses.
            alias: whether the looked up name is an alias of another.
        """
        ...


@dataclass(frozen=True, slots=True)
class Of:
    """Judges for an object of a namespace.

    Args:
        destinations: where URLs may lead; None for the address of a maker, which no spec chose.
        namespace: of the object.
    """

    destinations: Destinations | None
    namespace: str = ""

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host (`Judge`)."""
        return host if self.destinations is None else self.destinations.asked(host)

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why a host may not be connected to at an address (`Judge`)."""
        if self.destinations is None:
            return None
        return self.destinations.why_not_at(host, address, self.namespace, alias=alias)


async def resolve_host(name: str, port: int) -> Found:
    """Looks a name up as the system does (`Resolve`)."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
    return Found(tuple(addresses), next((entry[3] for entry in found if entry[3]), ""))


async def judged(host: str, port: int, judge: AddressCheck, look_up: Resolve = resolve_host) -> Sequence[str]:
    """Returns the addresses of a host, in the order to try them; a single one that is refused refuses the host.

    Raises:
        NotAllowed: the host may not be connected to.
        OSError: the host is not found; the message names it.
        TimeoutError: the lookup took too long.
    """
    host = host.rstrip(".").lower()
    if is_address(host):
        check_addresses(host, host, judge)
        return (host,)
    name = judge.asked(host)
    found = await _found(host, name, port, look_up)
    alias = bool(found.canonical) and found.canonical.rstrip(".").lower() != name.rstrip(".").lower()
    if not found.addresses:
        raise socket.gaierror(socket.EAI_NONAME, f"host {host} has no address")
    for address in found.addresses:
        check_addresses(host, address, judge, alias=alias)
    return found.addresses


async def _found(host: str, name: str, port: int, look_up: Resolve) -> Found:
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            return await look_up(name, port)
    except socket.gaierror as error:
        why = error.strerror
    except UnicodeError:
        why = "it is not a host name"
    looked_up = "" if name == host else f", looked up as {name}"
    raise socket.gaierror(socket.EAI_NONAME, f"host {host} is not found{looked_up}: {why}")


def check_addresses(host: str, address: str, judge: AddressCheck, *, alias: bool = False) -> None:
    """Refuses an address of a host.

    Raises:
        NotAllowed: the host may not be connected to there.
    """
    if why := judge.why_not(host, address, alias=alias):
        raise NotAllowed(why)


def is_address(host: str) -> bool:
    """Whether a host is an IP address, for which no name is looked up."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
