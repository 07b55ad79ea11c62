"""Limits concurrent processing in total and by namespace, and schedules waiting requests fairly.

Decision: a free slot goes to the namespace that holds the fewest, and among equals to the one that has waited longest.
So a hundred requests of one namespace delay the first request of another by one slot, not by all of them.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from itertools import count
from typing import Final

from tarsy.http.errors import Unavailable
from tarsy.listening.fair_set import FairSet

PLACES: Final = 64
PLACES_EACH: Final = 16
WAITING: Final = 128
WAITING_EACH: Final = 32
_Turn = asyncio.Future[None]


class Turns:
    """A fair semaphore by namespace.

    Args:
        places: maximum concurrent requests.
        each: maximum concurrent requests of one namespace.
        waiting: maximum waiting requests; beyond it, the oldest of the namespace with the most is refused.
        waiting_each: maximum waiting requests of one namespace.
    """

    def __init__(
        self,
        places: int = PLACES,
        each: int = PLACES_EACH,
        *,
        waiting: int = WAITING,
        waiting_each: int = WAITING_EACH,
    ) -> None:
        self._places = places
        self._each = each
        self._crowd: FairSet[str, _Turn] = FairSet(waiting, waiting_each)
        self._held: Counter[str] = Counter()
        self._lines: dict[str, deque[tuple[int, _Turn]]] = {}
        self._numbers = count()

    @contextlib.asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Holds a slot of a namespace while entered.

        Raises:
            Unavailable: too many requests are waiting.
        """
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(namespace, deque()).append((next(self._numbers), turn))
        for other in self._crowd.enter(namespace, turn):
            if not other.done():
                other.set_exception(Unavailable("too many notifications are being processed; try again", retry_after=5))
        self._give()
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back(namespace)  # granted while the caller was cancelled
            raise
        finally:
            self._crowd.leave(turn)
        try:
            yield
        finally:
            self._give_back(namespace)

    def _give_back(self, namespace: str) -> None:
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        self._give()

    def _give(self) -> None:
        while self._held.total() < self._places:
            for namespace, line in list(self._lines.items()):
                while line and line[0][1].done():  # no longer waiting
                    line.popleft()
                if not line:
                    del self._lines[namespace]
            open_to = [name for name in self._lines if self._held[name] < self._each]
            if not open_to:
                return
            chosen = min(open_to, key=lambda name: (self._held[name], self._lines[name][0][0]))
            _, turn = self._lines[chosen].popleft()
            self._crowd.leave(turn)
            self._held[chosen] += 1
            turn.set_result(None)
