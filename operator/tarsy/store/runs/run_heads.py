"""Reads the revisions of runs, which are polled while people follow them.

Decision: one statement reads all followed runs; only runs with a newer revision are then read in full.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.store.database import fetch_rows
from tarsy.store.queries import load


@dataclass(frozen=True, slots=True)
class Head:
    """Revision and state of a run; `parent` is the investigation that it answers a question about."""

    id: UUID
    parent: UUID | None
    namespace: str
    namespace_uid: str
    revision: int
    finished: bool


class Heads:
    """Reads heads of runs; every method raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("following")

    async def of(self, runs: Collection[UUID]) -> list[Head]:
        """Returns the heads of those of `runs` that have a record."""
        return [Head(**row) for row in await self._fetch("heads", ids=list(runs))]

    async def stirring(self, known: Collection[UUID]) -> list[Head]:
        """Returns the heads of all runs that wait, run or have just ended, and of `known` runs."""
        return [Head(**row) for row in await self._fetch("stirring", known=list(known))]

    async def streaming(self, run: UUID) -> dict[UUID, int]:
        """Returns the open events of a run, with the revision of the run at which each was last written."""
        return {row["id"]: row["revision"] for row in await self._fetch("streaming", investigation=run)}

    async def _fetch(self, query: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, "read the heads of runs", self._sql[query](**values))
