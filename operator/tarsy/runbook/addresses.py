"""Decides which addresses runbooks may be fetched from.

Decision: the addresses that a request's host really has are judged, where the connection is made (`tarsy.outbound`): a
name proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tarsy.plan.destinations import Destinations
from tarsy.runbook.sources import RunbookSource

_NOT_PUBLIC = (
    "has an address that is not public; ask the administrator to start the operator with --runbook-host for it"
)


@dataclass(frozen=True, slots=True)
class SourceJudge:
    """Judges one source's addresses (`tarsy.outbound.address_check.AddressCheck`).

    Args:
        source: a trusted one may have any address.
        public: whether an address is public.
        destinations: says how names are looked up.
    """

    source: RunbookSource
    public: Callable[[str], bool]
    destinations: Destinations

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host; the administrator's hosts mean what they mean in the pod."""
        return host if self.source.trusted else self.destinations.asked(host)

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why connections to an address of a host are not allowed; None if they are.

        Args:
            host: host of the URL.
            address: one of its addresses.
            alias: ignored; only the address decides.
        """
        return None if self.source.trusted or self.public(address) else f"host {host} {_NOT_PUBLIC}"
