"""Deletes old records, for good: all layers of a run and what belongs to nobody else.

Runs are deleted whole, so that nobody reads half a record, but as few in a transaction as have a bounded number of
rows together, with a pause as long as the transaction took: the workers keep half of the disk. An advisory lock makes
two who delete take turns. Only finished runs are touched; a run's object may outlive its record, its status stays.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

PURGE_LOCK = 7_261_979_003
"""The advisory lock of whoever deletes."""

RUNS_AT_ONCE = 200
ROWS_AT_ONCE = 10_000
_LONGEST_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class OldRecords:
    """What of a namespace is old enough to be deleted; the times are those at which the runs ended."""

    namespace: str
    investigations: int
    oldest: datetime
    newest: datetime


class Retention:
    """Finds and deletes records by the age of their end; every method raises StoreError when Postgres is away."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("retention")

    async def survey(self, seconds: float, namespaces: Sequence[str] = ()) -> list[OldRecords]:
        """What `purge` with the same arguments would delete, by namespace."""

        async def look(connection: asyncpg.Connection) -> list[OldRecords]:
            rows = await connection.fetch(*self._sql["survey"](seconds=seconds, namespaces=list(namespaces)))
            return [OldRecords(**row) for row in rows]

        return await call(self._pool, "look for old records", look)

    async def purge(self, seconds: float, namespaces: Sequence[str] = ()) -> Mapping[str, int]:
        """Deletes all records that are old, and returns their number by namespace.

        Args:
            seconds: a record is kept so long after its run ended.
            namespaces: only theirs; all when there are none.
        """
        deleted: Counter[str] = Counter()
        while True:
            began = time.monotonic()
            batch = await self.purge_some(seconds, namespaces)
            if not batch:
                return deleted
            deleted.update(batch)
            await asyncio.sleep(min(time.monotonic() - began, _LONGEST_PAUSE_SECONDS))

    async def purge_some(
        self,
        seconds: float,
        namespaces: Sequence[str] = (),
        *,
        runs: int = RUNS_AT_ONCE,
        rows: int = ROWS_AT_ONCE,
    ) -> Mapping[str, int]:
        """Deletes the oldest of them in one transaction, and returns their number by namespace; empty: none is left.

        Args:
            seconds: as for `purge`.
            namespaces: as for `purge`.
            runs: investigations at most.
            rows: about so many rows at most, but at least one investigation.
        """

        async def delete(connection: asyncpg.Connection) -> Counter[str]:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=PURGE_LOCK))
                chosen = await connection.fetch(
                    *self._sql["choose"](seconds=seconds, namespaces=list(namespaces), runs=runs, rows=rows)
                )
                if not chosen:
                    return Counter()
                ids = [row["id"] for row in chosen]
                found = await connection.fetch(*self._sql["tool_sets"](ids=ids))
                tool_sets = [row["tool_set"] for row in found]
                gone = await connection.fetch(*self._sql["delete"](ids=ids))
                try:
                    async with connection.transaction():
                        await connection.execute(*self._sql["delete_tool_sets"](hashes=tool_sets))
                except asyncpg.ForeignKeyViolationError:
                    pass  # a run took one of them into use just now: it goes with that run
                return Counter(row["namespace"] for row in gone)

        return await call(self._pool, "delete old records", delete)
