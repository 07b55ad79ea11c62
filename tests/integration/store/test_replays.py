"""Replays in the store: claimed last, unreadable for older workers, in no default list, with their own retention."""

from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import begun_run, new_run, tool_call, tool_result, worker
from tarsy.engine.findings.conclusion import read_finding
from tarsy.evals.cassette import read_cassette, write_cassette
from tarsy.evals.recording import cassette_of
from tarsy.plan.model import ReplayPlan
from tarsy.record.boundaries import OfferedTools
from tarsy.record.judging.replay import ReplayedFrom, ReplayReport, Rung
from tarsy.record.messages import ToolDefinition
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.store.judging.replays import Replays
from tarsy.store.reading.search import Filters, Search
from tarsy.store.retention import Retention
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import REPLAY_VERSION, NewRun, Runs
from unit.evals.cassettes import call, cassette

COMPLETED = RunOutcome(State.COMPLETED)
CASSETTE = write_cassette(cassette(call("logs", "x", pod="a")))


def a_replay(namespace: str = "team-a") -> NewRun:
    run = new_run(namespace=namespace, name="what-if", priority=10)
    return replace(run, plan=run.plan.replaying(ReplayPlan(source="Investigation alert-1")), cassette=CASSETTE)


async def test_a_replay_is_claimed_after_every_other_run_and_counts_against_the_limit(pool: asyncpg.Pool) -> None:
    replay, one, other = a_replay("team-b"), new_run(), new_run(name="alert-2", priority=-10)
    for run in (replay, one, other):
        await Runs(pool).accept(run)
    owner, claims = await worker(pool), Claims(pool)
    taken = [found.id for _ in range(3) for found in await claims.claim(owner, 1, 3)]
    assert taken == [one.id, other.id, replay.id]
    await Runs(pool).accept(new_run(name="alert-3"))
    assert await claims.claim(owner, 1, 3) == []


async def test_an_older_worker_leaves_a_replay_alone(pool: asyncpg.Pool) -> None:
    await Runs(pool).accept(a_replay())
    owner = await worker(pool)
    assert await Claims(pool, knows=REPLAY_VERSION - 1).claim(owner, 1, 9) == []
    (claimed,) = await Claims(pool).claim(owner, 1, 9)
    assert claimed.plan.replay is not None and claimed.plan.chat is None


def test_plans_of_other_runs_do_not_name_the_field_that_older_workers_refuse() -> None:
    assert b'"replay"' not in new_run().plan.dump() and b'"replay"' in a_replay().plan.dump()


async def test_lists_leave_replays_out_unless_asked(pool: asyncpg.Pool) -> None:
    replay, run = a_replay(), new_run()
    for each in (replay, run):
        await Runs(pool).accept(each)
    usual = await Search(pool).page(Filters(), "newest", 9)
    everything = await Search(pool).page(Filters(replays=True), "newest", 9)
    assert [item.id for item in usual.items] == [run.id]
    assert {item.id: item.replay for item in everything.items} == {run.id: False, replay.id: True}


async def test_replays_have_a_retention_of_their_own(pool: asyncpg.Pool) -> None:
    replay, run, owner = a_replay(), new_run(), await worker(pool)
    for each in (run, replay):
        await Runs(pool).accept(each)
        (claimed,) = await Claims(pool).claim(owner, 1, 9)
        await Runs(pool).finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED))
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '3 days', settled = true")
    assert await Retention(pool).purge(86_400, replays=True) == {"team-a": 1}
    assert await pool.fetch("SELECT id FROM investigation") == [(run.id,)]
    assert await pool.fetchval("SELECT count(*) FROM replay_input") == 0


async def finished(pool: asyncpg.Pool, run: NewRun, outcome: RunOutcome = COMPLETED) -> UUID:
    """A run that has ended, and whose end its object shows."""
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 9)
    await Runs(pool).finish(claimed.id, claimed.attempt, outcome)
    await pool.execute("UPDATE investigation SET settled = true WHERE id = $1", run.id)
    return run.id


def replayed(source: UUID | None) -> RunOutcome:
    return RunOutcome(State.COMPLETED, replay=ReplayReport(source=source))


async def left(pool: asyncpg.Pool) -> set[UUID]:
    return {row["id"] for row in await pool.fetch("SELECT id FROM investigation")}


async def test_a_replay_is_deleted_with_the_run_that_it_replays_and_one_of_a_case_is_kept(pool: asyncpg.Pool) -> None:
    retention = Retention(pool)
    source, other = await finished(pool, new_run()), await finished(pool, new_run(name="alert-2"))
    await finished(pool, a_replay("team-a"), replayed(source))
    kept = await finished(pool, a_replay("team-a"), replayed(other))
    of_case = await finished(pool, a_replay("team-a"), replayed(None))
    elsewhere = await finished(pool, new_run(namespace="team-b"))
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '3 days' WHERE id = $1", source)
    assert [found.investigations for found in await retention.survey(86_400, ["team-b"])] == []
    assert [found.investigations for found in await retention.survey(86_400)] == [2]
    assert await retention.purge(86_400, ["team-b"]) == {}
    assert await retention.purge(86_400, replays=False) == {"team-a": 2}
    assert await left(pool) == {other, kept, of_case, elsewhere}
    assert await retention.purge(86_400) == {}


async def test_a_replay_that_was_cut_short_is_deleted_with_the_run_that_it_replays(pool: asyncpg.Pool) -> None:
    """One that no worker ended has no report; its plan tells what it replays."""
    source = await finished(pool, new_run())
    plan = new_run().plan.replaying(ReplayPlan(source="Investigation alert-1", of=source))
    replay = replace(a_replay("team-a"), plan=plan)
    await finished(pool, replay, RunOutcome(State.TIMED_OUT))
    of_case = await finished(pool, a_replay("team-a"), RunOutcome(State.TIMED_OUT))
    assert await Retention(pool).purge(86_400) == {}
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '3 days' WHERE id = $1", source)
    assert [found.investigations for found in await Retention(pool).survey(86_400)] == [2]
    assert await Retention(pool).purge(86_400) == {"team-a": 2}
    assert await left(pool) == {of_case}


async def test_a_replay_that_goes_on_keeps_its_copy_and_an_ended_one_does_not(pool: asyncpg.Pool) -> None:
    source = await finished(pool, new_run())
    ended = await finished(pool, a_replay("team-a"), replayed(None))
    waiting = a_replay("team-a")
    await Runs(pool).accept(waiting)
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '3 days' WHERE id = $1", source)
    assert await Retention(pool).purge(86_400) == {"team-a": 1}
    assert await Replays(pool).cassette(ended) is None and await Replays(pool).cassette(waiting.id) is not None
    await finished_claim(pool, waiting.id, source)
    assert await Retention(pool).purge(86_400) == {"team-a": 1}, "its source has been deleted meanwhile"
    assert await left(pool) == {ended}


async def finished_claim(pool: asyncpg.Pool, run: UUID, source: UUID) -> None:
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 9)
    assert claimed.id == run
    await Runs(pool).finish(claimed.id, claimed.attempt, replayed(source))
    await pool.execute("UPDATE investigation SET settled = true WHERE id = $1", run)


async def test_the_record_of_a_run_has_what_a_replay_needs(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    tools = (ToolDefinition("kubernetes.get", "Gets.", {"type": "object"}),)
    await write.pin_tools(
        {"kubernetes": {"get": "d", "scale": "e"}}, OfferedTools(agent.id, tools, {"kubernetes": "Hi"})
    )
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(replace(tool_result(agent.id), replayed=ReplayedFrom(Rung.EXACT, 7)))
    found, asked = await Replays(pool).source(run), await Replays(pool).asked(run)
    assert found is not None and not found.replay
    (recorded,), (made,) = found.run.agents, found.run.calls
    assert tuple(recorded.tools) == tools and recorded.instructions == {"kubernetes": "Hi"}
    assert found.run.pins == {"kubernetes": {"get": "d", "scale": "e"}} and made.result == tool_result(agent.id).result
    assert [(one.rung, one.line) for one in asked.calls] == [("exact", 7)]


@pytest.mark.parametrize(("listed", "kept_back"), [(1, {"t00"}), (20, {f"t{n:02}" for n in range(25)})])
async def test_the_record_tells_which_tools_an_agent_had_lost(
    pool: asyncpg.Pool, listed: int, kept_back: set[str]
) -> None:
    """A notice lists the first 20: of more, those that the agent was not offered are meant."""
    run, _, write, agent = await begun_run(pool)
    names = [f"t{number:02}" for number in range(25)]
    pins = {"kubernetes": dict.fromkeys(names, "d")}
    offered = tuple(ToolDefinition(f"kubernetes.{name}", "", {}) for name in names if name not in kept_back)
    await write.pin_tools(pins, OfferedTools(agent.id, offered))
    metadata = {"server": "kubernetes", "reason": "ToolsChanged", "changed": names[:listed]}
    notice = Event(
        agent.id, EventType.NOTICE, EventStatus.COMPLETED, "They changed.", metadata=metadata, execution=agent.id
    )
    await write.write_events([notice])
    found = await Replays(pool).source(run)
    assert found is not None and set(found.run.agents[0].changed["kubernetes"]) == kept_back
    (recorded,) = cassette_of(found.run, lambda text: read_finding(text)[0]).header.agents
    assert recorded.changed is not None and set(recorded.changed["kubernetes"]) == kept_back


async def test_a_replay_answers_from_its_frozen_record(pool: asyncpg.Pool) -> None:
    run = a_replay()
    await Runs(pool).accept(run)
    data = await Replays(pool).cassette(run.id)
    assert data is not None and read_cassette(data).calls[0].result == "x"
    assert await Replays(pool).cassette(new_run().id) is None
