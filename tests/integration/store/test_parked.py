"""Tests that parked runs hold nothing, count no time, always go on or end, and keep their limits."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import expire, worker
from integration.store.parking import SCALE, Fleet, accept, decide, gated_plan, let_pass
from tarsy.record.run import DesiredState, LeaseLost, State
from tarsy.record.waiting import Wait, WaitingLimits, WaitReason
from tarsy.store.reading.gauges import Gauges
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.parking import ParkingLimits
from tarsy.store.sealing.sealed_record import SealedRecord

HOUR = 3600.0


async def _parked(pool: asyncpg.Pool, fleet: Fleet, **of_plan: Any) -> UUID:
    run = await accept(pool, gated_plan(**of_plan))
    await fleet.all_that_can(await worker(pool))
    assert (await fleet.record(run)).state is State.PARKED
    return run


async def test_a_parked_run_holds_no_lease_no_session_and_no_deadline(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    record = await fleet.record(run)
    assert record.parked is not None and record.parked.reason == "Approval"
    assert record.parked.sentence.startswith(f"{SCALE} waits for the approval of people until")
    assert abs(record.parked.until - fleet.expires_at) < timedelta(seconds=1)
    assert (record.deadline, fleet.tools.open_now) == (None, 0)
    assert await pool.fetchval("SELECT count(*) FROM lease") == 0
    assert await pool.fetchval("SELECT count(*) FROM mcp_interaction") == 0
    depth = await Reads(pool).queue_depth()
    assert (depth.running, depth.orphaned, depth.pending) == (0, 0, 0)


async def test_a_decision_lets_any_worker_go_on_with_the_call(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    assert await Claims(pool).claim(await worker(pool), 5, 100) == []
    await decide(pool, run)
    assert (await fleet.record(run)).state is State.PENDING
    (claimed,) = await fleet.all_that_can(await worker(pool))
    assert (claimed.attempt, claimed.parked_for) == (2, "Approval")
    record = await fleet.record(run)
    assert (record.state, record.outcome and record.outcome.final_analysis) == (State.COMPLETED, "It is scaled.")
    assert [name for name, *_ in fleet.tools.called] == [SCALE]
    told = [(e.type, e.metadata.get("reason")) for e in await Reads(pool).timeline(run)]
    assert ("notice", "Approval") in told and ("notice", "Woken") in told
    (report,) = await SealedRecord(pool).check(run)
    assert report.flaws == []
    assert await pool.fetchval("SELECT state || consumed_attempt FROM tool_approval") == "consumed2"


async def test_two_hours_of_waiting_count_neither_for_the_deadline_nor_for_the_budget(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet, seconds=15 * 60.0, minutes=5.0)
    await let_pass(pool, run, 2 * HOUR - 60)
    assert await Runs(pool).expire_overdue(0.0) == []
    await decide(pool, run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 5, 100)
    assert 14 * 60 < claimed.seconds_left <= 15 * 60
    await fleet.run_claimed(claimed)
    record = await fleet.record(run)
    assert (record.state, record.budget_exceeded) == (State.COMPLETED, None)
    assert 2 * HOUR - 70 < record.waited_seconds < 2 * HOUR
    assert [name for name, *_ in fleet.tools.called] == [SCALE]


async def test_a_run_that_nobody_decides_about_goes_on_when_the_wait_is_over(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    await let_pass(pool, run, 2 * HOUR + 1)
    await pool.execute("UPDATE tool_approval SET state = 'expired'")
    await fleet.all_that_can(await worker(pool))
    record = await fleet.record(run)
    assert (record.state, fleet.tools.called) == (State.COMPLETED, [])


@pytest.mark.parametrize(("before", "again"), [(59.0, True), (60.0, False), (61.0, False)])
async def test_a_run_waits_no_longer_in_all_than_it_may(pool: asyncpg.Pool, before: float, again: bool) -> None:
    fleet = Fleet(pool, waiting=WaitingLimits(seconds=60.0), parking=ParkingLimits(seconds=60.0))
    run = await _parked(pool, fleet)
    parked = (await fleet.record(run)).parked
    assert parked is not None and parked.until <= parked.since + timedelta(seconds=60.1)
    await let_pass(pool, run, before)
    await Runs(pool).wake(run)
    await fleet.all_that_can(await worker(pool))
    record = await fleet.record(run)
    assert record.state is (State.PARKED if again else State.COMPLETED)
    if again:
        await let_pass(pool, run, 2.0)
        await fleet.all_that_can(await worker(pool))
        assert (await fleet.record(run)).state is State.COMPLETED
    assert await pool.fetchval("SELECT state FROM tool_approval") == "withdrawn"


async def test_a_decision_between_the_question_and_the_parking_is_not_lost(pool: asyncpg.Pool) -> None:
    run = await accept(pool)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 100)
    assert await Runs(pool).wake(run) is False
    until = datetime.now(UTC) + timedelta(hours=1)
    wait = Wait(WaitReason.APPROVAL, until, "It waits.")
    assert await Runs(pool).park(run, claimed.attempt, wait, ParkingLimits()) is None
    (again,) = await Claims(pool).claim(await worker(pool), 1, 100)
    assert await Runs(pool).park(run, again.attempt, wait, ParkingLimits()) is None
    assert await Claims(pool).claim(await worker(pool), 1, 100) == [], "it is told once"


async def test_waking_twice_is_waking_once(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    assert [await Runs(pool).wake(run) for _ in range(2)] == [True, False]
    assert len(await Claims(pool).claim(await worker(pool), 5, 100)) == 1
    assert await Claims(pool).claim(await worker(pool), 5, 100) == []


@pytest.mark.parametrize(("total", "each", "parks"), [(2, None, 2), (9, 2, 2), (3, None, 3), (9, 3, 3), (9, None, 3)])
async def test_no_more_runs_are_parked_than_may_and_the_others_go_on_without_the_call(
    pool: asyncpg.Pool, total: int, each: int | None, parks: int
) -> None:
    fleet = Fleet(pool, parking=ParkingLimits(total, each))
    runs = [await accept(pool) for _ in range(3)]
    await fleet.all_that_can(await worker(pool), places=3)
    states = sorted([(await fleet.record(run)).state for run in runs])
    assert states == sorted([State.PARKED] * parks + [State.COMPLETED] * (3 - parks))
    assert fleet.tools.called == []
    refused = await pool.fetch("SELECT refused FROM mcp_interaction")
    assert [row["refused"] for row in refused] == ["ApprovalUnavailable"] * (3 - parks)
    assert await pool.fetchval("SELECT count(*) FROM tool_approval WHERE state = 'withdrawn'") == 3 - parks


async def test_parked_runs_take_no_place_of_running_ones_and_go_first_when_they_are_woken(pool: asyncpg.Pool) -> None:
    fleet, owner = Fleet(pool), await worker(pool)
    run = await _parked(pool, fleet)
    urgent = await accept(pool, priority=40)
    (claimed,) = await Claims(pool).claim(owner, 1, 1)
    assert claimed.id == urgent
    waits = await accept(pool, priority=40)
    await decide(pool, run)
    assert await Claims(pool).claim(owner, 1, 1) == [], "a woken run keeps the limits of running ones"
    await fleet.run_claimed(claimed)
    (claimed,) = await Claims(pool).claim(owner, 1, 1)
    assert claimed.id == run != waits


async def test_the_other_agent_of_a_parallel_stage_ends_and_the_synthesis_follows_the_decision(
    pool: asyncpg.Pool,
) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet, parallel=True)
    (progress,) = (await fleet.record(run)).stages
    assert (progress.state, progress.agents, progress.agents_finished) == (State.RUNNING, 2, 1)
    await decide(pool, run)
    await fleet.all_that_can(await worker(pool))
    record = await fleet.record(run)
    assert (record.state, record.outcome and record.outcome.final_analysis) == (State.COMPLETED, "Both agree.")
    assert sorted(name for name, *_ in fleet.tools.called) == ["k8s.get", SCALE]


async def test_a_parked_run_that_is_to_conclude_concludes_at_once(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    assert await Runs(pool).set_desired_state(run, DesiredState.CONCLUDED)
    await fleet.all_that_can(await worker(pool))
    assert ((await fleet.record(run)).state, fleet.tools.called) == (State.COMPLETED, [])


@pytest.mark.parametrize("deleted", [False, True], ids=["cancelled", "deleted"])
async def test_a_parked_run_that_is_cancelled_or_deleted_is_ended_by_the_sweep(
    pool: asyncpg.Pool, deleted: bool
) -> None:
    fleet = Fleet(pool)
    run = await _parked(pool, fleet)
    if deleted:
        await Runs(pool).object_deleted(run)
    else:
        await Runs(pool).set_desired_state(run, DesiredState.CANCELLED)
    assert await Runs(pool).expire_overdue(300.0) == [run]
    record = await fleet.record(run)
    assert (record.state, record.parked) == (State.CANCELLED, None)
    assert await pool.fetchval("SELECT count(*) FROM investigation WHERE parked_at IS NOT NULL") == 0
    assert await Claims(pool).claim(await worker(pool), 5, 100) == []


async def test_a_zombie_cannot_park_a_run_that_another_attempt_owns(pool: asyncpg.Pool) -> None:
    run, owner = await accept(pool), await worker(pool)
    (first,) = await Claims(pool).claim(owner, 1, 100)
    await expire(pool, owner)
    (second,) = await Claims(pool).claim(await worker(pool), 1, 100)
    wait = Wait(WaitReason.APPROVAL, datetime.now(UTC) + timedelta(hours=1), "It waits.")
    with pytest.raises(LeaseLost):
        await Runs(pool).park(run, first.attempt, wait, ParkingLimits())
    assert await Runs(pool).park(run, second.attempt, wait, ParkingLimits()) is None
    assert await Runs(pool).park(run, second.attempt, wait, ParkingLimits()) is None, "its answer was lost"


@pytest.mark.parametrize("reason", list(WaitReason))
async def test_gauges_count_parked_runs_by_reason_and_not_as_running(pool: asyncpg.Pool, reason: WaitReason) -> None:
    run = await accept(pool)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 100)
    wait = Wait(reason, datetime.now(UTC) + timedelta(hours=1), "It waits.")
    await Runs(pool).park(run, claimed.attempt, wait, ParkingLimits())
    read = {metric.name: values for metric, values in (await Gauges(pool).read()).items()}
    assert read["tarsy_investigations_running"] == {(): 0}
    assert read["tarsy_investigations_parked"] == {(r.value,): int(r is reason) for r in WaitReason}


@pytest.mark.parametrize(
    "many", [25, pytest.param(500, marks=pytest.mark.heavy("500 runs, where 25 show the same in `make test`"))]
)
async def test_many_parked_runs_hold_nothing_and_all_go_on_after_a_restart_of_everything(
    pool: asyncpg.Pool, many: int
) -> None:
    fleet = Fleet(pool)
    runs = [await accept(pool, namespace=f"team-{n % 5}") for n in range(many)]
    before = await worker(pool)
    await fleet.all_that_can(before, places=50)
    count = "SELECT count(*) FROM investigation WHERE parked_at IS NOT NULL"
    assert (await pool.fetchval(count), fleet.tools.open_now) == (many, 0)
    assert await pool.fetchval("SELECT count(*) FROM lease") == 0
    assert await Claims(pool).claim(await worker(pool), 50, 100) == []
    await Claims(pool).deregister(before)
    await pool.execute("DELETE FROM worker")
    await pool.execute("UPDATE tool_approval SET state = 'approved', checked_at = now()")
    await asyncio.gather(*(Runs(pool).wake(run) for run in runs))
    await Fleet(pool, tools=fleet.tools).all_that_can(await worker(pool), places=50)
    ended = await pool.fetch("SELECT state, count(*) FROM investigation GROUP BY state")
    assert [tuple(row) for row in ended] == [("completed", many)]
    assert len(fleet.tools.called) == many


async def test_waking_an_unknown_or_ended_run_does_nothing(pool: asyncpg.Pool) -> None:
    assert await Runs(pool).wake(uuid4()) is False
