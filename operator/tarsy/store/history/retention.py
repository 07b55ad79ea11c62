"""Deletes old versions of objects: whole days by dropping their partition, others row by row.

A namespace whose history is larger than its limit loses its oldest versions first. Partitions are made days ahead, so
that no version is refused at midnight.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import asyncpg

from tarsy.store.database import call, fetch_rows
from tarsy.store.history.object_history import VERSION_OVERHEAD
from tarsy.store.queries import load

PARTITION_LOCK = 7_261_979_004
"""Advisory lock of making and dropping partitions."""

DAYS_AHEAD = 2
_ROWS_AT_ONCE = 5_000
_PREFIX = "object_version_"


class HistoryRetention:
    """Makes and drops partitions, and deletes versions; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("object_history")

    async def make_partitions(self, today: date) -> None:
        """Makes the partitions from the day before a day to two days after it, where they are missing."""
        wanted = {today + timedelta(days=number): True for number in range(-1, DAYS_AHEAD + 1)}

        async def make(connection: asyncpg.Connection) -> None:
            there = await self._days(connection)
            if wanted.keys() <= there.keys():
                return
            async with connection.transaction():
                await connection.execute(*self._sql["lock_partitions"](key=PARTITION_LOCK))
                await connection.execute("SET LOCAL lock_timeout = '3s'")
                for day in wanted:
                    # A statement about tables takes no parameters; all of it is made of dates.
                    await connection.execute(
                        f"CREATE TABLE IF NOT EXISTS {_PREFIX}{day:%Y%m%d} PARTITION OF object_version "
                        f"FOR VALUES FROM ('{day} 00:00:00+00') TO ('{day + timedelta(days=1)} 00:00:00+00')"
                    )

        await call(self._pool, "make partitions for the history of objects", make)

    async def drop_partitions(self, before: datetime) -> int:
        """Drops the days that ended before a time, and returns their number."""

        async def drop(connection: asyncpg.Connection) -> int:
            last = before.astimezone(UTC).date()
            old = [name for day, name in (await self._days(connection)).items() if day < last]
            if not old:
                return 0
            async with connection.transaction():
                await connection.execute(*self._sql["lock_partitions"](key=PARTITION_LOCK))
                await connection.execute("SET LOCAL lock_timeout = '3s'")
                for name in old:
                    await connection.execute(f"DROP TABLE IF EXISTS {name}")
                await connection.execute(*self._sql["drop_days"](day=last))
            return len(old)

        return await call(self._pool, "drop old partitions of the history of objects", drop)

    async def evict(self, limit: int) -> Mapping[str, int]:
        """Deletes the oldest versions of namespaces that are larger than a limit; returns their number by namespace.

        Args:
            limit: maximum bytes of a namespace, its present objects included.
        """
        deleted: Counter[str] = Counter()
        while True:
            sizes = await self._fetch("sizes", overhead=VERSION_OVERHEAD)
            large = [row for row in sizes if row["bytes"] > limit]
            if not large:
                return deleted
            for row in large:
                deleted[row["namespace"]] += await self._evict_some(row, row["bytes"] - limit)

    async def _evict_some(self, row: asyncpg.Record, excess: int) -> int:
        """Deletes up to thousands of versions of a namespace's oldest day."""
        day, namespace_uid = row["oldest"], row["namespace_uid"]
        start = datetime.combine(day, time(), UTC)

        async def delete(connection: asyncpg.Connection) -> int:
            async with connection.transaction():
                gone = await connection.fetchrow(
                    *self._sql["evict"](
                        namespace_uid=namespace_uid,
                        start=start,
                        end=start + timedelta(days=1),
                        rows=_ROWS_AT_ONCE,
                        excess=excess,
                    )
                )
                if gone["versions"]:
                    shrink = {"namespace_uid": namespace_uid, "day": day, "bytes": gone["bytes"]}
                    await connection.execute(*self._sql["shrink"](**shrink))
                else:  # the day is empty: what its size says is left of rounding, or of a purge
                    await connection.execute(*self._sql["drop_size"](namespace_uid=namespace_uid, day=day))
                return int(gone["versions"])

        return await call(self._pool, "delete the oldest versions of a namespace", delete)

    async def survey(self, seconds: float, namespaces: Sequence[str] = ()) -> Mapping[str, int]:
        """Returns the number of versions by namespace that `purge` with the same arguments would delete."""
        rows = await self._fetch("survey", seconds=seconds, namespaces=list(namespaces))
        return {row["namespace"]: row["versions"] for row in rows}

    async def purge(self, seconds: float, namespaces: Sequence[str] = ()) -> Mapping[str, int]:
        """Deletes versions that are older than `seconds` and what `forget` deletes; returns their number by namespace.

        Args:
            seconds: maximum age.
            namespaces: only these; empty: all.
        """
        deleted: Counter[str] = Counter()
        values = {"seconds": seconds, "namespaces": list(namespaces)}
        while gone := await self._fetch("purge", **values, rows=_ROWS_AT_ONCE):
            deleted.update({row["namespace"]: row["versions"] for row in gone})
        await self.forget(seconds, namespaces)
        return deleted

    async def forget(self, seconds: float, namespaces: Sequence[str] = ()) -> None:
        """Deletes windows without a watch that ended before, and what is kept of objects that are not watched since.

        Args:
            seconds: maximum age.
            namespaces: only these; empty: all.
        """
        values = {"seconds": seconds, "namespaces": list(namespaces)}
        await self._fetch("purge_heads", **values)
        await self._fetch("purge_unwatched", **values)

    async def _days(self, connection: asyncpg.Connection) -> dict[date, str]:
        rows = await connection.fetch(*self._sql["partitions"]())
        names = [str(row["name"]) for row in rows]
        return {
            datetime.strptime(name.removeprefix(_PREFIX), "%Y%m%d").date(): name  # a date has no zone
            for name in names
            if name.removeprefix(_PREFIX).isdigit()
        }

    async def _fetch(self, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, "delete old versions of objects", self._sql[statement](**values))
