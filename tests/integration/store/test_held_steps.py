"""Tests that the end of a call is one statement with the next step of its execution, and that a death loses both."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    begun_run,
    event,
    execution,
    model_call,
    model_result,
    next_attempt,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.boundaries import OfferedTools
from tarsy.record.run import LeaseLost
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.writer import RunWriter

LONG = 3600.0
COUNTERS = (
    "SELECT model_calls, interrupted_model_calls, tool_calls, input_tokens, output_tokens, event_seq, usage_complete "
    "FROM investigation WHERE id = $1"
)
Steps = list[Callable[[RunWriter, UUID], Awaitable[Any]]]


async def revision(pool: asyncpg.Pool, run: UUID) -> int:
    return int(await pool.fetchval("SELECT revision FROM investigation WHERE id = $1", run))


async def rows(pool: asyncpg.Pool, run: UUID) -> list[dict[str, Any]]:
    """All that is on record of a run, the counters first, without the times."""
    found = [dict(await pool.fetchrow(COUNTERS, run))]
    for table in ("llm_interaction", "mcp_interaction", "message", "superseded"):
        query = (
            f"SELECT to_jsonb(t) - '{{started_at,finished_at,created_at}}'::text[] AS row FROM {table} t "  # noqa: S608
            "JOIN execution e ON e.id = t.execution JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 "
            "ORDER BY to_jsonb(t) - '{id,execution,idempotency_key}'::text[] - '{started_at,finished_at}'::text[]"
        )
        found += [row["row"] for row in await pool.fetch(query, run)]
    loops = "SELECT e.loop FROM execution e JOIN stage s ON s.id = e.stage WHERE s.investigation = $1"
    found += [row["loop"] for row in await pool.fetch(loops, run)]
    return found + [{"seq": e.seq, "status": e.status, "content": e.content} for e in await Reads(pool).timeline(run)]


async def asks(write: RunWriter, of: UUID) -> None:
    await write.model_call_started(model_call(of, 0, 0, PROMPT))


async def answers(write: RunWriter, of: UUID) -> None:
    await write.model_call_finished(model_result(of), [event(of, "b")])


async def calls(write: RunWriter, of: UUID) -> None:
    await write.tool_call_started(tool_call(of), [event(of, "c")])


async def tells(write: RunWriter, of: UUID) -> None:
    await write.tool_call_finished(tool_result(of), [event(of, "d")])


async def asks_with_the_result(write: RunWriter, of: UUID) -> None:
    await write.model_call_started(model_call(of, 1, 4), [event(of, "a")])


async def asks_again(write: RunWriter, of: UUID) -> None:
    await write.model_call_started(model_call(of, 1, 3), [event(of, "a")])


async def calls_another(write: RunWriter, of: UUID) -> None:
    await write.tool_call_started(tool_call(of, index=1), [event(of, "c2")])


async def calls_anew(write: RunWriter, of: UUID) -> None:
    await write.tool_call_started(tool_call(of, attempt=1), [event(of, "c")])


async def asks_without_tools(write: RunWriter, of: UUID) -> None:
    await write.model_call_started(replace(model_call(of, 1, 4), tools=()), [event(of, "a")])


async def asks_with_less(write: RunWriter, of: UUID) -> None:
    await write.model_call_started(replace(model_call(of, 1, 4), tools=(), superseded={3: "a pod …"}))


PAIRS: dict[str, tuple[Steps, Steps]] = {
    "answer and tool call": ([asks], [answers, calls]),
    "tool's answer and model call": ([asks, answers, calls], [tells, asks_with_the_result]),
    "tool's answer and model call of a tool set that is stored": (
        [asks, answers, calls],
        [tells, asks_without_tools],
    ),
    "tool's answer and model call after a compaction": ([asks, answers, calls], [tells, asks_with_less]),
    "answer and tool call that is tried anew": ([asks, answers, calls], [answers, calls_anew]),
    "answer and model call": ([asks], [answers, asks_again]),
    "tool's answer and tool call": ([asks, answers, calls], [tells, calls_another]),
}


@pytest.mark.parametrize("name", PAIRS)
async def test_a_pair_is_one_statement_and_leaves_what_two_leave(pool: asyncpg.Pool, name: str) -> None:
    before, pair = PAIRS[name]
    run, _, alone, agent = await begun_run(pool)
    for step in (*before, *pair):
        await step(alone, agent.id)
    expected = await rows(pool, run)
    other, _, write, same = await begun_run(pool)
    for step in before:
        await step(write, same.id)
    first = await revision(pool, other)
    held = writer(pool, other, hold_seconds=LONG)
    async with held.holding():
        for step in pair:
            await step(held, same.id)
        assert await revision(pool, other) == first + 1
    assert _without_ids(await rows(pool, other)) == _without_ids(expected)


async def test_results_are_told_although_they_are_held_and_an_answer_stays_held(pool: asyncpg.Pool) -> None:
    run, _, _, agent = await begun_run(pool)
    write = writer(pool, run, hold_seconds=LONG)
    async with write.holding():
        await asks(write, agent.id)
        await answers(write, agent.id)
        before = await revision(pool, run)
        assert await write.told_results(agent.id) == []
        assert await revision(pool, run) == before
        await calls(write, agent.id)
        await tells(write, agent.id)
        assert len(await write.told_results(agent.id)) == 1


@pytest.mark.parametrize("name", PAIRS)
async def test_a_pair_that_is_written_twice_counts_once(pool: asyncpg.Pool, name: str) -> None:
    before, pair = PAIRS[name]
    run, _, write, agent = await begun_run(pool)
    for step in before:
        await step(write, agent.id)
    held = writer(pool, run, hold_seconds=LONG)
    async with held.holding():
        for step in pair:
            await step(held, agent.id)
        once, revised = _without_sequence(await rows(pool, run)), await revision(pool, run)
        for step in pair:
            await step(held, agent.id)
        assert await revision(pool, run) == revised + 1
    assert _without_sequence(await rows(pool, run)) == once


async def test_a_step_that_is_held_when_its_process_dies_is_lost_and_its_call_is_open(pool: asyncpg.Pool) -> None:
    run, owner, _, agent = await begun_run(pool)
    write = writer(pool, run, hold_seconds=LONG)
    died = asyncio.Event()

    async def dies() -> None:
        async with write.holding():
            await asks(write, agent.id)
            await answers(write, agent.id)
            before = await rows(pool, run)
            again = writer(pool, run, await next_attempt(pool, run, owner))
            left = await again.begin_execution(agent)
            assert (left.messages, left.model_calls, left.unanswered) == (PROMPT, 1, ())
            assert (before[0]["model_calls"], before[0]["tool_calls"]) == (0, 0)
            died.set()

    with pytest.raises(ExceptionGroup) as raised:
        await dies()
    assert died.is_set()
    assert raised.value.subgroup(LeaseLost) is not None
    counted = await pool.fetchrow(COUNTERS, run)
    assert (counted["model_calls"], counted["interrupted_model_calls"]) == (0, 1)


async def test_a_pair_of_an_attempt_that_lost_its_run_writes_nothing(pool: asyncpg.Pool) -> None:
    run, owner, _, agent = await begun_run(pool)
    write = writer(pool, run, hold_seconds=LONG)

    async def loses() -> None:
        async with write.holding():
            await asks(write, agent.id)
            await answers(write, agent.id)
            await next_attempt(pool, run, owner)
            before = await rows(pool, run), await revision(pool, run)
            with pytest.raises(LeaseLost):
                await calls(write, agent.id)
            assert (await rows(pool, run), await revision(pool, run)) == before
            raise RuntimeError("the attempt stops")

    with pytest.raises(ExceptionGroup):
        await loses()


async def test_a_late_write_that_finds_the_lease_lost_stops_the_attempt(pool: asyncpg.Pool) -> None:
    run, owner, _, agent = await begun_run(pool)
    write = writer(pool, run, hold_seconds=0.01)
    await asks(write, agent.id)
    await next_attempt(pool, run, owner)

    async def works() -> None:
        async with write.holding():
            await answers(write, agent.id)
            async with asyncio.timeout(30):
                await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await works()
    assert raised.value.subgroup(LeaseLost) is not None


async def test_a_step_without_a_next_one_is_written_and_its_readers_are_woken(pool: asyncpg.Pool) -> None:
    run, _, _, agent = await begun_run(pool)
    woken = asyncio.Event()
    write = RunWriter(pool, run, 1, remaining=lambda: 60.0, notify=lambda *_: woken.set(), hold_seconds=0.01)
    async with write.holding():
        await asks(write, agent.id)
        woken.clear()
        await answers(write, agent.id)
        async with asyncio.timeout(30):
            await woken.wait()
        assert (await pool.fetchrow(COUNTERS, run))["model_calls"] == 1


async def test_an_agent_that_begins_does_not_wait_for_the_write_of_another(pool: asyncpg.Pool) -> None:
    run, _, _, agent = await begun_run(pool)
    write = writer(pool, run, hold_seconds=LONG)
    async with write.holding(), asyncio.timeout(30):
        await asks(write, agent.id)
        await answers(write, agent.id)
        async with pool.acquire() as other, asyncio.TaskGroup() as group:
            locked = other.transaction()
            await locked.start()
            await other.fetch("SELECT FROM llm_interaction WHERE execution = $1 FOR UPDATE", agent.id)
            stands = group.create_task(calls(write, agent.id))
            await asyncio.sleep(0)  # it has its turn now
            pins = {"kubernetes": {"get": "digest"}}
            assert await write.pin_tools(pins, OfferedTools(uuid4())) == pins
            await write.degrade_evidence({"prometheus": "it is away"})
            assert not stands.done()
            await locked.rollback()


async def test_agents_side_by_side_hold_and_write_without_a_deadlock(pool: asyncpg.Pool) -> None:
    run, _, write, _ = await begun_run(pool)
    agents = [execution(run, index) for index in range(6)]
    for agent in agents[1:]:
        await write.begin_execution(agent)

    async def work(of: UUID, held: RunWriter) -> None:
        for step in (asks, answers, calls, tells, asks_with_the_result):
            await step(held, of)

    held = writer(pool, run, hold_seconds=LONG)
    async with held.holding(), asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(work(agent.id, held))
    counted = await pool.fetchrow(COUNTERS, run)
    assert (counted["model_calls"], counted["tool_calls"]) == (6, 6)


def _without_ids(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of two runs, whose ids differ."""
    ids = {"id", "execution", "idempotency_key"}
    return [{name: value for name, value in row.items() if name not in ids} for row in found]


def _without_sequence(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the last number that was given to an event: a repeated step takes numbers for its events again."""
    return [{name: value for name, value in row.items() if name != "event_seq"} for row in found]
