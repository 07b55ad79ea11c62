"""`timeline` and `usage` with --database-url: the same output formats as from the API."""

import json

import asyncpg
import pytest
import yaml

from integration.store.build import new_run
from tarsy.cli.output import Output
from tarsy.cli.reports.daily_usage import daily_usage_of_database
from tarsy.cli.reports.usage import usage_of_database
from tarsy.cli.runs.database_timeline import show_recorded_timeline
from tarsy.store.errors import StoreError
from tarsy.store.runs.lifecycle import Runs


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_the_database_writes_a_timeline_for_programs(
    records: asyncpg.Pool, database_url: str, output: Output, read: object, capsys: pytest.CaptureFixture[str]
) -> None:
    await Runs(records).accept(new_run(namespace="shop", name="run"))
    assert await show_recorded_timeline(database_url, "shop", "run", output, following=False) == 0
    document = read(capsys.readouterr().out)  # type: ignore[operator]
    assert (document["investigation"]["state"], document["items"], document["questions"]) == ("pending", [], [])


@pytest.mark.parametrize("output", ["text", "wide"])
async def test_the_database_shows_the_state_of_a_run_with_its_figures(
    records: asyncpg.Pool, database_url: str, output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    await Runs(records).accept(new_run(namespace="shop", name="run"))
    await show_recorded_timeline(database_url, "shop", "run", output, following=False)
    assert "0 model calls, 0 tool calls, 0 tokens" in capsys.readouterr().out


async def test_a_run_that_is_not_on_record_is_named(records: asyncpg.Pool, database_url: str) -> None:
    with pytest.raises(StoreError, match="no investigation shop/none in the record"):
        await show_recorded_timeline(database_url, "shop", "none", "json", following=False)


async def test_the_usage_of_the_database_has_every_format(
    records: asyncpg.Pool, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = {"since": "7d", "by": "model", "items": []}
    await usage_of_database(database_url, 604_800, "7d", "model", "json")
    assert json.loads(capsys.readouterr().out) == wanted
    await usage_of_database(database_url, 604_800, "7d", "model", "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == wanted
    await usage_of_database(database_url, 604_800, "7d", "model", "text")
    assert "No model was called in the last 7d." in capsys.readouterr().out
    await daily_usage_of_database(database_url, 2, "author", "json")
    daily = json.loads(capsys.readouterr().out)
    assert (daily["by"], daily["items"], len(daily["days"])) == ("author", [], 2)
    await daily_usage_of_database(database_url, 2, "author", "text")
    assert "No model was called from " in capsys.readouterr().out
