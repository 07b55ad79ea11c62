"""Reads the outcomes of model calls of all workers, which show whether a provider works.

Decision: outcomes are read from the record, not reported by workers, so that a controller that becomes active knows as
much as the one before it.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

MOST = 2000
"""Calls read at most."""


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A finished model call: its LLMProvider with uid and generation, and its failure (None: it succeeded)."""

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
        """Returns the calls that ended after `moment`, oldest first; of more than `most` the newest.

        Raises:
            StoreError: Postgres is unavailable or refused.
        """

        async def look(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(*self._sql["ended_since"](moment=moment, limit=most)))

        return [EndedCall(*row.values()) for row in await call(self._pool, "read how model calls ended", look)]
