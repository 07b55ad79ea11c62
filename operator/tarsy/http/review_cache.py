"""Caches responses of the Kubernetes API for seconds.

Decision: concurrent lookups of one key share one request, so a thousand streams whose entries expire together send one.
Cancelling one waiter does not cancel the others. The cache is bounded and evicts the oldest entries; errors are not
cached.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
V = TypeVar("V")


class ReviewCache(Generic[_K, V]):
    """A bounded cache with a lifetime for each value.

    Args:
        seconds_of: returns the lifetime of a value in seconds.
        size: maximum number of entries.
        clock: monotonic clock in seconds.
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
        """Returns the value for `key`, from `ask` if none is cached. Raises the exceptions of `ask`."""
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
        """Removes an entry."""
        self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)

    async def _ask(self, key: _K, ask: Callable[[], Awaitable[V]]) -> V:
        began = self._clock()  # the age of a value counts from its request
        value = await ask()
        self._known.pop(key, None)
        self._known[key] = (began + self._seconds_of(value), value)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value

    def _landed(self, key: _K, flight: "asyncio.Task[V]") -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # retrieved, also if all waiters are gone
