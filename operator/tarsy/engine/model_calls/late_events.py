"""Writes the events of text that is still streaming when its stream has lasted a while.

Most answers end before, and then their events are written once, closed, with the end of the call. The reader of the
stream never waits for the record: a task of the block writes. It has ended when the block has, so an event is never
written as open after it was closed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from tarsy.record.timeline import Event

LATE_SECONDS = 0.4
"""Duration of a stream from which on its events are written while it lasts."""


class LateEvents:
    """A block in which events of a stream begin.

    Args:
        write: puts events on record.
        seconds: from the first event that is not written until it is written; called for each.
    """

    def __init__(self, write: Callable[[Sequence[Event]], Awaitable[None]], seconds: Callable[[], float]) -> None:
        self._write = write
        self._seconds = seconds
        self._begun: list[Event] = []
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the writing, and raises its error."""
        self._begun.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None:
            return
        if isinstance(error, asyncio.CancelledError):
            self._task.cancel()
            await asyncio.wait({self._task})
        else:
            await self._task

    def begin(self, event: Event) -> None:
        """Has an event written when its stream lasts."""
        self._begun.append(event)
        if len(self._begun) == 1:
            self._timer = asyncio.get_running_loop().call_later(self._seconds(), self._due)

    def _due(self) -> None:
        events, self._begun = self._begun, []
        self._task = asyncio.create_task(self._append(events, self._task))

    async def _append(self, events: Sequence[Event], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self._write(events)
