"""Limits how often evidence is computed: a read of a namespace is up to 27 lists of the Kubernetes API.

Decision: a request over a limit is refused at once with 429 and Retry-After, instead of waiting with a connection. A
slot is held until the computation has ended, also if its request was cancelled before: a thread cannot be stopped.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

from tarsy.http.errors import TooManyRequests

AT_ONCE: Final = 3
"""Maximum concurrent reads in this process; times the bytes of a read (`lists.ROOM_BYTES`), it bounds the memory."""

AT_ONCE_EACH: Final = 2
"""Maximum concurrent reads of one caller."""

PER_MINUTE: Final = 30
"""Maximum reads of one caller in a minute."""

_MINUTE: Final = 60.0
_CALLERS: Final = 10_000
_SOON: Final = 2


class EvidenceSlots:
    """Counts reads in all and by caller.

    Args:
        at_once: maximum concurrent reads.
        each: maximum concurrent reads of one caller.
        per_minute: maximum reads of one caller in a minute.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        each: int = AT_ONCE_EACH,
        per_minute: int = PER_MINUTE,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_once = at_once
        self._each = each
        self._per_minute = per_minute
        self._clock = clock
        self._held: Counter[str] = Counter()
        self._begun: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, caller: str) -> Callable[[], None]:
        """Takes a slot; returns the function that gives it back, which may be called repeatedly.

        Args:
            caller: name of the caller.

        Raises:
            TooManyRequests: a limit is reached; the message names it.
        """
        if self._held[caller] >= self._each:
            raise _refused(f"you already have {self._each} reads of evidence in progress; wait for one", _SOON)
        if self._held.total() >= self._at_once:
            raise _refused("too many reads of evidence are in progress; try again", _SOON)
        self._count(caller)
        self._held[caller] += 1
        taken = True

        def give_back() -> None:
            nonlocal taken
            if taken:
                taken = False
                self._held[caller] -= 1
                if not self._held[caller]:
                    del self._held[caller]

        return give_back

    def _count(self, caller: str) -> None:
        """Counts a read that begins now. Raises TooManyRequests if the caller has begun too many."""
        now = self._clock()
        begun = self._begun.setdefault(caller, deque())
        while begun and begun[0] <= now - _MINUTE:
            begun.popleft()
        if len(begun) >= self._per_minute:
            wait = int(begun[0] + _MINUTE - now) + 1
            raise _refused(f"you read evidence {self._per_minute} times in the last minute; try again", wait)
        begun.append(now)
        self._begun.move_to_end(caller)
        if len(self._begun) > _CALLERS:
            self._begun.popitem(last=False)


def _refused(message: str, seconds: int) -> TooManyRequests:
    return TooManyRequests(message, headers={"Retry-After": str(seconds)})
