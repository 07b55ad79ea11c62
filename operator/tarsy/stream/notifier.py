"""Sends wake-ups after commits, in one task a process.

`notify` is a plain function that never waits. A wake-up that is requested twice before the next batch is sent once;
wake-ups about the progress of runs are batched longer, because their readers query a few times a second at most. The
number of unsent wake-ups is bounded; above the bound those of a channel become one without a payload, which wakes every
reader of the channel. Wake-ups that cannot be sent are dropped with a log line: readers poll.
"""

import asyncio
import contextlib
import logging

import asyncpg

from tarsy.store.database import call
from tarsy.store.errors import StoreError
from tarsy.store.queries import load
from tarsy.store.runs.wakeups import RUN_CHANNEL

_log = logging.getLogger(__name__)


class Notifier:
    """Coalesces wake-ups and sends them in `run`."""

    def __init__(
        self, pool: asyncpg.Pool, *, pause_seconds: float = 0.02, progress_seconds: float = 0.1, bound: int = 1000
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            pause_seconds: pause between two batches.
            progress_seconds: the same when a batch only contains progress of runs.
            bound: maximum unsent wake-ups.
        """
        self._pool = pool
        self._pause = pause_seconds
        self._progress = max(0.0, progress_seconds - pause_seconds)
        self._bound = bound
        self._unsent: dict[tuple[str, str], None] = {}
        self._some = asyncio.Event()
        self._urgent = asyncio.Event()

    def notify(self, channel: str, payload: str = "") -> None:
        """Requests a wake-up; neither waits nor raises. Must be called in the event loop of `run`."""
        if len(self._unsent) >= self._bound:
            self._unsent = dict.fromkeys((known, "") for known, _ in self._unsent)
            payload = ""
        self._unsent[channel, payload] = None
        self._some.set()
        if channel != RUN_CHANNEL:
            self._urgent.set()

    async def run(self) -> None:
        """Sends until it is cancelled; then sends the rest, if Postgres answers at once."""
        try:
            while True:
                await self._some.wait()
                await self._send()
                await asyncio.sleep(self._pause)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._progress):
                        await self._urgent.wait()
        finally:
            if self._unsent:
                await self._send()

    async def _send(self) -> None:
        batch, self._unsent = list(self._unsent), {}
        self._some.clear()
        self._urgent.clear()

        channels, payloads = [channel for channel, _ in batch], [payload for _, payload in batch]
        statement = load("wakeups")["send"](channels=channels, payloads=payloads)

        async def send(connection: asyncpg.Connection) -> None:
            await connection.execute(*statement)

        try:
            async with asyncio.timeout(5):
                await call(self._pool, "send wake-ups", send)
        except (StoreError, TimeoutError) as error:
            _log.warning("%d wake-ups dropped, readers poll: %s", len(batch), error)
