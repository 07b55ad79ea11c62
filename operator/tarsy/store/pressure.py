"""Notices when Postgres, or the pool, holds runs up: counts it, and tells the log.

It is no error, runs just take longer; but who looks for the reason shall find it. Times are as seen from here: a
process that has too much to do itself shows too. When much is slow at once the log gets a line every few seconds, with
the count of all so far.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal

SLOW_SECONDS = 2.0
"""A call that takes longer in Postgres is slow; and so is one that waits longer than half of it for a connection."""

TELL_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Pressure:
    """Counts of a pool: calls that waited for one of its connections, and calls that were slow."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._told: dict[str, float] = {}
        self.waits = 0
        self.slow = 0

    def waited(self, what: str, seconds: float, connections: int) -> None:
        """Takes note of a wait for a connection.

        Args:
            what: what was to be done.
            seconds: how long it waited.
            connections: those that the pool has.
        """
        if seconds >= SLOW_SECONDS / 2:
            self.waits += 1
            self._tell("waited for a connection", what, seconds, count=self.waits, connections=connections)

    def took(self, what: str, seconds: float) -> None:
        """Takes note of what a call took in Postgres."""
        if seconds >= SLOW_SECONDS:
            self.slow += 1
            self._tell("slow call to Postgres", what, seconds, count=self.slow)

    def _tell(
        self, event: Literal["waited for a connection", "slow call to Postgres"], what: str, seconds: float, **more: int
    ) -> None:
        now = self._now()
        if now - self._told.get(event, -TELL_SECONDS) >= TELL_SECONDS:
            self._told[event] = now
            _log.warning(event, extra={"what": what, "seconds": round(seconds, 1), **more})
