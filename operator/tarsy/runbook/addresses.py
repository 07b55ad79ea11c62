"""Which addresses runbooks may be fetched from.

Decision: the addresses that a request's host really has are judged, when it is asked: a name proves nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from aiohttp.abc import AbstractResolver, ResolveResult

from tarsy.runbook.errors import RunbookUnavailable

_NOT_PUBLIC = (
    "answers from an address that is not public; ask the administrator to start the operator with --runbook-host for it"
)


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
