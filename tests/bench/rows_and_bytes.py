"""Rows, bytes, commits and updates in Postgres per model call.

Bytes are the growth of the files (`pg_total_relation_size`: table, indexes, TOAST) between two VACUUMs, so dead rows
that later rows will take the place of are in them, as they are on a disk. Beside them the text that was to be stored,
and the write-ahead log, which is what replicas and backups carry. A step of a run is one statement, one commit and one
round trip, and raises the revision of its investigation by one; other commits are of claims, status and polling. An
update is HOT where no index has to learn of it, and its dead row goes without autovacuum.
"""

import asyncio
from dataclasses import dataclass

from tests.bench.bed import AGENT, Bed, loop_script
from tests.bench.figures import Figure, Result
from tests.bench.tool_server import ANSWER_CHARACTERS

CALLS, TOKENS = 10, 200
TABLES = "SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'tarsy'::regnamespace ORDER BY 1"
TEXT = """
    SELECT sum(octet_length(m.content)) FROM message m JOIN execution e ON e.id = m.execution
    JOIN stage s ON s.id = e.stage JOIN investigation i ON i.id = s.investigation
    WHERE i.namespace = $1 AND i.name NOT LIKE 'warm-up%'
"""
STEPS = "SELECT sum(revision) FROM investigation WHERE namespace = $1 AND name NOT LIKE 'warm-up%'"
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
UPDATES = """
    SELECT relname, n_tup_upd AS updates, n_tup_hot_upd AS hot, n_dead_tup AS dead, autovacuum_count AS vacuums
    FROM pg_stat_user_tables WHERE schemaname = 'tarsy'
"""
STATISTICS_SECONDS = 1.5
"""After this much idle time a backend has reported its statistics."""


@dataclass(frozen=True, slots=True)
class _Size:
    rows: int
    bytes: int


async def run(bed: Bed, quick: bool) -> Result:
    """Sizes before and after a number of tool loops."""
    count = 3 if quick else 50
    async with bed.tenant("rows-and-bytes", loop_script(CALLS, tokens=TOKENS)) as tenant:
        await tenant.chain([AGENT])
        before, activity = await _sizes(bed), await _activity(bed)
        wal = await bed.pool.fetchval("SELECT pg_current_wal_insert_lsn()::text")
        await tenant.create_many("run", count)
        await tenant.settled("run", count)
        later = await _activity(bed)
        log = await bed.pool.fetchval("SELECT pg_current_wal_insert_lsn() - $1::text::pg_lsn", wal)
        after = await _sizes(bed)
        text, steps = await bed.pool.fetchval(TEXT, tenant.name), await bed.pool.fetchval(STEPS, tenant.name)
    calls = count * CALLS
    grown = {
        table: _Size(size.rows - before[table].rows, size.bytes - before[table].bytes) for table, size in after.items()
    }
    how = (
        f"{count} investigations of one stage and one agent, {CALLS} model calls of {TOKENS} tokens each and "
        f"{CALLS - 1} tool calls whose answers have {ANSWER_CHARACTERS} characters. Growth between two VACUUMs, by "
        "exact counts of rows and pg_total_relation_size, divided by model calls, the rows of the "
        "investigation itself included."
    )
    figures = [
        Figure("steps (statements, commits, round trips) of the record per model call", float(steps) / calls, "steps"),
        Figure("commits of all kinds per model call", (later.commits - activity.commits) / calls, "commits"),
        Figure("rows per model call", sum(size.rows for size in grown.values()) / calls, "rows"),
        Figure("bytes per model call", sum(size.bytes for size in grown.values()) / calls, "bytes"),
        Figure("text of the conversation per model call", float(text) / calls, "bytes"),
        Figure("write-ahead log per model call", float(log) / calls, "bytes"),
    ]
    figures += [
        _updates(table, activity.tables[table], now, calls) for table, now in later.tables.items() if now.updates
    ]
    for table, size in grown.items():
        if size.rows or size.bytes:
            detail = {"rows": size.rows, "bytes": size.bytes}
            figures.append(Figure(f"  {table}: rows", size.rows / calls, "rows", detail=detail))
            figures.append(Figure(f"  {table}: bytes", size.bytes / calls, "bytes"))
    return Result(how, figures)


async def _sizes(bed: Bed) -> dict[str, _Size]:
    """Rows and bytes of each table, after a VACUUM."""
    found = {}
    async with bed.pool.acquire() as connection:
        tables = [row["relname"] for row in await connection.fetch(TABLES)]
        for table in tables:
            name = await connection.fetchval("SELECT quote_ident($1)", table)
            await connection.execute(f"VACUUM (ANALYZE) {name}")
            rows = await connection.fetchval(f"SELECT count(*) FROM {name}")  # noqa: S608 - a name from the catalog
            size = await connection.fetchval("SELECT pg_total_relation_size($1::text::regclass)", name)
            found[table] = _Size(rows, size)
    return found


@dataclass(frozen=True, slots=True)
class _Updates:
    updates: int
    hot: int
    dead: int
    vacuums: int


@dataclass(frozen=True, slots=True)
class _Activity:
    commits: int
    tables: dict[str, _Updates]


async def _activity(bed: Bed) -> _Activity:
    """Commits and updates so far, as Postgres counts them."""
    await asyncio.sleep(STATISTICS_SECONDS)
    commits = await bed.pool.fetchval(COMMITS)
    rows = await bed.pool.fetch(UPDATES)
    return _Activity(commits, {name: _Updates(*counts) for name, *counts in rows})


def _updates(table: str, before: _Updates, now: _Updates, calls: int) -> Figure:
    updates, hot = now.updates - before.updates, now.hot - before.hot
    detail = {"updates per model call": updates / calls, "dead": now.dead, "vacuums": now.vacuums - before.vacuums}
    name = f"  {table}: HOT share of {updates / calls:.2f} updates per model call, {now.dead} dead rows"
    return Figure(name, hot / updates if updates else 1.0, "share", detail=detail)
