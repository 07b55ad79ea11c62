"""Writes the events of text that is still streaming: at once when the run has a follower, else when its stream lasts.

Most answers end before, and then their events are written once, closed, with the end of the call: an open event without
a reader would cost each call a commit. A follower is shown a text only once its event is on record, so a crash leaves
the event of every text that was shown. The reader of the stream never waits for the record: a task of the block writes.
It has ended when the block has, so an event is never written as open after it was closed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from tarsy.engine.ports import Live
from tarsy.record.timeline import Event

LATE_SECONDS = 5.0
"""Duration of a stream from which on its events are written while it lasts, with or without a follower."""


class LateEvents:
    """A block in which events of a stream begin.

    Args:
        write: puts events on record.
        live: knows the followers of the run.
    """

    def __init__(self, write: Callable[[Sequence[Event]], Awaitable[None]], live: Live) -> None:
        self._write = write
        self._live = live
        self._followers = live.when_followed(self._due)
        self._begun: list[Event] = []
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._followers.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the writing, and raises its error."""
        self._followers.__exit__(None, None, None)
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
        """Has an event written when the run has a follower, or when its stream lasts."""
        self._begun.append(event)
        if len(self._begun) == 1:
            seconds = 0.0 if self._live.followed else LATE_SECONDS
            self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        if self._timer is None or not self._begun:
            return
        self._timer.cancel()
        events, self._begun = self._begun, []
        self._task = asyncio.create_task(self._append(events, self._task))

    async def _append(self, events: Sequence[Event], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self._write(events)
