"""Decides the outcomes of findings: whether their alerts settled, recurred, or settled after a change.

Watches: finished runs in Postgres that are due, every ten seconds; an index finds them, and a run is due when its
incident was resolved or fired again, or a period is over. Decides: `tarsy.record.judging.incident_outcome`. Writes:
the outcome into the record, and has the status of the Investigation written again.
"""

from collections.abc import Callable
from typing import Final

from tarsy.record.run import InvestigationRecord
from tarsy.store.judging.outcomes import Outcomes
from tarsy.store.reading.reads import Reads

ROUND_SECONDS: Final = 10.0
MOST_LOOKS: Final = 200
"""Runs that one round looks at, at most."""


class OutcomeRounds:
    """Decides the outcomes that are due.

    Args:
        outcomes: of the record.
        reads: of the record.
        publish_again: has the status of a run written again.
    """

    def __init__(self, outcomes: Outcomes, reads: Reads, publish_again: Callable[[InvestigationRecord], None]) -> None:
        self._outcomes = outcomes
        self._reads = reads
        self._publish_again = publish_again

    async def round(self) -> None:
        """Looks at the runs that are due, at most `MOST_LOOKS`.

        Raises:
            StoreError: Postgres is unavailable.
        """
        for _ in range(MOST_LOOKS):
            looked = await self._outcomes.look()
            if looked is None:
                return
            run, outcome = looked
            record = await self._reads.record(run) if outcome is not None else None
            if record is not None:
                self._publish_again(record)
