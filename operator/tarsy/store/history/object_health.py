"""Reads how configuration objects did in recorded runs.

Decision: nothing is stored for it. What a server, a model, an agent or a chain did is in the record of its runs, and a
plan names the objects that it was made from.
"""

from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from tarsy.record.reading.object_health import HourOfObject, RunOfObject
from tarsy.store.database import fetch_rows
from tarsy.store.queries import load

LONGEST_RUN_HOURS: Final = 24
"""Runs that were accepted so long before the period are looked at too."""
RUNS_LOOKED_AT: Final = 1_000


class ObjectHealth:
    """Reads the health of objects; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("object_health")

    async def activity(self, hours: int, namespace_uids: Sequence[str] | None = None) -> list[HourOfObject]:
        """Returns what objects did in each of the last hours; hours without a call are left out.

        Args:
            hours: length of the period.
            namespace_uids: uids of the namespaces of the runs; None: all.
        """
        values = {"hours": hours, "longest": LONGEST_RUN_HOURS, "namespace_uids": namespace_uids}
        return [HourOfObject(**row) for row in await self._fetch("activity", **values)]

    async def runs(
        self, kind: str, namespace: str, name: str, limit: int, namespace_uids: Sequence[str] | None = None
    ) -> list[RunOfObject]:
        """Returns the latest runs that were planned from an object.

        Args:
            kind: of the object.
            namespace: of the object.
            name: of the object.
            limit: maximum number.
            namespace_uids: uids of the namespaces of the runs; None: all.
        """
        values = {"kind": kind, "of_namespace": namespace, "of_name": name, "limit": limit}
        found = await self._fetch("runs", **values, looked=RUNS_LOOKED_AT, namespace_uids=namespace_uids)
        return [RunOfObject(**row) for row in found]

    async def _fetch(self, query: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, "read the health of objects", self._sql[query](**values))
