"""Time that models and tools take, and nothing else.

An iteration's limit guards against models and tools that are slow. A Postgres that is slow is no fault of theirs (the
run's own deadline bounds it), so the clock stands still while a step is written; calls side by side count once.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Counts the seconds in which at least one call is under way.

    Args:
        limit: seconds that may be spent in all.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._spent = 0.0
        self._running = 0
        self._since = 0.0

    @property
    def left(self) -> float:
        """Seconds left of the limit; not positive when it is reached."""
        now = asyncio.get_running_loop().time() if self._running else self._since
        return self._limit - self._spent - (now - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """A call is under way."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A call that is under way waits for somebody else."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def _count(self, change: int) -> None:
        now = asyncio.get_running_loop().time()
        if self._running:
            self._spent += now - self._since
        self._since = now
        self._running += change


@contextmanager
def paused(limit: asyncio.Timeout) -> Iterator[None]:
    """Stops a running timeout; what was left of it is left of it afterwards. An error inside leaves it stopped."""
    when, now = limit.when(), asyncio.get_running_loop().time
    left = None if when is None else when - now()
    limit.reschedule(None)
    yield
    limit.reschedule(None if left is None else now() + left)
