"""Tests outcomes on record: from notifications in any order, folded alerts, changes and approved calls."""

import hashlib
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import new_run
from tarsy.observe.metric_table import INCIDENT_OUTCOMES
from tarsy.observe.metrics import Metrics
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.store.intake import AlertDraft, Intake, Occurrence, Received
from tarsy.store.judging.outcomes import Outcomes
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import NewRun, Runs

SETTLED, RECURRED, CHANGED = IncidentOutcome
T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ROUTE = "team-a/all"


class Sender:
    """Sends notifications of a route, with the start times of its own clock."""

    def __init__(self, pool: asyncpg.Pool, skew: timedelta = timedelta(0), *, key: str | None = None) -> None:
        self._intake = Intake(pool)
        self._skew = skew
        self._key = key

    async def send(
        self, what: str, minute: float | None = 0, group: str = "g", storm_alerts: int = 1000
    ) -> UUID | None:
        """Sends that a group fires or is resolved since a minute; returns the incident of a new Alert."""
        at = None if minute is None else T0 + timedelta(minutes=minute) + self._skew

        def draft(begun: datetime, storm: bool) -> AlertDraft:
            return AlertDraft("team-a", f"alert-{uuid4()}", {"kind": "Alert"}, None, self._key)

        occurrence = Occurrence("route", group, what == "fires", at, at, storm_alerts, 3600, draft, "team-a")
        digest = hashlib.sha256(uuid4().bytes).hexdigest()
        decision = await self._intake.decide(Received("alertmanager", "prometheus", digest, 9, ROUTE), occurrence)
        if decision.fate != "investigated" or decision.alert is None:
            return None
        await self._intake.made(decision.alert.incident, f"alert-of-{decision.alert.incident}")
        return decision.alert.incident


async def found(pool: asyncpg.Pool, incident: UUID | None, *, text: str = "It broke.", **of_run: Any) -> UUID:
    """A run about the alert of an incident that has just ended with a finding."""
    run = new_run(name=f"run-{uuid4()}")
    values = {name: getattr(run, name) for name in NewRun.__dataclass_fields__}
    alert = None if incident is None else f"alert-of-{incident}"
    await Runs(pool).accept(NewRun(**{**values, "alert_uid": alert, **of_run}))
    finding = Finding(summary="It broke.", confidence=Confidence.HIGH).model_dump(mode="json", by_alias=True)
    finding["claims"] = [{"text": text, "citations": [], "supported": True}]
    await pool.execute(
        "UPDATE investigation SET state = 'completed', finished_at = now(), finding = $2 WHERE id = $1", run.id, finding
    )
    return run.id


AGED = {
    "incident": ("opened_at", "last_received", "resolved_at", "settled_at", "refired_at"),
    "investigation": ("finished_at",),
    "outcome_look": ("look_at",),
    "early_resolution": ("received_at",),
    "object_version": ("recorded_at", "seen_at"),
    "tool_approval": ("decided_at",),
}


async def pass_time(pool: asyncpg.Pool, **time: float) -> None:
    """Makes everything on record older, as if the time had passed, without waking anybody."""
    passed = timedelta(**time)
    async with pool.acquire() as connection, connection.transaction():
        for table, columns in AGED.items():
            sets = ", ".join(f"{column} = {column} - $1::interval" for column in columns)
            await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            await connection.execute(f"UPDATE {table} SET {sets}", passed)  # noqa: S608
            await connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


async def look(pool: asyncpg.Pool, metrics: Metrics | None = None) -> dict[UUID, IncidentOutcome | None]:
    """Looks at all that is due; returns what was found."""
    outcomes, seen = Outcomes(pool, metrics=metrics), {}
    while (looked := await outcomes.look()) is not None:
        assert looked[0] not in seen, "a run was due twice at once"
        seen[looked[0]] = looked[1]
    return seen


async def outcome(pool: asyncpg.Pool, run: UUID) -> IncidentOutcome | None:
    record = await Reads(pool).record(run)
    assert record is not None
    return record.incident_outcome


async def test_an_alert_that_is_resolved_and_stays_so_has_settled(pool: asyncpg.Pool) -> None:
    sender, metrics = Sender(pool), Metrics()
    run = await found(pool, await sender.send("fires"))
    assert await look(pool) == {run: None} and await look(pool) == {}
    await pass_time(pool, hours=2)
    assert await look(pool) == {}, "nothing happened, and no period is over"
    await sender.send("ends")
    assert await look(pool) == {run: None}, "the resolve wakes it"
    await pass_time(pool, hours=23.9)
    assert await look(pool) == {}
    await pass_time(pool, hours=0.2)
    assert await look(pool, metrics) == {run: SETTLED} and await outcome(pool, run) is SETTLED
    assert metrics.value(INCIDENT_OUTCOMES, confidence="High", outcome="Settled") == 1
    (known,) = await Outcomes(pool).of_run(run)
    assert (known.outcome, known.change, known.fired_again_at) == (SETTLED, None, None)
    assert await pool.fetchval("SELECT count(*) FROM outcome_look") == 0


async def test_an_alert_that_fires_again_has_recurred_at_once(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    run = await found(pool, await sender.send("fires"))
    await sender.send("ends")
    await look(pool)
    await pass_time(pool, hours=3)
    assert await look(pool) == {}
    again = await found(pool, await sender.send("fires", 180))
    assert await look(pool) == {run: RECURRED, again: None}
    (known,) = await Outcomes(pool).of_run(run)
    assert known.settled_at is not None and known.fired_again_at is not None
    await sender.send("ends", 180)
    await pass_time(pool, hours=25)
    assert await look(pool) == {again: SETTLED} and await outcome(pool, run) is RECURRED


async def test_an_alert_that_nobody_resolves_has_no_outcome_and_is_not_followed_for_ever(pool: asyncpg.Pool) -> None:
    run = await found(pool, await Sender(pool).send("fires"))
    by_hand = await found(pool, uuid4())
    no_alert = await found(pool, None)
    assert await look(pool) == {run: None, by_hand: None}
    await pass_time(pool, hours=24.1)
    assert await look(pool) == {run: None}
    assert await pool.fetchval("SELECT count(*) FROM outcome_look") == 0
    assert await outcome(pool, no_alert) is None


async def test_a_resolve_before_the_finding_counts_from_the_finding(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    incident = await sender.send("fires")
    await sender.send("ends")
    await pass_time(pool, hours=30)
    run = await found(pool, incident)
    assert await look(pool) == {run: None}
    await pass_time(pool, hours=24.1)
    assert await look(pool) == {run: SETTLED}


HISTORY = (("fires", 0), ("fires", 0), ("ends", 0))


@pytest.mark.sweep("another order")
@pytest.mark.parametrize(
    "skew", [timedelta(0), timedelta(days=-3), timedelta(days=3)], ids=["right", "behind", "ahead"]
)
@pytest.mark.parametrize("order", sorted(set(itertools.permutations(HISTORY))), ids=str)
@pytest.mark.parametrize("again", [False, True], ids=["once", "again"])
async def test_the_order_of_notifications_and_the_clock_of_the_sender_do_not_matter(
    pool: asyncpg.Pool, skew: timedelta, order: Sequence[tuple[str, int]], again: bool
) -> None:
    sender, incident = Sender(pool, skew), None
    for what, minute in order:
        incident = await sender.send(what, minute) or incident
        await pass_time(pool, seconds=30)
    run = await found(pool, incident)
    await look(pool)
    await pass_time(pool, hours=2)
    if again:
        await sender.send("fires", 120)
        assert await look(pool) == {run: RECURRED}
        return
    await pass_time(pool, hours=23)
    assert await look(pool) == {run: SETTLED}
    assert await pool.fetchval("SELECT count(*) FROM incident") == 1


async def test_the_end_of_a_second_firing_may_come_before_it(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    first = await found(pool, await sender.send("fires"))
    await sender.send("ends")
    await pass_time(pool, hours=1)
    await sender.send("ends", 60)
    second = await found(pool, await sender.send("fires", 60))
    assert (await look(pool))[first] is RECURRED
    await pass_time(pool, hours=25)
    assert await look(pool) == {second: SETTLED}


async def test_an_early_end_does_not_end_a_later_firing(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    await sender.send("ends", 0)
    run = await found(pool, await sender.send("fires", 1))
    await pass_time(pool, hours=30)
    assert await look(pool) == {run: None}


@pytest.mark.parametrize(("minutes", "recurs"), [(4.9, False), (5.1, True)])
async def test_the_same_start_soon_after_the_resolve_is_a_late_notification(
    pool: asyncpg.Pool, minutes: float, recurs: bool
) -> None:
    sender = Sender(pool)
    run = await found(pool, await sender.send("fires"))
    await sender.send("ends")
    await pass_time(pool, minutes=minutes)
    await sender.send("fires")
    assert await look(pool) == {run: RECURRED if recurs else None}
    await pass_time(pool, hours=25)
    assert await look(pool) == ({} if recurs else {run: SETTLED})


async def test_a_sender_without_times_recurs_when_it_fires_again(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    run = await found(pool, await sender.send("fires", None))
    await sender.send("fires", None)
    await sender.send("ends", None)
    assert await look(pool) == {run: None}
    await pass_time(pool, minutes=1)
    await sender.send("fires", None)
    assert await look(pool) == {run: RECURRED}


async def test_alerts_folded_into_a_storm_get_outcomes_of_their_own(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    await sender.send("fires", 0, "other", storm_alerts=1)
    leader = await sender.send("fires", 0, "first", storm_alerts=1)
    for group in ("second", "third"):
        assert await sender.send("fires", 0, group, storm_alerts=1) is None, "folded into the storm"
    run = await found(pool, leader)
    for group in ("first", "second"):
        await sender.send("ends", 0, group)
    await pass_time(pool, hours=1)
    assert run in await look(pool) and await outcome(pool, run) is None
    await sender.send("ends", 0, "third")
    assert await look(pool) == {run: None}
    await sender.send("fires", 60, "second", storm_alerts=1)
    assert (await look(pool))[run] is RECURRED
    assert sorted(one.outcome for one in await Outcomes(pool).of_run(run)) == [RECURRED]


async def test_a_storm_settles_when_all_its_alerts_have(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    await sender.send("fires", 0, "other", storm_alerts=1)
    leader = await sender.send("fires", 0, "first", storm_alerts=1)
    await sender.send("fires", 0, "second", storm_alerts=1)
    run = await found(pool, leader)
    await sender.send("ends", 0, "first")
    await pass_time(pool, hours=20)
    await sender.send("ends", 0, "second")
    await look(pool)
    await pass_time(pool, hours=5)
    assert await look(pool) == {}, "the second one may still fire again"
    await pass_time(pool, hours=20)
    assert await look(pool) == {run: SETTLED}
    assert [one.outcome for one in await Outcomes(pool).of_run(run)] == [SETTLED, SETTLED]


async def test_an_alert_of_the_same_key_is_the_same_incident_again(pool: asyncpg.Pool) -> None:
    sender = Sender(pool, key="checkout")
    run = await found(pool, await sender.send("fires", 0, "g"))
    await sender.send("fires", 0, "h")
    assert await look(pool) == {run: None}, "it fires beside the first one, which has not ended"
    await sender.send("ends", 0, "g")
    await pass_time(pool, hours=1)
    await sender.send("fires", 60, "i")
    assert await look(pool) == {run: RECURRED}


async def version(pool: asyncpg.Pool, name: str, kind: str = "Deployment", type_: str = "Rollout") -> None:
    """Records a change of an object now; the clock of its recorder is half an hour behind."""
    await pool.execute(
        "CREATE TABLE IF NOT EXISTS object_version_test PARTITION OF object_version DEFAULT",
    )
    await pool.execute(
        "INSERT INTO object_version (uid, seq, seen_at, namespace_uid, namespace, kind, name, action, type, changed_at,"
        " last_at, count, manager, fields, patch, bytes) VALUES ($1, 1, now() - interval '30 minutes', 'uid-of-team-a',"
        " 'team-a', $2, $3, 'changed', $4, now(), now(), 1, 'kubectl', '{}', '[]', 0)",
        str(uuid4()),
        kind,
        name,
        type_,
    )


@pytest.mark.parametrize(
    ("kind", "name", "type_", "counts"),
    [
        ("Deployment", "checkout", "Rollout", True),
        ("ConfigMap", "checkout-env", "Config", True),
        ("StatefulSet", "checkout", "Rollout", False),
        ("Deployment", "cart", "Rollout", False),
        ("Deployment", "checkout", "Scale", False),
        ("StatefulSet", "orders", "Config", True),
    ],
)
async def test_a_change_of_what_the_finding_blames_is_told(
    pool: asyncpg.Pool, kind: str, name: str, type_: str, counts: bool
) -> None:
    sender = Sender(pool)
    await version(pool, "checkout")  # before the finding
    await pass_time(pool, seconds=1)
    incident = await sender.send("fires")
    text = "Deployment/checkout reads ConfigMap/checkout-env"
    run = await found(pool, incident, text=text, keys=["workload:KubePodCrashLooping/orders"])
    await pass_time(pool, minutes=10)
    await version(pool, name, kind, type_)
    await pass_time(pool, minutes=10)
    await sender.send("ends")
    await pass_time(pool, minutes=10)
    await version(pool, "checkout")  # after the resolve
    await look(pool)
    await pass_time(pool, hours=25)
    assert await look(pool) == {run: CHANGED if counts else SETTLED}
    (known,) = await Outcomes(pool).of_run(run)
    assert known.change == (f"{kind}/{name}" if counts else None)


async def approved(pool: asyncpg.Pool, run: UUID, name: str, state: str = "consumed") -> None:
    """A call on a Deployment that people approved now."""
    await pool.execute(
        "INSERT INTO tool_approval (id, investigation, interaction, digest, request, targets, state, expires_at,"
        " decided_at, required) VALUES ($1, $2, $3, 'd', '{}', $4, $5, now(), now(), 1)",
        uuid4(),
        run,
        uuid4(),
        [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
        state,
    )


@pytest.mark.parametrize(
    ("name", "state", "counts"),
    [("checkout", "consumed", True), ("checkout", "rejected", False), ("cart", "consumed", False)],
)
@pytest.mark.parametrize("own", [True, False])
async def test_an_approved_call_on_what_the_finding_blames_is_a_change(
    pool: asyncpg.Pool, name: str, state: str, counts: bool, own: bool
) -> None:
    sender = Sender(pool)
    run = await found(pool, await sender.send("fires"), text="Pod/checkout-6f7d9c8b54-k8x2p and Deployment/checkout")
    caller = run if own else await found(pool, None)
    await pass_time(pool, minutes=10)
    await approved(pool, caller, name, state)
    if own:  # within the run, before it ended
        await pool.execute("UPDATE tool_approval SET decided_at = decided_at - interval '1 hour'")
    await pass_time(pool, minutes=10)
    await sender.send("ends")
    await pass_time(pool, hours=25)
    assert await look(pool) == {run: CHANGED if counts else SETTLED}


async def test_two_controllers_decide_a_run_once(pool: asyncpg.Pool) -> None:
    sender = Sender(pool)
    run = await found(pool, await sender.send("fires"))
    await sender.send("ends")
    await pass_time(pool, hours=25)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM outcome_look WHERE investigation = $1 FOR UPDATE", run)
        assert await Outcomes(pool).look() is None, "another one looks at it"
    assert await look(pool) == {run: SETTLED}
