"""Tests that each change of a condition is stored once, and the bounds of what is kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tarsy.record.reading.condition_transition import ABSENT, ConditionHead, ConditionTransition
from tarsy.record.reading.object_history import ObjectIdentity
from tarsy.store.history import condition_transitions
from tarsy.store.history.condition_transitions import ConditionTransitions
from tarsy.store.migrate import migrate, migrations

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = 86_400.0


def change(seconds: float, status: str = "True", uid: str = "server-1", **values: Any) -> ConditionTransition:
    """A change so many seconds ago."""
    place = values.pop("namespace_uid", "shop-1"), values.pop("namespace", "shop")
    told = {"type": "Available", "was": None, "reason": "Answers", "message": "It responds.", **values}
    named = ObjectIdentity(*place, "MCPServer", uid, uid)
    return ConditionTransition(object=named, at=NOW - timedelta(seconds=seconds), status=status, **told)


async def stored(store: ConditionTransitions, **values: Any) -> list[tuple[str, datetime]]:
    return [(one.status, one.at) for one in await store.page(["MCPServer"], 10_000, **values)]


async def test_a_change_is_stored_once_however_often_and_by_whomever_it_is_written(pool: asyncpg.Pool) -> None:
    store, other = ConditionTransitions(pool), ConditionTransitions(pool)
    changes = [change(60), change(30, "False", was="True", reason="Unreachable", message="a\x00b", address="http://x")]
    assert [await store.write(changes), await other.write(changes), await store.write(changes[:1])] == [2, 0, 0]
    newest, oldest = await store.page(["MCPServer"], 10)
    assert (newest.status, newest.was, newest.reason, newest.message) == ("False", "True", "Unreachable", "ab")
    assert (newest.object, newest.address, oldest.was) == (changes[0].object, "http://x", None)
    # Both in one second, as of a server that restarts: both happened.
    assert await store.write([change(30, "True", was="False")]) == 1
    heads = await store.heads(["server-1", "unknown"])
    assert heads == {"server-1": ("shop-1", {"Available": ConditionHead("True", NOW - timedelta(seconds=30))})}


async def test_a_missed_condition_is_stored_once_though_each_controller_sees_it_at_its_own_time(
    pool: asyncpg.Pool,
) -> None:
    store = ConditionTransitions(pool)
    await store.write([change(60)])
    assert await store.write([change(30, ABSENT, was="True")]) == 1
    assert await store.write([change(29, ABSENT, was="True")]) == 0
    await store.write([change(20, was=ABSENT)])
    assert await store.write([change(10, ABSENT, was="True")]) == 1


@pytest.mark.parametrize(("written", "kept"), [(4, 4), (5, 5), (6, 5)])
async def test_a_condition_keeps_its_latest_changes(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch, written: int, kept: int
) -> None:
    monkeypatch.setattr(condition_transitions, "KEPT", 5)
    store = ConditionTransitions(pool)
    await store.write([change(900, type="Ready"), change(900, uid="server-2")])
    for number in range(written):
        await store.write([change(100 - number)])
    found = [one for one in await store.page(["MCPServer"], 100, name="server-1") if one.type == "Available"]
    assert [one.at for one in found] == [NOW - timedelta(seconds=100 - written + 1 + place) for place in range(kept)]
    assert len(await store.page(["MCPServer"], 100)) == kept + 2  # of other conditions and objects nothing


async def test_pages_follow_each_other_within_one_second_and_are_of_the_namespaces_asked_for(
    pool: asyncpg.Pool,
) -> None:
    store = ConditionTransitions(pool)
    await store.write([change(50, type=type_) for type_ in ("Ready", "Available", "Verified")])
    await store.write([change(10, uid="other", namespace="bank", namespace_uid="bank-1")])
    first = await store.page(["MCPServer"], 2, namespace_uids=["shop-1"])
    rest = await store.page(["MCPServer"], 2, namespace_uids=["shop-1"], before=(first[-1].at, first[-1].id))
    assert [one.type for one in (*first, *rest)] == ["Verified", "Available", "Ready"]
    assert await stored(store, namespace_uids=["bank-2"]) == [] and await store.page(["Chain"], 10) == []


async def test_a_period_of_an_object_begins_with_the_last_change_before_it(pool: asyncpg.Pool) -> None:
    store = ConditionTransitions(pool)
    await store.write([change(300, "Unknown"), change(200), change(100, "False"), change(250, type="Ready")])
    found = await store.of_objects(["server-1", "none"], NOW - timedelta(seconds=150))
    assert [(one.type, one.status) for one in found["server-1"]] == [
        ("Ready", "True"),
        ("Available", "True"),
        ("Available", "False"),
    ]
    found = await store.of_objects(["server-1"], NOW - timedelta(seconds=100))  # exactly then is within
    assert [one.status for one in found["server-1"] if one.type == "Available"] == ["True", "False"]


async def test_old_changes_are_deleted_by_age_and_namespace(pool: asyncpg.Pool) -> None:
    store = ConditionTransitions(pool)
    ages = (DAY / 2, DAY + 60, 2 * DAY)  # of when the module was imported, which may be minutes ago
    await store.write([change(age) for age in ages])
    await store.write([change(age, uid="other", namespace="bank", namespace_uid="bank-1") for age in ages])
    assert await store.survey(DAY) == {"bank": 2, "shop": 2}
    assert await store.purge(DAY, ["shop"]) == {"shop": 2}
    assert await store.purge(DAY) == {"bank": 2} and await store.purge(DAY) == {}
    assert len(await stored(store)) == 2


async def test_a_database_that_has_later_migrations_gets_the_table(pool: asyncpg.Pool) -> None:
    """As one that was brought up to date before this migration was made, though others have higher numbers."""
    await pool.execute("DROP TABLE condition_transition")
    await pool.execute("DELETE FROM schema_migrations WHERE version = 43")
    without = [step for step in migrations() if step.version != 43]
    assert await migrate(pool, without) == ()
    assert await migrate(pool) == (43,)
    store = ConditionTransitions(pool)
    assert await store.write([change(1)]) == 1
    assert await migrate(pool, without) == ()  # after a rollback the code before goes on
