"""Resolves a host and checks each of its addresses, once for each new connection."""

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
    """Connections to a host are not allowed; the message contains the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Found:
    """Addresses of a name; `canonical` is the canonical name, which differs for an alias."""

    addresses: Sequence[str]
    canonical: str = ""


Resolve = Callable[[str, int], Awaitable[Found]]
"""Looks up a name for a port; raises OSError."""


class AddressCheck(Protocol):
    """Checks the destinations of one object."""

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host."""
        ...

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why connections to an address of a host are not allowed; None if they are.

        Args:
            host: host of the URL.
            address: one of its addresses.
            alias: whether the name is an alias of another.
        """
        ...


@dataclass(frozen=True, slots=True)
class Of:
    """Checks the destinations of an object of a namespace.

    Args:
        destinations: permitted destinations; None: any, for built-in addresses of providers.
        namespace: namespace of the object.
    """

    destinations: Destinations | None
    namespace: str = ""

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host (`AddressCheck`)."""
        return host if self.destinations is None else self.destinations.asked(host)

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why connections to an address of a host are not allowed; None if they are.

        Args:
            host: host of the URL.
            address: one of its addresses.
            alias: whether the name is an alias of another.
        """
        if self.destinations is None:
            return None
        return self.destinations.why_not_at(host, address, self.namespace, alias=alias)


async def resolve_host(name: str, port: int) -> Found:
    """Looks up a name with the system's resolver (`Resolve`)."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
    return Found(tuple(addresses), next((entry[3] for entry in found if entry[3]), ""))


async def judged(host: str, port: int, judge: AddressCheck, look_up: Resolve = resolve_host) -> Sequence[str]:
    """Returns the checked addresses of a host, in the order to try; one refused address refuses the host.

    Args:
        host: host of the URL.
        port: port of the URL.
        judge: checks addresses.
        look_up: resolves names.

    Raises:
        NotAllowed: connections to the host are not allowed.
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
    """Checks one address of a host.

    Args:
        host: host of the URL.
        address: one of its addresses.
        judge: checks addresses.
        alias: whether the name is an alias of another.

    Raises:
        NotAllowed: connections to the address are not allowed.
    """
    if why := judge.why_not(host, address, alias=alias):
        raise NotAllowed(why)


def is_address(host: str) -> bool:
    """Returns whether a host is an IP address."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
