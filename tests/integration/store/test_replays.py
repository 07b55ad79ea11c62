"""Replays in the store: claimed last, unreadable for older workers, in no default list, with their own retention."""

from dataclasses import replace

import asyncpg

from integration.store.build import begun_run, new_run, tool_call, tool_result, worker
from tarsy.evals.cassette import read_cassette, write_cassette
from tarsy.plan.model import ReplayPlan
from tarsy.record.boundaries import OfferedTools
from tarsy.record.messages import ToolDefinition
from tarsy.record.replay import ReplayedFrom, Rung
from tarsy.record.run import RunOutcome, State
from tarsy.store.claims import Claims
from tarsy.store.replays import Replays
from tarsy.store.retention import Retention
from tarsy.store.runs import REPLAY_VERSION, NewRun, Runs
from tarsy.store.search import Filters, Search
from unit.evals.cassettes import call, cassette

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


async def test_a_replay_answers_from_its_frozen_record(pool: asyncpg.Pool) -> None:
    run = a_replay()
    await Runs(pool).accept(run)
    data = await Replays(pool).cassette(run.id)
    assert data is not None and read_cassette(data).calls[0].result == "x"
    assert await Replays(pool).cassette(new_run().id) is None
