"""Tests rolling upgrades and rollbacks with recorded statements of a previous version, in the middle of runs.

The previous release itself, as processes: `e2e/test_upgrade.py`.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import chain

import asyncpg
import pytest

from integration.databases import EMPTY, create_database
from integration.store.previous import FIRST_RUN, RUNS, first_half, load_previous, replay, second_half
from tarsy.record.run import State
from tarsy.store.database import open_pool
from tarsy.store.migrate import Migration, migrate, migrations
from tarsy.store.reading.reads import Reads
from tarsy_dev.postgres import LocalPostgres

PREVIOUS, HALVES = load_previous()
OLD = [step for step in migrations() if step.version <= PREVIOUS]
NEW = [step for step in migrations() if step.version > PREVIOUS]

COLUMNS = """
SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS type,
    a.attnotnull AS required, pg_get_expr(d.adbin, d.adrelid) AS "default", col_description(c.oid, a.attnum) AS says
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'tarsy'::regnamespace AND c.relkind = 'r' ORDER BY 1, 2
"""
OTHERS = """
SELECT conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'tarsy'::regnamespace
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'tarsy'
UNION ALL SELECT relname || ' ' || coalesce(reloptions::text, '') || ' ' || coalesce(obj_description(oid), '')
FROM pg_class WHERE relnamespace = 'tarsy'::regnamespace AND relkind = 'r' ORDER BY 1
"""


@pytest.fixture
async def pool(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Pool]:
    """A database without a schema."""
    opened = await open_pool(await create_database(postgres.dsn, EMPTY), max_size=4)
    yield opened
    await opened.close()


async def catalog(pool: asyncpg.Pool) -> tuple[list[tuple[object, ...]], list[str]]:
    """Everything about tables but the order of their columns."""
    return [tuple(row) for row in await pool.fetch(COLUMNS)], [row[0] for row in await pool.fetch(OTHERS)]


async def send(pool: asyncpg.Pool, *halves: int) -> None:
    async with pool.acquire() as connection:
        await replay(connection, list(chain.from_iterable(HALVES[half] for half in halves)))


async def assert_whole(pool: asyncpg.Pool) -> None:
    """The runs ended as they do when one version does it all."""
    reads = Reads(pool)
    found = [await reads.record(run) for run in RUNS.values()]
    assert [record.state for record in found if record] == [State.COMPLETED, State.CANCELLED, State.CANCELLED]
    record = found[0]
    assert record is not None
    assert (record.model_calls, record.interrupted_model_calls, record.tool_calls) == (1, 1, 1)
    contents = [shown.content for shown in await reads.timeline(FIRST_RUN)]
    assert contents == ["thinking", "budget", "note"]


async def test_worker_of_the_previous_version_goes_on_with_this_versions_schema(pool: asyncpg.Pool) -> None:
    await migrate(pool)
    await send(pool, 0, 1)
    await assert_whole(pool)


async def test_schema_changes_under_a_run_and_the_previous_worker_finishes_it(pool: asyncpg.Pool) -> None:
    await migrate(pool, OLD)
    await send(pool, 0)
    assert await migrate(pool) == tuple(step.version for step in NEW)
    await send(pool, 1)
    await assert_whole(pool)


async def test_this_version_finishes_what_the_previous_one_began(pool: asyncpg.Pool) -> None:
    await migrate(pool, OLD)
    await send(pool, 0)
    await migrate(pool)
    await second_half(pool)
    await assert_whole(pool)


async def test_previous_version_finishes_what_this_one_began_when_it_is_rolled_back(pool: asyncpg.Pool) -> None:
    await migrate(pool)
    await first_half(pool)
    assert await migrate(pool, OLD) == ()
    # The worker is one of the previous version from now on. Plans of this one it takes after ten minutes.
    await pool.execute("UPDATE worker SET schema_version = $1", PREVIOUS)
    await pool.execute("UPDATE investigation SET accepted_at = accepted_at - interval '11 minutes'")
    await send(pool, 1)
    await assert_whole(pool)


@pytest.mark.parametrize("step", NEW, ids=lambda step: step.name)
def test_each_migration_since_the_previous_version_lets_its_code_go_on(step: Migration) -> None:
    assert step.oldest_reader <= PREVIOUS


async def test_what_only_adds_takes_nothing_away_and_asks_nothing_of_old_code(pool: asyncpg.Pool) -> None:
    await migrate(pool, OLD)
    before, _ = await catalog(pool)
    await migrate(pool)
    after, _ = await catalog(pool)
    kept = {(table, column): rest for table, column, *rest in after}
    for table, column, kind, required, *_ in before:
        assert (table, column) in kept, "code of the previous version reads or writes it"
        now = kept[table, column]
        assert now[0] == kind
        assert required or not now[1], f"{table}.{column} may be NULL for the previous version"
    tables = {table for table, *_ in before}
    known = {(table, column) for table, column, *_ in before}
    for table, column, _, required, default, _ in after:
        if table in tables and (table, column) not in known:
            assert default is not None or not required, f"the previous version writes no {table}.{column}"


@pytest.mark.parametrize("stops", [[], [1], [PREVIOUS], [step.version for step in migrations()]], ids=str)
async def test_upgrading_step_by_step_equals_creating(
    postgres: LocalPostgres, pool: asyncpg.Pool, stops: Sequence[int]
) -> None:
    for stop in stops:
        await migrate(pool, [step for step in migrations() if step.version <= stop])
    await migrate(pool)
    created = await open_pool(await create_database(postgres.dsn), max_size=1)
    try:
        assert await catalog(pool) == await catalog(created)
    finally:
        await created.close()


async def test_bookkeeping_of_the_first_versions_is_taken_over(postgres: LocalPostgres, pool: asyncpg.Pool) -> None:
    """As versions before migration 7 left it: nobody had said who may read what."""
    await migrate(pool, OLD)
    await pool.execute("ALTER TABLE schema_migrations DROP COLUMN min_reader")
    await migrate(pool)
    created = await open_pool(await create_database(postgres.dsn), max_size=1)
    try:
        assert await catalog(pool) == await catalog(created)
    finally:
        await created.close()
