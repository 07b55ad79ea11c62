"""What the record says of this moment, as gauges of metrics: the queue, the workers, what is late.

Decision: it is one statement over what is open, so that a scrape costs the same however much was ever investigated.
Every process that is asked answers the same numbers: take their maximum, never their sum.
"""

import asyncpg

from tarsy.observe import metric_table as table
from tarsy.observe.metrics import GaugeReading, Metrics
from tarsy.store.database import Pool, call
from tarsy.store.queries import load


class Gauges:
    """Reads them.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("gauges")

    async def read(self) -> GaugeReading:
        """All of them as of now; what waits for nothing has waited 0 seconds.

        Raises:
            StoreError: Postgres is away or refused.
        """

        async def look(connection: asyncpg.Connection) -> asyncpg.Record:
            return await connection.fetchrow(*self._sql["now"]())

        row = await call(self._pool, "read what is waiting, for metrics", look)
        return {
            table.QUEUED: {(): row["queued"]},
            table.RUNNING: {(): row["running"]},
            table.OLDEST_QUEUED: {(): row["oldest"] or 0.0},
            table.QUESTIONS: {("queued",): row["queued_questions"], ("running",): row["running_questions"]},
            table.WORKERS: {(): row["workers"]},
            table.OWED: {(): row["owed"]},
            table.OLDEST_OWED: {(): row["oldest_owed"] or 0.0},
            table.NOTICES_OWED: {(): row["notices"]},
            table.OLDEST_NOTICE_OWED: {(): row["oldest_notice"] or 0.0},
            table.UNPUBLISHED: {(): row["unpublished"]},
            table.PROJECTION_LAG: {(): row["lag"] or 0.0},
        }


def watch_pool(metrics: Metrics, pool: Pool, name: str) -> None:
    """Tells how a pool is used: its connections, and how often it held its users up.

    Args:
        metrics: of the process.
        pool: from `open_pool`.
        name: of the pool, a value of the label `pool`.
    """

    def connections() -> dict[tuple[str, ...], float]:
        idle, size = pool.get_idle_size(), pool.get_size()
        return {(name, "used"): size - idle, (name, "idle"): idle}

    metrics.pull(table.CONNECTIONS, connections)
    metrics.pull(table.POOL_WAITS, lambda: {(name,): pool.pressure.waits})
    metrics.pull(table.SLOW, lambda: {(name,): pool.pressure.slow})
