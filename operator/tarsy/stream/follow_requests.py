"""Announces followed runs to the processes that run them.

Decision: the request is repeated while there are readers and expires without repetition, so that the loss of a reader,
or of a process with all its readers, needs no detection. A reader that needs a text from its beginning uses the same
request.
"""

import asyncio
from collections import Counter
from uuid import UUID

from tarsy.store.runs.wakeups import FOLLOW_CHANNEL, NotifyFunction

_AGAIN_SECONDS = 10.0
KEEP_SECONDS = 30.0
"""Interval of the requests, and their validity: two may be lost."""
_ANEW = " anew"


class Following:
    """Counts the readers of this process by run, and sends their requests in `run`."""

    def __init__(self, notify: NotifyFunction, *, again_seconds: float = _AGAIN_SECONDS) -> None:
        """
        Args:
            notify: of the notifier of the process.
            again_seconds: interval of the requests.
        """
        self._notify = notify
        self._again = again_seconds
        self._readers: Counter[UUID] = Counter()

    def begin(self, run: UUID) -> None:
        """Adds a reader of a run."""
        self._readers[run] += 1
        if self._readers[run] == 1:
            self.anew(run)

    def end(self, run: UUID) -> None:
        """Removes a reader of a run."""
        self._readers[run] -= 1
        if self._readers[run] <= 0:
            del self._readers[run]

    def anew(self, run: UUID) -> None:
        """Requests the open texts of a run from their beginning."""
        self._notify(FOLLOW_CHANNEL, f"{run}{_ANEW}")

    async def run(self) -> None:
        """Repeats the requests until it is cancelled."""
        while True:
            await asyncio.sleep(self._again)
            for run in self._readers:
                self._notify(FOLLOW_CHANNEL, str(run))


def read_follow(payload: str) -> tuple[UUID, bool] | None:
    """Parses a request: the run, and whether its texts are wanted from their beginning; None when it is malformed."""
    try:
        return UUID(payload.removesuffix(_ANEW)), payload.endswith(_ANEW)
    except ValueError:
        return None
