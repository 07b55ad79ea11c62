"""Checks the health of tool servers, and keeps the last result.

Decision: a reconcile never waits for a server. It asks here what is known and goes; a few workers look, and wake the
MCPServer when something is found. A server is looked at when it is new or its transport changed, then at an interval
(each at a time of its own), sooner while it fails, until it has failed so often in a row that it counts as away. One
that is started by a look (stdio) is looked at rarely.
"""

import asyncio
import hashlib
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tarsy.controllers.machinery.cache import Key
from tarsy.mcp.connection import Policy
from tarsy.mcp.connection_errors import alike
from tarsy.mcp.health import Look, look
from tarsy.plan.model import ServerPlan, StdioTransport
from tarsy.plan.workload import WorkloadAddress, reached, service_address

_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0
STDIO_SECONDS = 3600.0
RETRY_SECONDS = 5.0
LONGEST_SECONDS = 30.0
"""A server that takes longer to start is away, whatever its own limit."""

FAILURES = 3
"""Consecutive failed checks after which a server counts as unavailable."""

_AT_ONCE = 8
_KEPT = 4096

_Ask = Callable[[ServerPlan, Policy, float], Awaitable[Look]]


@dataclass(frozen=True, slots=True)
class Health:
    """Holds the last successful check of a server, and its failures since.

    `found` is None when it never answered; `failed` is the last failure, None when it answered last.
    """

    found: Look | None = None
    failed: Look | None = None
    failures: int = 0

    @property
    def away(self) -> bool:
        """Whether so many checks in a row failed that the server counts as away."""
        return self.failures >= FAILURES

    def after(self, seen: Look) -> "Health":
        """Returns the health after another check.

        A failure that differs from the last by times, process ids and their like alone is told in its words: what is
        told is written into a status when it differs.
        """
        if seen.reason is None:
            return Health(found=seen)
        before = self.failed
        if before is not None and before.reason == seen.reason and alike(before.failure, seen.failure):
            seen = replace(seen, failure=before.failure)
        return replace(self, failed=seen, failures=self.failures + 1)


@dataclass(slots=True)
class _Known:
    about: str
    health: Health
    due: float
    looking: bool = False


class ServerChecks:
    """Checks tool servers, not more often than needed.

    Args:
        policy: What servers may be, and how their values are resolved.
        mask: takes secrets out of what is said of failures; what it cannot mask is not said.
        interval: seconds between two looks at a server that answers.
        ask: looks at one.
        address: where Services are.
        clock: monotonic seconds.
        chance: a number from 0 to 1, at each call.
    """

    def __init__(
        self,
        policy: Policy,
        mask: Callable[[str], str],
        *,
        interval: float = INTERVAL_SECONDS,
        ask: _Ask = look,
        address: WorkloadAddress = service_address,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.policy = policy
        self._mask = mask
        self._interval = interval
        self._ask = ask
        self._address = address
        self._clock = clock
        self._chance = chance
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Key, ServerPlan]] = asyncio.Queue()

    def health(self, key: Key, server: ServerPlan) -> tuple[Health, float | None]:
        """Returns the health and the seconds until the next look; None: a check is under way and will queue the key.

        Args:
            key: is woken.
            server: as an agent would use it; `ref.uid` tells servers apart.
        """
        about = _fingerprint(server)
        known = self._known.get(server.ref.uid)
        if known is None or known.about != about:
            known = self._known[server.ref.uid] = _Known(about, Health(), self._clock())
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        left = known.due - self._clock()
        if known.looking:
            return known.health, None
        if left > 0:
            return known.health, left
        known.looking = True
        self._queue.put_nowait((key, server))
        return known.health, None

    async def run(self, wake: Callable[[Key], None]) -> None:
        """Checks until cancelled.

        Args:
            wake: is called with a server's key when something was found.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work(wake))

    async def _work(self, wake: Callable[[Key], None]) -> None:
        while True:
            key, server = await self._queue.get()
            try:
                asked = reached(server, address=self._address)
                seen = await self._ask(asked, self.policy, min(server.init_seconds, LONGEST_SECONDS))
                seen = replace(seen, failure=self._mask(seen.failure)) if seen.failure else seen
            except Exception:
                _log.exception("%s could not be checked", key)
                seen = Look(reason="McpError", failure="the check failed; see the operator's log")
            known = self._known.get(server.ref.uid)
            if known is not None and known.about == _fingerprint(server):
                known.looking = False
                known.health = known.health.after(seen)
                known.due = self._clock() + self._pause(server, known.health) * (0.9 + self._chance() / 5)
            wake(key)

    def _pause(self, server: ServerPlan, health: Health) -> float:
        if health.failures:
            return self._interval if health.away else min(RETRY_SECONDS, self._interval)
        return max(STDIO_SECONDS, self._interval) if isinstance(server.transport, StdioTransport) else self._interval


def _fingerprint(server: ServerPlan) -> str:
    """Digests what decides the result of a check; the tool lists too, because they decide what is found."""
    return hashlib.sha256(server.model_dump_json().encode()).hexdigest()
