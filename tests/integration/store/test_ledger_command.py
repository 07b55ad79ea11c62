"""Tests `tarsy ledger` on a real record."""

import json

import asyncpg
import pytest

from integration.store.test_intake import body, ended, firing
from tarsy.cli.reports.ledger import show_ledger
from tarsy.store.intake import Intake


async def test_ledger_is_shown_and_its_exit_status_says_whether_it_balances(
    dsn: str, pool: asyncpg.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    intake = Intake(pool)
    decision = await intake.decide(body("one"), firing())
    await intake.decide(body("end"), ended())
    await intake.reject(body("bad", route=""), "NotJson")
    assert await show_ledger(dsn, 3600, "1h", output="text") == 1
    said = capsys.readouterr().out
    assert "3 received is not 0 investigated + 0 folded + 1 resolved + 1 rejected" in said
    assert "1 have no Alert yet" in said
    assert decision.alert is not None
    await intake.made(decision.alert.incident, "uid")
    assert await show_ledger(dsn, 3600, "1h", output="text") == 0
    assert "3 received = 1 investigated + 0 folded + 1 resolved + 1 rejected" in capsys.readouterr().out


async def test_ledger_for_programs(dsn: str, pool: asyncpg.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    await Intake(pool).reject(body("bad", route=""), "NotJson")
    assert await show_ledger(dsn, None, "forever", output="json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "since": "forever",
        "received": 1,
        "investigated": 0,
        "folded": 0,
        "resolved": 0,
        "rejected": 1,
        "owed": 0,
        "openedTwice": 0,
        "resends": 0,
        "balances": True,
    }


async def test_empty_ledger_balances(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert await show_ledger(dsn, None, "forever", output="text") == 0
    assert capsys.readouterr().out == "0 received = 0 investigated + 0 folded + 0 resolved + 0 rejected\n"
