"""What became of model calls, across all workers: whether a provider serves.

Decision: read from the record, not told by workers, so that a controller that has just become active knows what the one
before it knew.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

MOST = 2000


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A model call that ended: of which generation of which LLMProvider, and why it failed (None: it did not)."""

    id: UUID
    finished_at: datetime
    failure: str | None
    namespace: str
    name: str
    uid: str
    generation: int


class Calls:
    """Reads the model calls of all runs.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("calls")

    async def ended_since(self, moment: datetime, *, most: int = MOST) -> list[EndedCall]:
        """The calls that ended after `moment`, the oldest first; of more than `most` the newest.

        Raises:
            StoreError: Postgres is away or refused.
        """

        async def look(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(*self._sql["ended_since"](moment=moment, limit=most)))

        return [EndedCall(*row.values()) for row in await call(self._pool, "read how model calls ended", look)]
