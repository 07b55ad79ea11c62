"""Counts and logs slow calls to Postgres and waits for a connection.

They are no errors, but explain why runs take longer. Times are measured in this process, so an overloaded process shows
as well. The log gets at most one line every few seconds, with the count of all so far.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal

SLOW_SECONDS = 2.0
"""A call to Postgres that takes longer is slow; a wait for a connection counts from half of this."""

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
        """Counts a wait for a connection when it was long.

        Args:
            what: the action in words.
            seconds: duration of the wait.
            connections: size of the pool.
        """
        if seconds >= SLOW_SECONDS / 2:
            self.waits += 1
            self._tell("waited for a connection", what, seconds, count=self.waits, connections=connections)

    def took(self, what: str, seconds: float) -> None:
        """Counts a call when it was slow; `seconds` is its duration in Postgres."""
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
