"""Tests the fate of notifications: one row each, one Alert an incident, and a balanced ledger."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from integration.store.build import new_run
from tarsy.store.intake import AlertDraft, Intake, LedgerLine, Occurrence, QueueFull, Received
from tarsy.store.runs.lifecycle import Runs

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ROUTE = "shop/all"


def at(minutes):
    return T0 + timedelta(minutes=minutes)


def body(text, route=ROUTE, sender="prometheus"):
    return Received("alertmanager", sender, hashlib.sha256(text.encode()).hexdigest(), len(text), route)


def firing(group="g", first=0, last=None, *, alerts=1000, seconds=60, draft=None, namespace="shop"):
    def usual(begun, storm):
        name = f"{group}-{begun:%H%M}"
        return AlertDraft(
            namespace, name, {"kind": "Alert", "storm": storm}, ("d" * 64, "long text") if storm else None
        )

    begun = None if first is None else at(first)
    latest = begun if last is None else at(last)
    return Occurrence("route-uid", group, True, begun, latest, alerts, seconds, draft or usual, namespace)


def ended(group="g", last=0):
    return Occurrence("route-uid", group, False, at(last), at(last), 1000, 60, lambda *_: pytest.fail("no draft"))


@pytest.fixture
def intake(pool: asyncpg.Pool) -> Intake:
    return Intake(pool)


async def rows(pool, what="fate || ' ' || reason"):
    return [row[0] for row in await pool.fetch(f"SELECT {what} FROM notification ORDER BY id")]  # noqa: S608


async def test_first_notification_opens_an_incident_that_owes_an_alert(intake, pool):
    decision = await intake.decide(body("one"), firing())
    assert (decision.fate, decision.reason) == ("investigated", "NewIncident")
    assert decision.alert is not None and decision.alert.manifest == {"kind": "Alert", "storm": False}
    assert (await intake.owed(older_seconds=0))[0].name == "g-1200"
    await intake.made(decision.alert.incident, "uid-1")
    assert await intake.owed(older_seconds=0) == []
    assert await rows(pool) == ["investigated NewIncident"]


async def test_same_body_sent_again_is_the_same_notification(intake, pool):
    first = await intake.decide(body("one"), firing())
    again = await intake.decide(body("one"), firing())
    assert (again.fate, again.alert) == (first.fate, first.alert)
    assert await rows(pool, "resends") == [1]
    assert (await intake.route("route-uid"))[0] == 1


async def test_same_body_of_another_sender_is_another_notification(intake, pool):
    await intake.decide(body("one"), firing())
    assert (await intake.decide(body("one", sender="other"), firing())).fate == "folded"


async def test_rejected_body_sent_again_is_one_row(intake, pool):
    for _ in range(3):
        assert (await intake.reject(body("bad", route=""), "NotJson")).reason == "NotJson"
    assert await rows(pool, "reason || resends") == ["NotJson2"]


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 0), (0, 9), (5, 9), (9, 12), (-3, 20)],
    ids=["equal", "one more fires", "the earliest has ended", "and a new one came", "one that was late"],
)
async def test_what_began_before_the_latest_that_was_known_is_the_same_incident(intake, pool, first, last):
    await intake.decide(body("one"), firing(first=0, last=9))
    decision = await intake.decide(body("two"), firing(first=first, last=last))
    assert (decision.fate, decision.reason) == ("folded", "Repeat")
    assert await pool.fetchval("SELECT repeats FROM incident") == 1


async def test_what_began_after_all_that_was_known_is_a_new_incident(intake, pool):
    one = await intake.decide(body("one"), firing(first=0, last=9))
    two = await intake.decide(body("two"), firing(first=10))
    assert (two.fate, two.reason) == ("investigated", "NewIncident")
    assert one.alert.name != two.alert.name


async def test_another_group_is_another_incident(intake):
    await intake.decide(body("one"), firing("g"))
    assert (await intake.decide(body("two"), firing("h"))).fate == "investigated"


async def test_late_word_of_an_older_incident_is_counted_there(intake, pool):
    one = await intake.decide(body("one"), firing(first=0))
    await intake.decide(body("two"), firing(first=10))
    late = await intake.decide(body("late"), firing(first=0))
    assert late.alert.incident == one.alert.incident


async def test_resolved_is_written_down_and_never_investigated(intake, pool):
    assert (await intake.decide(body("unknown"), ended())).reason == "ResolvedUnknown"
    await intake.decide(body("one"), firing())
    decision = await intake.decide(body("end"), ended())
    assert (decision.fate, decision.reason, decision.alert.name) == ("resolved", "Resolved", "g-1200")
    assert await pool.fetchval("SELECT resolved_at IS NOT NULL FROM incident")
    assert await pool.fetchval("SELECT count(*) FROM incident") == 1


async def test_incident_that_fires_again_since_the_same_time_is_open_again(intake, pool):
    await intake.decide(body("one"), firing())
    await intake.decide(body("end"), ended())
    assert (await intake.decide(body("again"), firing(last=1))).fate == "folded"
    assert await pool.fetchval("SELECT resolved_at IS NULL FROM incident")


@pytest.mark.parametrize(
    ("start", "fate"),
    [(10, "investigated"), (60, "folded"), (90, "folded"), (91, "investigated"), (-10, "folded")],
    ids=["clock put right", "the same start", "the latest start", "a later start", "began before the end"],
)
async def test_resolved_incident_of_a_clock_that_ran_ahead_takes_no_later_firing(intake, pool, start, fate):
    """The incident began in 60 and in 90 minutes by the clock of its sender, and is resolved now."""
    now = (datetime.now(UTC) - T0) / timedelta(minutes=1)
    await intake.decide(body("one"), firing(first=now + 60, last=now + 90))
    await intake.decide(body("end"), ended(last=now + 90))
    assert (await intake.decide(body("again"), firing(first=now + start))).fate == fate


async def test_open_incident_of_a_clock_that_ran_ahead_takes_its_repeats(intake, pool):
    now = (datetime.now(UTC) - T0) / timedelta(minutes=1)
    await intake.decide(body("one"), firing(first=now + 60))
    assert (await intake.decide(body("more"), firing(first=now + 10))).fate == "folded"


async def test_without_times_an_incident_ends_when_it_is_resolved(intake, pool):
    await intake.decide(body("one"), firing(first=None))
    assert (await intake.decide(body("two"), firing(first=None))).fate == "folded"
    await intake.decide(body("end"), Occurrence("u", "g", False, None, None, 1, 1, lambda *_: pytest.fail("no")))
    assert (await intake.decide(body("three"), firing(first=None))).fate == "investigated"


async def test_without_times_an_hour_of_silence_ends_an_incident(intake, pool):
    await intake.decide(body("one"), firing(first=None))
    await pool.execute("UPDATE incident SET last_received = now() - interval '59 minutes'")
    assert (await intake.decide(body("two"), firing(first=None))).fate == "folded"
    await pool.execute("UPDATE incident SET last_received = now() - interval '61 minutes'")
    assert (await intake.decide(body("three"), firing(first=None))).fate == "investigated"


async def test_storm_is_folded_under_the_first_alert_beyond_the_limit(intake, pool):
    decisions = [await intake.decide(body(f"b{n}"), firing(f"g{n}", alerts=3)) for n in range(7)]
    assert [d.reason for d in decisions] == ["NewIncident"] * 3 + ["StormBegins"] + ["Storm"] * 3
    assert [d.fate for d in decisions] == ["investigated"] * 4 + ["folded"] * 3
    assert {d.alert.name for d in decisions[3:]} == {"g3-1200"}
    assert decisions[3].alert.manifest["storm"] is True
    assert await intake.body("shop", "d" * 64) == "long text"
    assert await pool.fetchval("SELECT folded FROM incident WHERE storm") == 3
    repeat = await intake.decide(body("b6 again"), firing("g6", last=1, alerts=3))
    assert (repeat.reason, repeat.alert.name) == ("Repeat", "g3-1200")


async def test_storm_is_over_when_alerts_come_slower(intake, pool):
    for n in range(5):
        await intake.decide(body(f"b{n}"), firing(f"g{n}", alerts=3))
    await pool.execute(
        "UPDATE incident SET opened_at = opened_at - interval '61 s', last_received = now() - interval '61 s'"
    )
    decisions = [await intake.decide(body(f"c{n}"), firing(f"h{n}", alerts=3)) for n in range(5)]
    assert [d.reason for d in decisions] == ["NewIncident"] * 3 + ["StormBegins", "Storm"]


async def test_storm_of_one_route_is_none_of_another(intake):
    for n in range(5):
        await intake.decide(body(f"b{n}"), firing(f"g{n}", alerts=3))
    assert (await intake.decide(body("other", route="shop/other"), firing("z", alerts=3))).reason == "NewIncident"


@pytest.mark.parametrize("limits", [{"queue_limit": 2}, {"namespace_queue_limit": 2}], ids=["all", "namespace"])
async def test_full_queue_takes_no_new_incident_and_writes_nothing(pool, limits):
    intake = Intake(pool, **limits)
    for n in range(3):
        await intake.decide(body(f"b{n}"), firing(f"g{n}"))
    with pytest.raises(QueueFull):
        await intake.decide(body("b3"), firing("g3"))
    assert (await intake.decide(body("more"), firing("g0", last=1))).fate == "folded"
    assert (await intake.decide(body("end"), ended("g0"))).fate == "resolved"
    assert len(await rows(pool)) == 5
    for owed in await intake.owed(older_seconds=0):
        await intake.made(owed.incident, "uid")
    assert (await intake.decide(body("b3"), firing("g3"))).fate == "investigated"


@pytest.mark.parametrize(("others", "taken"), [(0, True), (1, True), (2, True), (3, False)])
async def test_limit_of_a_namespace_counts_its_own(pool, others, taken):
    intake = Intake(pool, namespace_queue_limit=2)
    for n in range(others):
        await intake.decide(body(f"b{n}"), firing(f"g{n}"))
    try:
        assert (await intake.decide(body("new"), firing("new"))).fate == "investigated"
        assert taken
    except QueueFull as full:
        assert (full.namespace, taken) == ("shop", False)


async def test_full_queue_of_one_namespace_does_not_send_back_another(pool):
    loud = Intake(pool, queue_limit=1000, namespace_queue_limit=1000)
    for n in range(20):
        await loud.decide(body(f"b{n}"), firing(f"g{n}"))
    intake = Intake(pool, queue_limit=10, namespace_queue_limit=5)
    for n in range(6):
        await intake.decide(body(f"c{n}"), firing(f"h{n}", namespace="pay"))
    with pytest.raises(QueueFull):
        await intake.decide(body("c6"), firing("h6", namespace="pay"))
    assert (await intake.decide(body("d"), firing("d", namespace="bank"))).fate == "investigated"
    with pytest.raises(QueueFull) as full:
        await intake.decide(body("e"), firing("e", namespace="bank"))
    assert full.value.namespace == ""


async def test_pending_runs_of_a_namespace_count_in_its_queue(pool):
    for n in range(3):
        await Runs(pool).accept(new_run(namespace="shop", name=f"alert-{n}"))
    intake = Intake(pool, namespace_queue_limit=2)
    with pytest.raises(QueueFull):
        await intake.decide(body("b"), firing())
    assert (await intake.decide(body("c"), firing("h", namespace="pay"))).fate == "investigated"


async def test_a_hundred_at_once_about_one_thing_are_one_incident(intake, pool):
    # Twelve connections decide one after the other: on a slow machine the last one waits long for its turn.
    decisions = await asyncio.gather(
        *(intake.decide(body(f"b{n}"), firing(last=n), remaining=lambda: 60.0) for n in range(100))
    )
    assert [d.fate for d in decisions].count("investigated") == 1
    assert await pool.fetchval("SELECT count(*) FROM incident") == 1
    assert await pool.fetchval("SELECT repeats FROM incident") == 99


async def test_refused_alert_makes_all_that_led_to_it_rejected(intake, pool):
    first = await intake.decide(body("one"), firing())
    await intake.decide(body("two"), firing(last=1))
    await intake.refused(first.alert.incident, "AlertRefused")
    assert await rows(pool) == ["rejected AlertRefused"] * 2
    assert (await intake.decide(body("three"), firing())).fate == "investigated"


async def test_alert_that_was_made_is_not_refused_any_more(intake, pool):
    first = await intake.decide(body("one"), firing())
    await intake.made(first.alert.incident, "uid")
    await intake.refused(first.alert.incident, "AlertRefused")
    assert await rows(pool) == ["investigated NewIncident"]


async def test_counts_are_told_once(intake):
    first = await intake.decide(body("one"), firing())
    await intake.decide(body("two"), firing(last=1))
    assert await intake.unpublished() == []  # there is no Alert yet to tell it on
    await intake.made(first.alert.incident, "uid")
    (tally,) = await intake.unpublished()
    assert (tally.alert, tally.alert_uid, tally.repeats, tally.folded, tally.resolved_at) == (
        "g-1200",
        "uid",
        1,
        0,
        None,
    )
    await intake.decide(body("end"), ended())
    await intake.published(tally)
    (tally,) = await intake.unpublished()
    assert tally.resolved_at is not None
    await intake.published(tally)
    assert await intake.unpublished() == []


async def test_count_of_a_route_is_told_once(intake):
    await intake.decide(body("one"), firing())
    await intake.decide(body("two"), firing(last=1))
    assert await intake.changed_routes() == [("route-uid", "shop", "all")]
    matched, last = await intake.route("route-uid")
    assert (matched, last.tzinfo) == (2, UTC)
    await intake.route_published("route-uid", matched)
    assert await intake.changed_routes() == []
    assert await intake.route("nobody") is None


async def test_ledger_tells_what_is_owed(intake):
    first = await intake.decide(body("one"), firing())
    await intake.decide(body("two"), firing(last=1))
    await intake.decide(body("two"), firing(last=1))
    await intake.decide(body("end"), ended())
    await intake.reject(body("bad", route=""), "NotJson")
    lines, twice = await intake.ledger(3600)
    assert twice == 0
    assert lines == [
        LedgerLine("folded", "Repeat", True, 1, 1),
        LedgerLine("investigated", "NewIncident", True, 1, 0),
        LedgerLine("rejected", "NotJson", False, 1, 0),
        LedgerLine("resolved", "Resolved", False, 1, 0),
    ]
    await intake.made(first.alert.incident, "uid")
    lines, _ = await intake.ledger()
    assert [line.owed for line in lines] == [False] * 4


async def test_ledger_looks_back_as_far_as_it_is_told(intake, pool):
    await intake.reject(body("old", route=""), "NotJson")
    await pool.execute("UPDATE notification SET received_at = now() - interval '2 h'")
    await intake.reject(body("new", route=""), "NoRoute")
    assert [line.reason for line in (await intake.ledger(3600))[0]] == ["NoRoute"]
    assert [line.reason for line in (await intake.ledger())[0]] == ["NoRoute", "NotJson"]


async def test_what_is_old_is_deleted_but_not_what_is_owed(intake, pool):
    old = await intake.decide(body("one"), firing("g"))
    await intake.decide(body("two"), firing("h"))
    await intake.made(old.alert.incident, "uid")
    storm = [await intake.decide(body(f"s{n}"), firing(f"s{n}", alerts=1)) for n in range(3)]
    await intake.made(storm[0].alert.incident, "uid")
    await pool.execute("UPDATE notification SET received_at = now() - interval '2 days'")
    await pool.execute("UPDATE incident SET last_received = now() - interval '2 days'")
    await pool.execute("UPDATE alert_body SET kept_at = now() - interval '2 days'")
    await intake.reject(body("new", route=""), "NoRoute")
    assert await intake.purge(86_400) == 5
    assert await rows(pool) == ["rejected NoRoute"]
    assert [row["alert"] for row in await pool.fetch("SELECT alert FROM incident ORDER BY 1")] == ["h-1200"]
    assert await intake.body("shop", "d" * 64) is None
