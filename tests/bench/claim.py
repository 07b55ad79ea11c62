"""What a claim costs where thousands wait: time in Postgres and in `choose`, by how many lines they stand in.

It stands on a Postgres of its own, without an operator. The runs are claimed by nobody's worker and never run.
"""

import asyncio
import time
from statistics import median
from uuid import UUID, uuid4

import asyncpg
from tests.bench.figures import Figure, Result, percentile

from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy.store.runs.claims import Claims
from tarsy_dev.postgres import LocalPostgres

PLACES = 20
LIMIT = 10**9
_RUNS = """
INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
    stages_planned, limit_seconds, accepted_at)
SELECT gen_random_uuid(), 'team-' || n % $2, 'uid', 'run-' || n, 'PodCrash', 'chain', 'library', 'hash', 1, 3600,
    now() - n * interval '1 second'
FROM generate_series(1, $1::integer) n
"""


async def run(quick: bool) -> Result:
    """Claims with 1, 20 and 500 namespaces."""
    waiting, claims = (200, 3) if quick else (5000, 30)
    figures: list[Figure] = []
    server = LocalPostgres(fsync=False, environ={})
    await asyncio.to_thread(server.start)
    try:
        pool = await open_pool(server.dsn, max_size=2)
        try:
            await migrate(pool)
            worker = uuid4()
            await Claims(pool).register(worker, "bench", 3600)
            for namespaces in (1, 20, 500):
                times = await _claims(pool, worker, waiting, namespaces, claims)
                name = f"{waiting:,} wait in {namespaces} namespace{'s' * (namespaces > 1)}"
                figures.append(Figure(f"{name}, p50", median(times), "ms", detail=times))
                figures.append(Figure(f"{name}, p95", percentile(times, 0.95), "ms"))
        finally:
            await pool.close()
    finally:
        await asyncio.to_thread(server.stop)
    return Result(f"{claims} claims of a worker with {PLACES} places, one after the other; nothing is run.", figures)


async def _claims(pool: asyncpg.Pool, worker: UUID, waiting: int, namespaces: int, count: int) -> list[float]:
    """Milliseconds of each claim."""
    await pool.execute("TRUNCATE investigation CASCADE")
    await pool.execute(_RUNS, waiting, namespaces)
    await pool.execute("ANALYZE investigation")
    claims, times = Claims(pool), []
    for _ in range(count):
        began = time.perf_counter()
        await claims.claim(worker, PLACES, LIMIT)
        times.append((time.perf_counter() - began) * 1000)
    return times
