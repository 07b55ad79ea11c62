"""What people ask of a record of 100,000 investigations: lists, searches and a timeline, as the HTTP API asks them.

It stands on a Postgres of its own, without an operator. Only the newest investigations have a timeline: nothing that is
asked here reads those of the others.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import asyncpg
from tests.bench.figures import Figure, Result, spread

from tarsy.record.run import State
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy.store.reading.reads import Reads
from tarsy.store.reading.search import LOOKED_AT, Filters, Search, Sort
from tarsy_dev.postgres import LocalPostgres

RUNS_A_TRANSACTION = 5000
PAGE = 50
_HERE = {"team-3": "uid-3"}
_ASKED: dict[str, tuple[Filters, Sort]] = {
    "newest": (Filters(), "newest"),
    "newest of a namespace": (Filters(namespaces=_HERE), "newest"),
    "running": (Filters(states=(State.RUNNING,)), "newest"),
    "of an author": (Filters(author="user-7"), "newest"),
    "last to end": (Filters(), "finished"),
    "dearest": (Filters(), "cost"),
    "longest": (Filters(), "duration"),
    "most severe": (Filters(), "severity"),
    "most sure": (Filters(), "confidence"),
    "a word of few": (Filters(words="zebra"), "newest"),
    "a word of all": (Filters(words="checkout"), "newest"),
    "a word of nobody": (Filters(words="quagga"), "newest"),
    f"a text, in {LOOKED_AT} timelines": (Filters(text="quagga"), "newest"),
}


async def run(quick: bool) -> Result:
    """Fills the record, then asks for each page many times."""
    runs, asked = (2_000, 5) if quick else (100_000, 100)
    server = LocalPostgres(fsync=False, environ={})
    await asyncio.to_thread(server.start)
    try:
        pool = await open_pool(server.dsn, max_size=2)
        try:
            await migrate(pool)
            figures = [Figure("record filled", await fill_record(pool, runs), "s")]
            search, reads = Search(pool), Reads(pool)
            for name, (filters, sort) in _ASKED.items():
                times = await measured_times(lambda f=filters, s=sort: search.page(f, s, PAGE), asked)  # type: ignore[misc]
                figures += spread(f"list: {name}", times, "ms", "< 100 ms" if name.startswith("newest") else "")
            one = UUID(await pool.fetchval("SELECT md5('run1')"))
            times = await measured_times(lambda: reads.timeline(one, 0, 200), asked)
            figures += spread("timeline of 60 events", times, "ms", "< 100 ms")
        finally:
            await pool.close()
    finally:
        await asyncio.to_thread(server.stop)
    return Result(f"{runs:,} investigations, pages of {PAGE}, one question after the other, {asked} of each.", figures)


async def fill_record(pool: asyncpg.Pool, runs: int) -> float:
    """Fills the record with finished investigations; returns the seconds that it took."""
    blocks = re.split(r"^-- name: (\w+)\n", Path(__file__).with_suffix(".sql").read_text(), flags=re.MULTILINE)
    sql = dict(zip(blocks[1::2], blocks[2::2], strict=True))
    began = time.perf_counter()
    async with pool.acquire() as connection:
        await connection.execute("SET statement_timeout = 0")
        for start in range(1, runs + 1, RUNS_A_TRANSACTION):
            last = min(start + RUNS_A_TRANSACTION - 1, runs)
            async with connection.transaction():
                for name in ("investigation", "input", "ended", "stages"):
                    await connection.execute(sql[name], start, last, timeout=600)
        await connection.execute(sql["events"], 1, min(runs, 3 * LOOKED_AT), timeout=600)
        await connection.execute("VACUUM (ANALYZE)", timeout=3600)
        await connection.execute("RESET statement_timeout")
    return time.perf_counter() - began


async def measured_times(ask: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Milliseconds of each question, after one that is not counted."""
    await ask()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - began) * 1000)
    return times
