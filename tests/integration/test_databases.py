"""Tests the databases of the tests: the next test finds nothing of the one before; killed runs leave nothing."""

import os
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from integration.databases import PREFIX, Databases, remove_abandoned


def test_folders_of_killed_runs_are_removed_and_no_others(tmp_path: Path) -> None:
    folders = {name: tmp_path / f"{PREFIX}{name}" for name in ("running", "killed", "old", "starting")}
    for folder in folders.values():
        (folder / "data").mkdir(parents=True)
    (folders["running"] / "data/postmaster.pid").write_text(f"{os.getpid()}\n/data\n")
    (folders["killed"] / "data/postmaster.pid").write_text("99999999\n/data\n")
    os.utime(folders["old"], (0, 0))
    (tmp_path / "another").mkdir()
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", f"{PREFIX}running", f"{PREFIX}starting"]


async def test_what_a_test_wrote_is_gone_and_its_database_is_used_again(databases: Databases) -> None:
    url = await databases.take()
    await execute(url, "INSERT INTO tarsy.worker (id, host, expires_at) VALUES (gen_random_uuid(), 'h', now())")
    await execute(url, "SELECT nextval('tarsy.notification_id_seq')")
    await databases.give_back(url)

    again = await databases.take()

    assert again == url
    assert await execute(again, "SELECT count(*) FROM tarsy.worker") == 0
    assert await execute(again, "SELECT nextval('tarsy.notification_id_seq')") == 1
    await databases.give_back(again)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE more (id int)",
        "ALTER TABLE tarsy.worker ADD COLUMN room text",
        "ALTER TABLE tarsy.schema_migrations DROP COLUMN min_reader",
        "ALTER TABLE tarsy.worker ALTER COLUMN host DROP NOT NULL",
        "DROP SCHEMA tarsy CASCADE",
        "CREATE OR REPLACE FUNCTION public.one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "UPDATE tarsy.schema_migrations SET checksum = ''",
        "INSERT INTO tarsy.schema_migrations VALUES (9999, 'more', '')",
        "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET statement_timeout = 9'; END $$",
        "INSERT INTO tarsy.worker (id, host, expires_at) SELECT gen_random_uuid(), repeat('h', 99), now() "
        "FROM generate_series(1, 20000)",
    ],
)
async def test_a_database_that_a_test_has_changed_otherwise_is_not_used_again(
    databases: Databases, change: str
) -> None:
    url = await databases.take()
    await execute(url, change)
    await databases.give_back(url)

    again = await databases.take()

    assert again != url
    await databases.give_back(again)


async def test_a_connection_that_a_test_left_open_writes_nothing_later(databases: Databases) -> None:
    url = await databases.take()
    left = await asyncpg.connect(url)
    await databases.give_back(url)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await left.execute("SELECT 1")
    await left.close()


async def execute(url: str, statement: str) -> Any:
    """Runs a statement; returns the first value of what it returns."""
    connection = await asyncpg.connect(url)
    try:
        found = (
            await connection.fetch(statement) if statement.startswith("SELECT") else await connection.execute(statement)
        )
        return found[0][0] if found else None
    finally:
        await connection.close()
