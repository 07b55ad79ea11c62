"""The little that is read again and again while people follow runs: how far each of them is.

Decision: one statement for all runs that are followed, however many; what changed is then read of those that did.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load


@dataclass(frozen=True, slots=True)
class Head:
    """How far a run is; `parent` is the investigation that it answers a question about."""

    id: UUID
    parent: UUID | None
    namespace: str
    namespace_uid: str
    revision: int
    finished: bool


class Heads:
    """Reads them; every method raises StoreError when Postgres is away or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("following")

    async def of(self, runs: Collection[UUID]) -> list[Head]:
        """Those of `runs` that have a record."""
        return [Head(**row) for row in await self._fetch("heads", ids=list(runs))]

    async def stirring(self, known: Collection[UUID]) -> list[Head]:
        """Those of all runs that wait or run, or have just ended, and of those that were `known` as such."""
        return [Head(**row) for row in await self._fetch("stirring", known=list(known))]

    async def streaming(self, run: UUID) -> dict[UUID, int]:
        """The open events of a run, with the revision of the run at which each was last written."""
        return {row["id"]: row["revision"] for row in await self._fetch("streaming", investigation=run)}

    async def _fetch(self, query: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql[query](**values))
            return found

        return await call(self._pool, "read how far runs are", fetch)
