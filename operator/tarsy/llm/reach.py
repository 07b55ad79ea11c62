"""Whether a provider's own address may be asked (DESIGN section 7).

Decision: judged before a client is used and remembered for a minute, not at each connection: the makers' packages
connect by themselves. A name whose owner changes its addresses within that minute is not noticed.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan

REMEMBERED_SECONDS = 60.0
_RESOLVE_SECONDS = 10.0
_MOST = 1024
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host; raises OSError."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the system finds for a host (`Resolve`)."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Reach:
    """Judges `spec.baseURL` of providers.

    Args:
        destinations: where URLs may lead.
        resolve: see `Resolve`.
        clock: monotonic seconds.
    """

    def __init__(
        self, destinations: Destinations, *, resolve: Resolve = resolve, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._destinations = destinations
        self._resolve = resolve
        self._clock = clock
        self._judged: dict[tuple[str, str], tuple[float, str | None]] = {}

    async def check(self, provider: ProviderPlan) -> None:
        """Returns when the provider may be asked; one without an address of its own always may.

        A host that is not found is left to the client, which says so.

        Raises:
            ModelError: INVALID_REQUEST: it may not.
        """
        if provider.base_url is None:
            return
        key = (provider.base_url, provider.ref.namespace)
        until, why = self._judged.get(key, (0.0, None))
        if until <= (now := self._clock()):
            why = await self._why_not(*key)
            if len(self._judged) >= _MOST:
                self._judged.clear()
            self._judged[key] = (now + REMEMBERED_SECONDS, why)
        if why is not None:
            raise ModelError(
                ModelErrorCode.INVALID_REQUEST,
                f"provider {provider.ref.name}: spec.baseURL is not allowed: {why}",
                retryable=False,
            )

    async def _why_not(self, url: str, namespace: str) -> str | None:
        if why := self._destinations.why_not(url, namespace):
            return why
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or 443
            async with asyncio.timeout(_RESOLVE_SECONDS):
                found = await self._resolve(host, port)
        except (OSError, UnicodeError, ValueError, TimeoutError):
            return None
        return next((why for a in found if (why := self._destinations.why_not_at(url, a, namespace))), None)
