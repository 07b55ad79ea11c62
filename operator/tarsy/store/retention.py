"""Deletes old records: all layers of a run, and tool definitions that no other run uses.

A run is deleted whole, so that no reader gets half a record. A transaction deletes a bounded number of rows and is
followed by a pause of its own length, which leaves workers half of the disk bandwidth. An advisory lock serializes
concurrent deletions. Only finished runs are deleted; the object of a run may outlive its record and keeps its status.

A replay has the results of the run that it replays, so it is deleted with that run; the copy that it answers from is
deleted when it has ended. Cases of an EvalSuite are kept by their suite, so their replays only have a retention.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

PURGE_LOCK = 7_261_979_003
"""Advisory lock of deletions."""

RUNS_AT_ONCE = 200
ROWS_AT_ONCE = 10_000
_LONGEST_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class OldRecords:
    """Old records of a namespace; `oldest` and `newest` are times at which runs ended."""

    namespace: str
    investigations: int
    oldest: datetime
    newest: datetime


class Retention:
    """Finds and deletes old records; every method raises StoreError when Postgres is unavailable."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("retention")

    async def survey(
        self, seconds: float, namespaces: Sequence[str] = (), *, replays: bool | None = None
    ) -> list[OldRecords]:
        """Returns the records that `purge` would delete, by namespace.

        Args:
            seconds: time for which a record is kept after its run ended.
            namespaces: only these; empty: all.
            replays: only replays, or none of them; None: both.
        """

        async def look(connection: asyncpg.Connection) -> list[OldRecords]:
            rows = await connection.fetch(
                *self._sql["survey"](seconds=seconds, namespaces=list(namespaces), replays=replays)
            )
            return [OldRecords(**row) for row in rows]

        return await call(self._pool, "look for old records", look)

    async def purge(
        self, seconds: float, namespaces: Sequence[str] = (), *, replays: bool | None = None
    ) -> Mapping[str, int]:
        """Deletes all old records and the replays of deleted ones, and returns their number by namespace.

        Args:
            seconds: time for which a record is kept after its run ended.
            namespaces: only these; empty: all.
            replays: only replays, or none of them; None: both.
        """
        deleted: Counter[str] = Counter()
        await self._forget_inputs(namespaces)
        for copies in (False, True):
            while True:
                began = time.monotonic()
                if copies:
                    batch = await self._purge_copies(namespaces)
                else:
                    batch = await self.purge_some(seconds, namespaces, replays=replays)
                if not batch:
                    break
                deleted.update(batch)
                await asyncio.sleep(min(time.monotonic() - began, _LONGEST_PAUSE_SECONDS))
        return deleted

    async def purge_some(
        self,
        seconds: float,
        namespaces: Sequence[str] = (),
        *,
        replays: bool | None = None,
        runs: int = RUNS_AT_ONCE,
        rows: int = ROWS_AT_ONCE,
    ) -> Mapping[str, int]:
        """Deletes the oldest records in one transaction, and returns their number by namespace; empty: none is left.

        Args:
            seconds: as for `purge`.
            namespaces: as for `purge`.
            replays: as for `purge`.
            runs: maximum investigations.
            rows: approximate maximum rows, but at least one investigation is deleted.
        """
        choice = {"seconds": seconds, "namespaces": list(namespaces), "replays": replays, "runs": runs, "rows": rows}
        return await self._delete(self._sql["choose"](**choice))

    async def _purge_copies(self, namespaces: Sequence[str]) -> Mapping[str, int]:
        return await self._delete(self._sql["choose_copies"](namespaces=list(namespaces), runs=RUNS_AT_ONCE))

    async def _forget_inputs(self, namespaces: Sequence[str]) -> None:
        async def forget(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["forget_inputs"](namespaces=list(namespaces)))
            await connection.execute(*self._sql["forget_erased"]())

        await call(self._pool, "delete what ended replays answered from, and what old deletions left", forget)

    async def _delete(self, choose: Sequence[Any]) -> Mapping[str, int]:
        async def delete(connection: asyncpg.Connection) -> Counter[str]:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=PURGE_LOCK))
                chosen = await connection.fetch(*choose)
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
