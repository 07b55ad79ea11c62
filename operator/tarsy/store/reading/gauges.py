"""Reads gauges from the record: queue depth, workers, and overdue work.

Decision: one statement reads open rows only, so that the cost of a scrape does not grow with the record. Every process
reports the same values: aggregate them with max, never with sum.
"""

import asyncpg

from tarsy.observe import metric_table as table
from tarsy.observe.metrics import GaugeReading, Metrics
from tarsy.store.database import Pool, call
from tarsy.store.queries import load


class Gauges:
    """Reads gauges from the record.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("gauges")

    async def read(self) -> GaugeReading:
        """Returns all gauges as of now; ages are 0 seconds when nothing waits.

        Raises:
            StoreError: Postgres is unavailable or refused.
        """

        async def look(connection: asyncpg.Connection) -> asyncpg.Record:
            return await connection.fetchrow(*self._sql["now"]())

        row = await call(self._pool, "read what is waiting, for metrics", look)
        return {
            table.QUEUED: {(): row["queued"]},
            table.RUNNING: {(): row["running"]},
            table.PARKED: {
                ("Approval",): row["parked_approvals"],
                ("ProviderLimit",): row["parked_limits"],
                ("Quota",): row["parked_quotas"],
            },
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
    """Registers gauges of a pool: its connections, waits and slow calls.

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
