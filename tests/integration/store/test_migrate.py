"""Tests that the schema is migrated once, even by many processes, and never silently changed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from integration.databases import EMPTY, create_database
from tarsy.store.database import open_pool
from tarsy.store.errors import OlderWorkers, SchemaMismatch, StoreError, StoreUnavailable
from tarsy.store.migrate import Migration, migrate, migrations, newest, require_current
from tarsy.store.runs.claims import Claims
from tarsy_dev.postgres import LocalPostgres


@pytest.fixture
async def empty(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Pool]:
    opened = await open_pool(await create_database(postgres.dsn, EMPTY), min_size=1, max_size=8)
    yield opened
    await opened.close()


async def test_migrating_twice_is_migrating_once(empty: asyncpg.Pool) -> None:
    assert await migrate(empty) == tuple(step.version for step in migrations())
    assert await migrate(empty) == ()
    rows = await empty.fetch("SELECT version, checksum FROM tarsy.schema_migrations ORDER BY version")
    assert [(row["version"], row["checksum"]) for row in rows] == [(m.version, m.checksum) for m in migrations()]


async def test_processes_that_start_together_migrate_once(empty: asyncpg.Pool) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(migrate(empty)) for _ in range(6)]
    assert sorted(task.result() for task in tasks) == [()] * 5 + [tuple(step.version for step in migrations())]


async def test_everything_lies_in_the_schema_of_its_own(empty: asyncpg.Pool) -> None:
    await migrate(empty)
    await migrate(empty)
    assert await empty.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    assert await empty.fetchval("SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'") == 0


async def test_later_migrations_are_added_in_order(empty: asyncpg.Pool) -> None:
    await migrate(empty)
    more = Migration(1000, "more", "CREATE TABLE more (id int); ALTER TABLE more ADD COLUMN name text;")
    assert await migrate(empty, [*migrations(), more]) == (1000,)
    assert await empty.fetch("SELECT id, name FROM more") == []


async def test_changed_migration_is_refused_by_name(empty: asyncpg.Pool) -> None:
    await migrate(empty)
    first, *others = migrations()
    with pytest.raises(SchemaMismatch, match="0001_record was applied to the database in another form"):
        await migrate(empty, [replace(first, sql=first.sql + "-- edited"), *others])


def later(version: int, oldest_reader: int | None = None) -> Migration:
    """A migration of a version to come."""
    return Migration(
        version, "future", f"-- oldest reader: {oldest_reader}\n" * (oldest_reader is not None) + "SELECT 1"
    )


async def test_database_that_is_too_new_is_refused_with_both_versions(empty: asyncpg.Pool) -> None:
    await migrate(empty, [*migrations(), later(9998), later(9999, oldest_reader=newest())])
    with pytest.raises(SchemaMismatch, match=rf"version 9999 and needs .* version 9998 .* knows up to {newest()}\."):
        await migrate(empty)
    with pytest.raises(SchemaMismatch, match="Run a newer one"):
        await require_current(empty)


async def test_newer_database_that_this_version_may_use_is_used(empty: asyncpg.Pool) -> None:
    await migrate(empty, [*migrations(), later(9999, oldest_reader=newest())])
    assert await migrate(empty) == ()
    await require_current(empty)
    await Claims(empty).register(uuid4(), "node-1", 60)


async def test_what_takes_away_waits_until_no_living_worker_needs_it(empty: asyncpg.Pool) -> None:
    await migrate(empty)
    old, current = uuid4(), uuid4()
    await Claims(empty, knows=newest() - 1).register(old, "node-old", 60)
    await Claims(empty).register(current, "node-new", 60)
    contract = [*migrations(), later(9999, oldest_reader=newest())]
    with pytest.raises(OlderWorkers, match=rf"to version {newest()} .* node-old \(knows {newest() - 1}\)\. Stop them"):
        await migrate(empty, contract)
    assert await empty.fetchval("SELECT max(version) FROM schema_migrations") == newest()
    await empty.execute("UPDATE worker SET expires_at = now() - interval '1 second' WHERE id = $1", old)
    assert await migrate(empty, contract) == (9999,)


async def test_worker_that_is_too_old_for_the_schema_may_not_register(empty: asyncpg.Pool) -> None:
    await migrate(empty, [*migrations(), later(9999, oldest_reader=newest())])
    with pytest.raises(SchemaMismatch, match=rf"knows it up to version {newest() - 1} and can no longer use it"):
        await Claims(empty, knows=newest() - 1).register(uuid4(), "node-old", 60)
    assert await empty.fetchval("SELECT count(*) FROM worker") == 0


async def test_table_that_is_in_use_is_given_up_after_seconds_so_that_nobody_waits_behind(empty: asyncpg.Pool) -> None:
    await migrate(empty)
    step = Migration(9999, "alter", "ALTER TABLE worker ADD COLUMN room text")
    async with empty.acquire() as reader, reader.transaction():
        await reader.fetch("SELECT * FROM worker")
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            await migrate(empty, [*migrations(), step])
    assert await migrate(empty, [*migrations(), step]) == (9999,)


async def test_migration_that_fails_leaves_nothing_behind(empty: asyncpg.Pool) -> None:
    with pytest.raises(StoreError, match="bring the schema up to date"):
        await migrate(empty, [*migrations(), Migration(9999, "broken", "CREATE TABLE half (id int); SELECT nonsense")])
    assert await empty.fetchval("SELECT to_regnamespace('tarsy')") is None
    assert await migrate(empty) == tuple(step.version for step in migrations())


async def test_each_step_of_a_run_has_its_unique_key(pool: asyncpg.Pool) -> None:
    rows = await pool.fetch(
        """SELECT c.conrelid::regclass::text AS name, array_agg(a.attname::text ORDER BY k.place) AS columns
        FROM pg_constraint c, unnest(c.conkey) WITH ORDINALITY AS k (number, place), pg_attribute a
        WHERE c.contype IN ('p', 'u') AND c.connamespace = 'tarsy'::regnamespace
        AND a.attrelid = c.conrelid AND a.attnum = k.number GROUP BY c.oid, c.conrelid"""
    )
    keys = {(row["name"], tuple(row["columns"])) for row in rows}
    assert keys >= {
        ("investigation", ("id",)),
        ("lease", ("investigation",)),
        ("stage", ("investigation", "index")),
        ("execution", ("stage", "index")),
        ("message", ("execution", "seq")),
        ("llm_interaction", ("execution", "number")),
        ("mcp_interaction", ("execution", "message_seq", "index", "attempt")),
        ("timeline_event", ("investigation", "seq")),
    }


async def test_steps_update_the_hot_row_without_touching_an_index(pool: asyncpg.Pool) -> None:
    hot = {"revision", "published_revision", "event_seq", "input_tokens", "model_calls", "tool_calls", "deadline"}
    indexed = await pool.fetch(
        """SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
        WHERE i.indrelid = 'investigation'::regclass
        AND (a.attnum = ANY(i.indkey) OR pg_get_expr(i.indpred, i.indrelid) ~ ('\\m' || a.attname || '\\M'))"""
    )
    assert hot.isdisjoint({row["attname"] for row in indexed})
