"""Tests `tarsy purge` on a real record: deletion, dry run, and refusal of a wrong schema."""

import json

import asyncpg
import pytest

from integration.databases import EMPTY, create_database
from integration.store.test_retention import DAY, begun, ended
from tarsy.cli.purge import purge_records
from tarsy.store.errors import SchemaMismatch
from tarsy_dev.postgres import LocalPostgres


async def test_dry_run_shows_what_the_command_then_deletes(
    dsn: str, pool: asyncpg.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    await ended(pool, await begun(pool, "old"), 31 * DAY)
    await ended(pool, await begun(pool, "young"), 29 * DAY)
    await ended(pool, await begun(pool, "other", namespace="team-b"), 31 * DAY)
    said = {}
    for dry_run in (True, False):
        assert await purge_records(dsn, 30 * DAY, "30d", ["team-a"], dry_run=dry_run, output="json") == 0
        said[dry_run] = json.loads(capsys.readouterr().out)
        assert await pool.fetchval("SELECT count(*) FROM investigation") == (3 if dry_run else 2)
        assert said[dry_run].pop("dryRun") is dry_run
    assert said[True] == said[False]
    assert (said[True]["olderThan"], said[True]["investigations"]) == ("30d", 1)
    (item,) = said[True]["items"]
    assert (item["namespace"], item["investigations"]) == ("team-a", 1)
    assert item["oldest"] == item["newest"] and item["oldest"].endswith("+00:00")


async def test_nothing_old_is_said_in_a_sentence(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert await purge_records(dsn, 30 * DAY, "30d", [], dry_run=False, output="text") == 0
    assert capsys.readouterr().out.strip() == "There is no record of a run that ended more than 30d ago."


async def test_database_of_another_schema_is_refused_with_the_remedy(postgres: LocalPostgres) -> None:
    empty = await create_database(postgres.dsn, EMPTY)
    with pytest.raises(SchemaMismatch, match=r"at version 0, this command needs .* Start the operator"):
        await purge_records(empty, 1.0, "1s", [], dry_run=True, output="text")
