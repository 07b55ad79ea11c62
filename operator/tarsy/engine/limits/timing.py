"""Measures and limits the time that models and tools take, and nothing else.

An iteration's limit guards against models and tools that are slow. A Postgres that is slow is no fault of theirs (the
run's own deadline bounds it), so the clock stands still while a step is written; calls side by side count once.
Silence is timed by one timer that looks how long ago something was heard: setting a timer anew with every chunk costs
more than all else that is done with a chunk.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from tarsy.plan.model import AgentLimits, CallTimeouts, ProviderPlan


def timeouts(provider: ProviderPlan, limits: AgentLimits) -> CallTimeouts:
    """The time limits of a provider's calls; a plan older than the provider's own has those of the run."""
    return provider.timeouts or CallTimeouts(
        silence=limits.first_token_seconds,
        first_token=limits.first_token_seconds,
        stall=limits.stall_seconds,
        call=limits.model_call_seconds,
        iteration=limits.iteration_seconds,
    )


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


class Silence:
    """A block that is ended by TimeoutError when it waits too long for the next sign of life.

    Args:
        seconds: that it may wait for the first.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self.expect(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._limit.__aexit__(kind, error, traceback)

    def heard(self) -> None:
        """Something came: until `expect` is called nothing is waited for."""
        self._due = None

    def expect(self, seconds: float) -> None:
        """The next sign of life may take so long from now."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + seconds
        if self._timer is None or self._due < self._timer.when():
            self._look_at(self._due)

    def expired(self) -> bool:
        """Whether this ended the block."""
        return self._limit.expired()

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        self._timer, due, now = None, self._due, asyncio.get_running_loop().time()
        if due is None:
            return
        if now < due:
            self._look_at(due)
        else:
            self._limit.reschedule(now)


class Cut:
    """A block that is ended by TimeoutError some seconds after somebody says so; never while it is held."""

    def __init__(self) -> None:
        self._limit = asyncio.timeout(None)
        self._when: float | None = None
        self._held = 0

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, traceback)

    def after(self, seconds: float) -> None:
        """Ends the block so long from now; what was said first counts."""
        if self._when is None:
            self._when = asyncio.get_running_loop().time() + seconds
            self._set()

    def expired(self) -> bool:
        """Whether this ended the block."""
        return self._limit.expired()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Completes the work inside before a limit applies."""
        self._held += 1
        self._set()
        try:
            yield
        finally:
            self._held -= 1
            self._set()

    def _set(self) -> None:
        if not self._limit.expired():
            self._limit.reschedule(None if self._held else self._when)


@contextmanager
def paused(limit: asyncio.Timeout) -> Iterator[None]:
    """Stops a running timeout; what was left of it is left of it afterwards. An error inside leaves it stopped."""
    when, now = limit.when(), asyncio.get_running_loop().time
    left = None if when is None else when - now()
    limit.reschedule(None)
    yield
    limit.reschedule(None if left is None else now() + left)
