"""Answers of the Kubernetes API, remembered for seconds.

Decision: one flight a question. A thousand followers whose answers lapse at once ask once; who waits is not cancelled
by another's leaving. Bounded: the oldest answers go first. An error is never remembered.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
V = TypeVar("V")


class ReviewCache(Generic[_K, V]):
    """A bounded cache of what `seconds_of` says an answer is good for.

    Args:
        seconds_of: how many seconds an answer holds.
        size: how many answers are kept.
        clock: seconds that only grow.
    """

    def __init__(
        self, seconds_of: Callable[[V], float], *, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds_of = seconds_of
        self._size = size
        self._clock = clock
        self._known: OrderedDict[_K, tuple[float, V]] = OrderedDict()
        self._flights: dict[_K, asyncio.Task[V]] = {}

    async def get(self, key: _K, ask: Callable[[], Awaitable[V]]) -> V:
        """The answer for `key`, asked for where none is known; raises what `ask` raises."""
        found = self._known.get(key)
        if found is not None and found[0] > self._clock():
            return found[1]
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(self._ask(key, ask))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)

    def forget(self, key: _K) -> None:
        """Asks again next time."""
        self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)

    async def _ask(self, key: _K, ask: Callable[[], Awaitable[V]]) -> V:
        began = self._clock()  # an answer is as old as its question
        value = await ask()
        self._known.pop(key, None)
        self._known[key] = (began + self._seconds_of(value), value)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def _landed(self, key: _K, flight: "asyncio.Task[V]") -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # seen, also where all who waited have left
