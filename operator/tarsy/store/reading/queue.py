"""Reads the queue for people: the workers, and the runs that wait.

Decision: nothing of it is stored for this purpose alone. What a worker tells about itself is in its registration, and
why a run waits is derived from both (`tarsy.record.reading.queue`).
"""

from collections.abc import Sequence
from typing import Any

import asyncpg

from tarsy.record.reading.queue import QueuedRun, SeenWorker
from tarsy.store.database import fetch_rows
from tarsy.store.queries import load


class Queue:
    """Reads the queue; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("queue")

    async def workers(self, limit: int) -> list[SeenWorker]:
        """Returns up to `limit` registered workers, those that are alive first, by host."""
        return [SeenWorker(**row) for row in await self._fetch("workers", "the workers", limit=limit)]

    async def waiting(self, limit: int, namespace_uids: Sequence[str] | None = None) -> list[QueuedRun]:
        """Returns runs that no live worker has, those that wait longest first.

        Args:
            limit: maximum number.
            namespace_uids: uids of their namespaces; None: all.
        """
        found = await self._fetch("waiting", "the queue", limit=limit, namespace_uids=namespace_uids)
        return [QueuedRun(**row) for row in found]

    async def _fetch(self, query: str, what: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))
