"""Tests that investigations are accepted once, end once, and always end."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    begun_run,
    claimed_run,
    event,
    expire,
    model_call,
    new_run,
    stage,
    tool_call,
    worker,
    writer,
)
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.reading.usage_report import QueueDepth
from tarsy.record.run import DesiredState, Failure, LeaseLost, RunOutcome, StageKind, State
from tarsy.record.timeline import EventStatus, EventType
from tarsy.store.reading.reads import Publication, Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs


async def test_accepting_twice_is_accepting_once(pool: asyncpg.Pool) -> None:
    told: list[str] = []
    runs, run = Runs(pool, lambda channel, _: told.append(channel)), new_run()
    assert await runs.accept(run)
    assert not await runs.accept(run)
    assert told == ["tarsy_queue", "tarsy_run"]
    record = await Reads(pool).record(run.id)
    assert record is not None
    assert (record.state, record.attempt, record.deadline) == (State.PENDING, 0, None)
    assert (record.chain, record.chain_namespace, record.plan_hash) == ("crashloop", "team-a", run.plan.digest)
    assert record.stages_planned == 3
    assert await Reads(pool).known([run.id, new_run().id]) == {run.id}


async def test_desired_state_only_moves_forward(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    runs, reads = Runs(pool), Reads(pool)

    async def desired() -> DesiredState:
        record = await reads.record(run)
        assert record is not None
        return record.desired_state

    assert not await runs.set_desired_state(run, DesiredState.RUNNING)
    assert await runs.set_desired_state(run, DesiredState.CONCLUDED)
    assert await desired() is DesiredState.CONCLUDED
    assert await runs.set_desired_state(run, DesiredState.CANCELLED)
    assert not await runs.set_desired_state(run, DesiredState.CONCLUDED)
    assert not await runs.set_desired_state(run, DesiredState.RUNNING)
    assert await desired() is DesiredState.CANCELLED
    timeline = await reads.timeline(run)
    assert [(e.type, e.metadata["reason"]) for e in timeline] == [
        (EventType.NOTICE, "ConcludeRequested"),
        (EventType.NOTICE, "CancelRequested"),
    ]


@pytest.mark.parametrize(
    ("state", "cut", "told"),
    [
        pytest.param(State.CANCELLED, True, [EventType.NOTICE], id="cancelled"),
        pytest.param(State.TIMED_OUT, True, [EventType.ERROR], id="timed out"),
        pytest.param(State.FAILED, False, [], id="failed by itself: its agents have told"),
    ],
)
async def test_the_timeline_tells_why_a_run_was_cut(
    pool: asyncpg.Pool, state: State, cut: bool, told: list[EventType]
) -> None:
    run, _ = await claimed_run(pool)
    await writer(pool, run).write_events([event(run, "before")])
    await Runs(pool).finish(run, 1, RunOutcome(state, failure=Failure("Because", "of a test"), cut=cut))
    _, *ends = await Reads(pool).timeline(run)
    assert [e.type for e in ends] == told
    assert all((e.content, e.metadata, e.seq) == ("of a test", {"reason": "Because"}, 2) for e in ends)


@pytest.mark.parametrize(
    ("desired", "reason"),
    [(DesiredState.CANCELLED, "CancelledBeforeStart"), (DesiredState.CONCLUDED, "ConcludedBeforeStart")],
)
async def test_pending_run_ends_at_once_when_it_is_not_wanted(
    pool: asyncpg.Pool, desired: DesiredState, reason: str
) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    assert await Runs(pool).set_desired_state(run.id, desired)
    record = await Reads(pool).record(run.id)
    assert record is not None and record.outcome is not None and record.outcome.failure is not None
    assert (record.state, record.outcome.failure.reason) == (State.CANCELLED, reason)
    assert record.finished_at is not None
    (told,) = await Reads(pool).timeline(run.id)
    assert (told.content, told.metadata) == (record.outcome.failure.message, {"reason": reason})
    assert await Claims(pool).claim(await worker(pool), 1, 10) == []
    assert not await Runs(pool).set_desired_state(run.id, DesiredState.CANCELLED)


async def test_outcome_is_read_back_as_it_was_given_and_the_lease_is_gone(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    finding = Finding(
        summary="the probe",
        confidence=Confidence.HIGH,
        claims=(Claim(text="it restarts", citations=(Citation(callId="c1", quote="Back-off"),)),),
    )
    outcome = RunOutcome(State.COMPLETED, "analysis", finding, "summary", "summary failed once", None)
    await Runs(pool).finish(run, 1, outcome)
    await Runs(pool).finish(run, 1, outcome)  # the answer to the first was lost
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.outcome == outcome
    assert await Claims(pool).heartbeat(owner, 60) == {}
    assert await Reads(pool).queue_depth() == QueueDepth(0, 0, 0)
    with pytest.raises(LeaseLost):
        await Runs(pool).finish(run, 1, RunOutcome(State.FAILED))


async def _leave_everything_open(pool: asyncpg.Pool) -> tuple[object, object]:
    run, owner, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.tool_call_started(tool_call(agent.id))
    await write.write_events([event(run, "open", EventStatus.STREAMING), event(run, "closed")])
    return run, owner


@pytest.mark.parametrize("state", [State.CANCELLED, State.TIMED_OUT, State.FAILED])
async def test_what_a_run_left_open_is_closed_with_it(pool: asyncpg.Pool, state: State) -> None:
    run, _ = await _leave_everything_open(pool)
    failure = Failure("Because", "of a test")
    await Runs(pool).finish(run, 1, RunOutcome(state, failure=failure))  # type: ignore[arg-type]
    record = await Reads(pool).record(run)  # type: ignore[arg-type]
    assert record is not None
    (view,) = record.stages
    assert (view.state, view.failure, view.agents_finished, view.kind) == (state, failure, 1, StageKind.INVESTIGATION)
    assert record.interrupted_model_calls == 1
    timeline = await Reads(pool).timeline(run)  # type: ignore[arg-type]
    assert {shown.content: shown.status.value for shown in timeline} == {"open": state.value, "closed": "completed"}
    for table in ("llm_interaction", "mcp_interaction"):
        assert [row["state"] for row in await pool.fetch(f"TABLE {table}")] == ["interrupted"]
    assert [row["state"] for row in await pool.fetch("TABLE execution")] == [state.value]


@pytest.mark.parametrize(
    ("past_deadline", "ended"), [(-1.0, False), (40.0, False), (101.0, True)], ids=["before", "in grace", "after grace"]
)
async def test_sweep_ends_orphans_when_deadline_and_grace_have_passed(
    pool: asyncpg.Pool, past_deadline: float, ended: bool
) -> None:
    run, owner = await _leave_everything_open(pool)
    await _deadline(pool, run, past_deadline)
    assert await Runs(pool).expire_overdue(100) == []  # its worker lives
    await expire(pool, owner)  # type: ignore[arg-type]
    assert await Runs(pool).expire_overdue(100) == ([run] if ended else [])
    record = await Reads(pool).record(run)  # type: ignore[arg-type]
    assert record is not None
    if not ended:
        assert record.state is State.RUNNING
        return
    assert record.outcome is not None and record.outcome.failure is not None
    assert (record.state, record.outcome.failure.reason) == (State.TIMED_OUT, "DeadlineExceeded")
    assert record.stages[0].state is State.TIMED_OUT
    assert await Runs(pool).expire_overdue(100) == []
    with pytest.raises(LeaseLost):
        await writer(pool, run).write_events([event(run, "late")])  # type: ignore[arg-type]


async def test_sweep_cancels_what_was_cancelled_and_has_no_worker(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await Runs(pool).set_desired_state(run, DesiredState.CANCELLED)
    assert await Runs(pool).expire_overdue(100) == []
    await Claims(pool).deregister(owner)
    assert await Runs(pool).expire_overdue(100) == [run]
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.state is State.CANCELLED


async def test_run_whose_object_is_gone_is_cancelled_and_never_published_again(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    await Runs(pool).object_deleted(run)
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.desired_state is DesiredState.CANCELLED
    await Runs(pool).finish(run, 1, RunOutcome(State.CANCELLED))
    assert await Reads(pool).unpublished(10) == []
    assert await Reads(pool).record(run) is not None


async def test_record_is_unpublished_until_its_last_revision_is_marked(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    reads = Reads(pool)
    (behind,) = await reads.unpublished(10)
    await writer(pool, run).begin_stage(stage(run))
    await reads.mark_published(run, behind.revision)
    (behind,) = await reads.unpublished(10)
    await reads.mark_published(run, behind.revision)
    await reads.mark_published(run, 1)  # an older one, late
    assert await reads.unpublished(10) == []
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED))
    (last,) = await reads.unpublished(10)
    assert last.state is State.COMPLETED
    await reads.mark_published(run, last.revision)
    assert await reads.unpublished(10) == []


async def test_a_run_that_is_being_changed_holds_up_no_note_of_another(pool: asyncpg.Pool) -> None:
    """A step that hangs has locked its run: nothing waits for it, and nothing is lost."""
    (free, _), (held, _) = await claimed_run(pool), await claimed_run(pool)
    reads = Reads(pool)
    shown = [Publication(one.id, one.revision) for one in await reads.unpublished(10)]
    async with pool.acquire() as other, other.transaction():
        await other.execute("UPDATE investigation SET revision = revision WHERE id = $1", held)
        async with asyncio.timeout(20):
            assert await reads.mark_all_published([*shown, Publication(uuid4(), 1)]) == {held}
            assert not await reads.mark_published(held, 1)
        assert [one.id for one in await reads.unpublished(10)] == [held]
    assert await reads.mark_all_published(shown) == frozenset()
    assert await reads.unpublished(10) == []
    assert free != held


async def test_digest_of_the_last_status_is_known_once_the_end_is_published_and_until_the_object_is_gone(
    pool: asyncpg.Pool,
) -> None:
    run, _ = await claimed_run(pool)
    reads = Reads(pool)

    async def digest() -> bytes | None:
        found = (await reads.published([run, uuid4()])).get(run)
        return found.digest if found is not None else None

    (behind,) = await reads.unpublished(10)
    await reads.mark_published(run, behind.revision, b"running")
    assert await digest() is None
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED))
    (last,) = await reads.unpublished(10)
    await reads.mark_published(run, last.revision)
    assert await digest() is None
    await reads.mark_published(run, last.revision, b"first")
    await reads.mark_published(run, last.revision)
    await reads.mark_published(run, last.revision - 1, b"late")
    assert await digest() == b"first"
    await reads.mark_published(run, last.revision, b"again")
    assert await digest() == b"again"
    record = await reads.record(run)
    assert record is not None and record.published_digest == b"again"
    assert (await reads.published([run]))[run].finished_at == record.finished_at
    await Runs(pool).object_deleted(run)
    assert await digest() is None


async def test_run_that_is_left_out_is_unpublished_all_the_same_when_it_has_ended(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    reads = Reads(pool)
    assert await reads.unpublished(10, {run}) == []
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED))
    assert [record.id for record in await reads.unpublished(10, {run})] == [run]


async def test_find_returns_the_latest_of_a_name(pool: asyncpg.Pool) -> None:
    runs, reads = Runs(pool), Reads(pool)
    first, second = new_run(name="same"), new_run(name="same")
    await runs.accept(first)
    await runs.accept(second)
    found = await reads.find("team-a", "same")
    assert found is not None and found.id == second.id
    assert await reads.find("team-b", "same") is None


async def _deadline(pool: asyncpg.Pool, run: object, seconds_ago: float) -> None:
    await pool.execute(
        "UPDATE investigation SET deadline = now() - $2 * interval '1 second' WHERE id = $1", run, seconds_ago
    )
