"""Holds the end of a call until the next step of its execution, so that both are one statement and one commit.

Decision: a held step is lost when the process dies, as an answer in flight is: the call is then interrupted, and made
again. This is safe because no outside effect lies between a held step and the next step of its execution: every model
call and every tool call begins with a step, which is written with the held one or after it.

A step is held only inside `opened`, for `hold_seconds` at most, and while its agent reads what the next step needs
(`reading`); without a next step by then, a task that `opened` owns writes it. An error of that task ends the block.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

import asyncpg

from tarsy.record.quota import QuotaRefused
from tarsy.record.run import LeaseLost
from tarsy.store.errors import StoreError
from tarsy.store.runs.steps import Step

HOLD_SECONDS = 0.05
"""Maximum time for which a step that ended waits for the next one, in seconds."""

LAST_SECONDS = 5.0
"""Time to write what is held when the run stops before its end, in seconds."""

_ROUNDS = 5
"""Turns of the event loop for which a step is held beyond its time: in a slow process the next step may be due."""

_log = logging.getLogger(__name__)


class HeldSteps:
    """Writes the steps of one attempt, those of one execution in order."""

    def __init__(
        self, write: Callable[[Step, float | None], Awaitable[asyncpg.Record]], hold_seconds: float = HOLD_SECONDS
    ) -> None:
        """
        Args:
            write: writes one step; its second argument limits the seconds for that, None: the time of the run does.
            hold_seconds: time for which a step waits for the next one.
        """
        self._put = write
        self._seconds = hold_seconds
        self._turns: defaultdict[UUID, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._held: dict[UUID, Step] = {}
        self._timers: dict[UUID, asyncio.TimerHandle] = {}
        self._reading: set[UUID] = set()
        self._tasks: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Holds steps until the block ends; what is held then is written.

        Raises:
            BaseExceptionGroup: a held step could not be written; the block was cancelled.
        """
        try:
            async with asyncio.TaskGroup() as self._tasks:
                yield
                await self.write_all()
        finally:
            self._tasks = None
            await self._write_last()

    async def hold(self, step: Step) -> None:
        """Holds the end of a call for the next step of its execution; outside of `opened` it is written at once."""
        if self._tasks is None or step.execution is None:
            await self.write(step)
            return
        async with self._turns[step.execution]:
            await self._write_held(step.execution)
            self._held[step.execution] = step
            later = asyncio.get_running_loop().call_later
            self._timers[step.execution] = later(self._seconds, self._in_time, step, _ROUNDS)

    async def write(self, step: Step) -> asyncpg.Record:
        """Writes a step of an execution with the one that is held of it, or after that; a step of the run after all."""
        if step.execution is None:
            await self.write_all()
            return await self._put(step, None)
        async with self._turns[step.execution]:
            held = self._held.get(step.execution)
            both = None if held is None else step.after(held)
            if held is None or both is None:
                await self._write_held(step.execution)
                return await self._put(step, None)
            self._held[step.execution] = both  # a write that is cut may be done: then only all of it is written again
            try:
                row = await self._put(both, None)
            except QuotaRefused:  # of the call that was to begin; the one that ended is recorded
                self._held[step.execution] = held
                await self._write_held(step.execution)
                raise
            self._forget(step.execution)
            return row

    async def write_all(self, execution: UUID | None = None) -> None:
        """Writes what is held of an execution, None: of the run."""
        for one in [execution] if execution is not None else list(self._held):
            async with self._turns[one]:
                await self._write_held(one)

    async def write_result(self, execution: UUID) -> None:
        """Writes what is held of an execution if it has the result of a tool."""
        held = self._held.get(execution)
        if held is not None and held.query.startswith("tool_call_finished"):
            await self.write_all(execution)

    @contextmanager
    def reading(self, execution: UUID) -> Iterator[None]:
        """Keeps what is held of an execution while its agent reads what its next step needs."""
        self._reading.add(execution)
        try:
            yield
        finally:
            self._reading.discard(execution)

    def _in_time(self, step: Step, rounds: int) -> None:
        """Has a step written that is still held."""
        if self._tasks is None or step.execution is None or self._held.get(step.execution) is not step:
            return
        if step.execution in self._reading:
            later = asyncio.get_running_loop().call_later
            self._timers[step.execution] = later(self._seconds, self._in_time, step, _ROUNDS)
        elif rounds:
            asyncio.get_running_loop().call_soon(self._in_time, step, rounds - 1)
        else:
            self._tasks.create_task(self.write_all(step.execution))

    async def _write_held(self, execution: UUID, seconds: float | None = None) -> None:
        """Writes what is held of an execution; the caller has its turn."""
        if (held := self._held.get(execution)) is not None:
            await self._put(held, seconds)
            self._forget(execution)

    async def _write_last(self) -> None:
        """Writes what is held when the block was stopped; a step that cannot be written is one that was in flight."""
        for execution, held in list(self._held.items()):
            try:
                async with self._turns[execution]:
                    await self._write_held(execution, LAST_SECONDS)
            except (LeaseLost, StoreError) as error:
                _log.warning("a step is lost together with its attempt, cannot %s: %s", held.what, error)
                self._forget(execution)

    def _forget(self, execution: UUID) -> None:
        self._held.pop(execution, None)
        if (timer := self._timers.pop(execution, None)) is not None:
            timer.cancel()
