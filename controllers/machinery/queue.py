"""Queues keys: each key once, by one worker at a time, and later again after a failure.

The semantics of client-go's workqueue: a key that is added while it is being worked on is worked on once more after;
failures wait exponentially longer, up to a limit; success forgets them. Beside it is a line of keys that can wait, so
that ten thousand of them hold up nobody.
"""

import asyncio
import heapq
import itertools
from typing import Generic, TypeVar

_K = TypeVar("_K")


class KeyedQueue(Generic[_K]):
    """Deduplicates and delays the keys of one event loop.

    Args:
        first_delay: seconds before the first retry of a failed key; doubled each time.
        longest_delay: seconds a retry waits at the most.
    """

    def __init__(self, *, first_delay: float = 0.2, longest_delay: float = 30.0) -> None:
        self._first = first_delay
        self._longest = longest_delay
        self._ready: dict[_K, None] = {}
        self._idle: dict[_K, None] = {}
        self._working: set[_K] = set()
        self._again: set[_K] = set()
        self._failures: dict[_K, int] = {}
        self._later: list[tuple[float, int, _K]] = []
        self._due: dict[_K, float] = {}
        self._order = 0
        self._wake = asyncio.Event()

    def add(self, key: _K) -> None:
        """Queues a key for now."""
        if key in self._working:
            self._again.add(key)
            return
        self._idle.pop(key, None)
        self._ready[key] = None
        self._wake.set()

    def add_when_idle(self, key: _K) -> None:
        """Queues a key for when no other is left; an earlier request stands."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._idle[key] = None
            self._wake.set()

    def next_when_idle(self, limit: int) -> list[_K]:
        """Lists the keys that are taken next when no other is left, at most `limit`."""
        return list(itertools.islice(self._idle, limit))

    def add_after(self, key: _K, seconds: float) -> None:
        """Queues a key for `seconds` from now; an earlier request stands."""
        due = asyncio.get_running_loop().time() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._order += 1
        heapq.heappush(self._later, (due, self._order, key))
        self._wake.set()

    async def get(self) -> _K:
        """Waits for the next key; `done` or `failed` must follow."""
        while True:
            now = asyncio.get_running_loop().time()
            while self._later and self._later[0][0] <= now:
                due, _, key = heapq.heappop(self._later)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.add(key)
            if line := self._ready or self._idle:
                key = next(iter(line))
                del line[key]
                self._working.add(key)
                return key
            self._wake.clear()
            wait = self._later[0][0] - now if self._later else None
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def done(self, key: _K) -> None:
        """Notes that a key was processed with success."""
        self._failures.pop(key, None)
        self._finish(key)

    def failed(self, key: _K) -> float:
        """Notes that a key could not be processed; returns the seconds until its retry."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._first * 2.0 ** min(failures, 30), self._longest)
        self._finish(key)
        self.add_after(key, delay)
        return delay

    def _finish(self, key: _K) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif self._ready or self._idle:
            self._wake.set()

    def __len__(self) -> int:
        return len(self._ready) + len(self._idle) + len(self._working)
