"""Controls one run: its desired state, its draining, and whether this process may still act for it.

A worker that shall stop hands a run back at a boundary: steps under way end and are recorded, the next ones are not
begun. The run is then cancelled where nothing of it is under way, so that another attempt goes on and repeats nothing.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from tarsy.record.run import DesiredState, LeaseLost


class LocalLease:
    """The lease as this process may believe in it: judged by the monotonic clock, counted from before the heartbeat.

    Postgres' `now()` decides which worker owns a run. This local deadline is earlier and checked before every outside
    effect, so that a process that was paused stops by itself.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._deadline = clock() + seconds

    def renewed(self, asked_at: float) -> None:
        """A heartbeat that was sent at `asked_at` (this clock's) was answered."""
        self._deadline = asked_at + self._seconds

    def now(self) -> float:
        """The clock that `renewed` expects."""
        return self._clock()

    def check(self) -> None:
        """Raises LeaseLost when the lease may have ended."""
        if self._clock() >= self._deadline:
            raise LeaseLost("the lease was not renewed in time; another worker may own the run")


class RunControl:
    """Implements `engine.ports.Control` for one run; the worker tells it what the heartbeat brought.

    `answers`: the run answers a question about another.
    """

    def __init__(self, lease: LocalLease, desired: DesiredState, *, answers: bool = False) -> None:
        self._lease = lease
        self.answers = answers
        self.task: asyncio.Task[None] | None = None
        self.desired = desired
        self.lost = False
        self._draining = False
        self._to_tell: list[Callable[[], None]] = []
        self._under_way: dict[UUID, UUID] = {}

    @property
    def concluding(self) -> bool:
        """Whether the run shall stop now and summarise what it has."""
        return self.desired is DesiredState.CONCLUDED

    @property
    def cancelled(self) -> bool:
        """Whether the run shall end at once."""
        return self.desired is DesiredState.CANCELLED

    @contextmanager
    def when_concluding(self, tell: Callable[[], None]) -> Iterator[None]:
        """Calls `tell` once as soon as the run shall conclude, at once if it shall already; until the context ends."""
        if self.concluding:
            tell()
            yield
            return
        self._to_tell.append(tell)
        try:
            yield
        finally:
            self._to_tell.remove(tell)

    def check(self) -> None:
        """Called before every outside effect; raises LeaseLost when this process may not act any more."""
        if self.lost:
            raise LeaseLost("another attempt owns the run")
        self._lease.check()

    def want(self, desired: DesiredState) -> None:
        """The owner's wish as of now; a cancellation stops the run wherever it is, a conclusion what is under way."""
        before, self.desired = self.concluding, desired
        if self.concluding and not before:
            for tell in list(self._to_tell):
                tell()
        if self.cancelled:
            self._stop()

    def lose(self) -> None:
        """The run is another's: stops it wherever it is."""
        self.lost = True
        self._stop()

    def drain(self) -> None:
        """The worker stops: ends the run where none of its steps is under way, now or when they have ended."""
        self._draining = True
        self._stop_at_boundary()

    async def begin(self, step: UUID, of: UUID) -> None:
        """A step of `of` (an execution) is about to be written as begun; while the worker drains, none is."""
        if self._draining:
            await asyncio.Event().wait()  # until the run is stopped
        self.hold(step, of)

    def hold(self, step: UUID, of: UUID) -> None:
        """Something begins that even a worker that drains waits for."""
        self._under_way[step] = of

    def end(self, ended: UUID) -> None:
        """A step, or all steps of an execution, ended, and it is on record."""
        self._under_way = {step: of for step, of in self._under_way.items() if ended not in (step, of)}
        self._stop_at_boundary()

    def _stop_at_boundary(self) -> None:
        if self._draining and not self._under_way:
            self._stop()

    def _stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
