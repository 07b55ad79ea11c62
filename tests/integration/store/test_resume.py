"""Tests the rows and counters that a new attempt leaves after a lost one; the contract suite has the rest."""

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    begun_run,
    event,
    model_call,
    model_result,
    next_attempt,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.messages import Message, Role
from tarsy.record.run import (
    ExecutionOutcome,
    Failure,
    InteractionState,
    State,
)
from tarsy.record.timeline import EventStatus
from tarsy.store.reading.reads import Reads


async def test_model_call_left_open_is_interrupted_and_counted_apart(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun_run(pool)
    call = model_call(agent.id, 0, 0, PROMPT)
    await write.model_call_started(call)
    await write.write_events([event(call.id, status=EventStatus.STREAMING, execution=agent.id, stage=agent.stage)])

    again = writer(pool, run, await next_attempt(pool, run, owner))
    left = await again.begin_execution(agent)

    assert (left.messages, left.model_calls) == (PROMPT, 1)
    (shown,) = await Reads(pool).timeline(run)
    assert shown.status is EventStatus.INTERRUPTED
    await again.model_call_started(model_call(agent.id, 1, 2))
    await again.model_call_finished(model_result(agent.id, 1))
    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.model_calls, record.interrupted_model_calls) == (1, 1)
    states = await pool.fetch("SELECT state FROM llm_interaction ORDER BY number")
    assert [row["state"] for row in states] == ["interrupted", "completed"]


async def test_tool_call_left_open_is_unanswered_until_its_latest_try_is_closed(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    assert (await write.begin_execution(agent)).unanswered == ()  # no row: it was never sent
    await write.tool_call_started(tool_call(agent.id))

    write = writer(pool, run, await next_attempt(pool, run, owner))
    (open_call,) = (await write.begin_execution(agent)).unanswered
    assert (open_call.message_seq, open_call.index, open_call.attempt) == (2, 0, 0)
    assert open_call.state is InteractionState.STARTED
    await write.tool_call_started(tool_call(agent.id, attempt=1))
    (open_call,) = (await write.begin_execution(agent)).unanswered
    assert open_call.attempt == 1
    await write.tool_call_finished(tool_result(agent.id, attempt=1))

    left = await write.begin_execution(agent)
    assert (left.unanswered, len(left.messages)) == ((), 4)
    states = await pool.fetch("SELECT state FROM mcp_interaction ORDER BY attempt")
    assert [row["state"] for row in states] == ["interrupted", "completed"]


async def test_tool_call_of_unknown_outcome_is_closed_as_interrupted_with_its_answer(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun_run(pool)
    await write.tool_call_started(tool_call(agent.id))
    write = writer(pool, run, await next_attempt(pool, run, owner))
    await write.begin_execution(agent)
    await write.tool_call_finished(tool_result(agent.id, interrupted=True, is_error=True))
    assert await pool.fetchval("SELECT state FROM mcp_interaction") == "interrupted"
    assert (await write.begin_execution(agent)).unanswered == ()


async def test_note_about_a_lost_answer_comes_back_as_the_user_message_it_was(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun_run(pool)
    note = Message(Role.USER, "your answer was lost")
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id, 0, 2, note, failure=Failure("StreamStalled", "stood still")))

    left = await writer(pool, run, await next_attempt(pool, run, owner)).begin_execution(agent)

    assert left.messages == (*PROMPT, note)
    assert await pool.fetchval("SELECT message_seq FROM llm_interaction") is None


async def test_finished_execution_leaves_nothing_open(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    call, tool = model_call(agent.id, 1, 3), tool_call(agent.id)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id, 0))
    open_events = [
        event(owner.id, status=EventStatus.STREAMING, execution=agent.id, stage=agent.stage) for owner in (call, tool)
    ]
    await write.tool_call_started(tool, open_events[1:])
    await write.model_call_started(call)
    await write.write_events(open_events[:1])

    failure = Failure("IterationTimeout", "took too long")
    await write.finish_execution(ExecutionOutcome(agent.id, State.TIMED_OUT, failure=failure))

    shown = await Reads(pool).timeline(run)
    assert [e.status for e in shown] == [EventStatus.TIMED_OUT, EventStatus.TIMED_OUT]
    for table in ("llm_interaction", "mcp_interaction"):
        states = await pool.fetch(f"SELECT state FROM {table} WHERE state = 'started'")  # noqa: S608 - two constants
        assert not states
    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.model_calls, record.interrupted_model_calls) == (1, 1)


async def test_an_attempt_reads_only_what_an_earlier_one_left(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(pool.pressure, "took", lambda what, seconds: asked.append(what.partition(" of investi")[0]))
    run, owner, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    attempt = await next_attempt(pool, run, owner)

    async def taken_over() -> list[str]:
        again = writer(pool, run, attempt)
        asked.clear()
        await again.history()
        await again.begin_execution(agent)
        return [what for what in asked if not what.startswith("begin")]

    assert await taken_over() == ["read the history", "load the conversation"]

    again = writer(pool, run, attempt)
    await again.model_call_started(model_call(agent.id, 1, 2))
    await again.model_call_finished(model_result(agent.id, 1))
    await again.tool_call_started(tool_call(agent.id))
    assert await taken_over() == ["read the history", "load the conversation", "load unanswered tool calls"]

    await again.tool_call_finished(tool_result(agent.id))
    assert await taken_over() == ["read the history", "read the tool calls", "load the conversation"]
