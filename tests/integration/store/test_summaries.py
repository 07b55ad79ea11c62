"""Tests the record of a tool result that waits for its summary, and of the model call for the summary."""

from dataclasses import replace
from uuid import UUID

import asyncpg

from integration.store.build import (
    PROMPT,
    begun_run,
    model_call,
    model_result,
    next_attempt,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.boundaries import ModelCallStart
from tarsy.record.messages import Message, Role, ToolOutcome
from tarsy.record.run import ExecutionStart, InteractionState, LoopState, ModelCallKind
from tarsy.record.usage import Usage
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.writer import RunWriter

REQUEST = (Message(Role.SYSTEM, "you shorten"), Message(Role.USER, "a long result"))


async def answered(pool: asyncpg.Pool) -> tuple[RunWriter, UUID, UUID, ExecutionStart]:
    """A run whose tool has answered, and nothing after that."""
    run, owner, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_answered(tool_call(agent.id).id, ToolOutcome("a long result"), 7)
    return write, run, owner, agent


def summary(of: ModelCallStart) -> ModelCallStart:
    return replace(of, kind=ModelCallKind.SUMMARIZATION, request=REQUEST, loop=None, tools=())


async def test_another_attempt_finds_the_result_of_a_call_that_waits_for_its_summary(pool: asyncpg.Pool) -> None:
    _, run, owner, agent = await answered(pool)

    write = writer(pool, run, await next_attempt(pool, run, owner))
    left = await write.begin_execution(agent)

    (waiting,) = left.unanswered
    assert (waiting.result, waiting.state, waiting.attempt) == ("a long result", InteractionState.STARTED, 0)
    assert len(left.messages) == 3
    await write.tool_call_finished(tool_result(agent.id, result="a long result", duration_ms=0))
    assert (await write.begin_execution(agent)).unanswered == ()
    row = await pool.fetchrow("SELECT state, result, duration_ms FROM mcp_interaction")
    assert tuple(row) == ("completed", "a long result", 7), "the time is that of the tool"
    record = await Reads(pool).record(run)
    assert record is not None and record.tool_calls == 1


async def test_a_call_for_a_summary_keeps_its_request_and_leaves_conversation_and_state_alone(
    pool: asyncpg.Pool,
) -> None:
    write, _, _, agent = await answered(pool)
    before = await write.begin_execution(agent)
    call = summary(model_call(agent.id, 1, 3))

    await write.model_call_started(call)
    assert (await write.begin_execution(agent)).loop == before.loop
    await write.model_call_finished(
        replace(
            model_result(agent.id, 1, loop=LoopState(iteration=1, usage=Usage(input_tokens=100))),
            message=None,
            message_seq=None,
        )
    )

    after = await write.begin_execution(agent)
    assert after.messages == before.messages and after.loop.usage.input_tokens == 100
    assert await Reads(pool).sent(call.id) == list(REQUEST)
    assert await Reads(pool).sent(model_call(agent.id).id) == list(PROMPT)
