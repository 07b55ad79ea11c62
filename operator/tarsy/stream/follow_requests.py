"""Which runs somebody reads along with, told to the processes that run them.

Decision: it is said again and again and forgotten when it is not, so that nobody has to notice that a reader, or a
process with all of its readers, is gone. A reader that needs a text from its beginning says so with the same word.
"""

import asyncio
from collections import Counter
from uuid import UUID

from tarsy.store.wakeups import FOLLOW_CHANNEL, NotifyFunction

_AGAIN_SECONDS = 10.0
KEEP_SECONDS = 30.0
"""How often it is said, and how long it holds: two may be lost."""
_ANEW = " anew"


class Following:
    """What the readers of this process follow; say so from `run`."""

    def __init__(self, notify: NotifyFunction, *, again_seconds: float = _AGAIN_SECONDS) -> None:
        """
        Args:
            notify: of the process's notifier.
            again_seconds: how often it is said again.
        """
        self._notify = notify
        self._again = again_seconds
        self._readers: Counter[UUID] = Counter()

    def begin(self, run: UUID) -> None:
        """One more reader of a run."""
        self._readers[run] += 1
        if self._readers[run] == 1:
            self.anew(run)

    def end(self, run: UUID) -> None:
        """One reader less."""
        self._readers[run] -= 1
        if self._readers[run] <= 0:
            del self._readers[run]

    def anew(self, run: UUID) -> None:
        """Asks for what the run's models say now from its beginning."""
        self._notify(FOLLOW_CHANNEL, f"{run}{_ANEW}")

    async def run(self) -> None:
        """Says it until it is cancelled."""
        while True:
            await asyncio.sleep(self._again)
            for run in self._readers:
                self._notify(FOLLOW_CHANNEL, str(run))


def read_follow(payload: str) -> tuple[UUID, bool] | None:
    """The run that is followed, and whether its texts are wanted from their beginning; None for what is neither."""
    try:
        return UUID(payload.removesuffix(_ANEW)), payload.endswith(_ANEW)
    except ValueError:
        return None
