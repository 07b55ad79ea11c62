"""A new attempt finds at each boundary what the old one left."""

import asyncio

import asyncpg

from integration.store.build import (
    PROMPT,
    claimed_run,
    event,
    execution,
    model_call,
    model_result,
    next_attempt,
    stage,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import (
    ExecutionOutcome,
    Failure,
    InteractionState,
    LoopState,
    StageOutcome,
    State,
)
from tarsy.record.timeline import EventStatus
from tarsy.record.usage import Usage
from tarsy.store.reads import Reads


async def test_conversation_is_found_again_exactly_as_it_was_written(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    answer = Message(
        Role.ASSISTANT,
        "let me look",
        (ToolCall("c1", "kubernetes.get", '{"a": 1'), ToolCall("c2", "kubernetes.get", "{}")),
        provider_state={"signature": "AAECAw=="},
    )
    await write.begin_stage(stage(run))
    fresh = await write.begin_execution(agent)
    assert (fresh.state, fresh.messages, fresh.model_calls, fresh.unanswered) == (State.RUNNING, (), 0, ())
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    loop = LoopState(iteration=1, usage=Usage(input_tokens=7))
    await write.model_call_finished(model_result(agent.id, 0, 2, answer, loop=loop))
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id))

    attempt = await next_attempt(pool, run, owner)
    left = await writer(pool, run, attempt).begin_execution(agent)

    tool = Message(Role.TOOL, "a pod", tool_call_id="c1", tool_name="kubernetes.get")
    assert left.messages == (*PROMPT, answer, tool)
    assert left.loop == LoopState(iteration=1, tool_calls=1)
    assert (left.model_calls, left.unanswered) == (1, ())


async def test_model_call_left_open_is_interrupted_and_counted_apart(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
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
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
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
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.tool_call_started(tool_call(agent.id))
    write = writer(pool, run, await next_attempt(pool, run, owner))
    await write.begin_execution(agent)
    await write.tool_call_finished(tool_result(agent.id, interrupted=True, is_error=True))
    assert await pool.fetchval("SELECT state FROM mcp_interaction") == "interrupted"
    assert (await write.begin_execution(agent)).unanswered == ()


async def test_finished_stages_and_executions_come_back_finished(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, result="it was the probe"))
    await write.finish_stage(StageOutcome(agent.stage, State.FAILED, Failure("Policy", "one agent failed")))

    write = writer(pool, run, await next_attempt(pool, run, owner))
    old_stage, old_agent = await write.begin_stage(stage(run)), await write.begin_execution(agent)
    assert (old_stage.state, old_stage.failure) == (State.FAILED, Failure("Policy", "one agent failed"))
    assert (old_agent.state, old_agent.result) == (State.COMPLETED, "it was the probe")


async def test_note_about_a_lost_answer_comes_back_as_the_user_message_it_was(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    note = Message(Role.USER, "your answer was lost")
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id, 0, 2, note, failure=Failure("StreamStalled", "stood still")))

    left = await writer(pool, run, await next_attempt(pool, run, owner)).begin_execution(agent)

    assert left.messages == (*PROMPT, note)
    assert await pool.fetchval("SELECT message_seq FROM llm_interaction") is None


async def test_call_answered_before_an_earlier_one_comes_back_in_its_place(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    await asyncio.gather(*(write.tool_call_started(tool_call(agent.id, index=index)) for index in range(3)))
    await asyncio.gather(*(write.tool_call_finished(tool_result(agent.id, index=index)) for index in (2, 1)))

    again = writer(pool, run, await next_attempt(pool, run, owner))
    left = await again.begin_execution(agent)

    answer = tool_result(agent.id).message
    assert (len(left.messages), left.ahead) == (3, {4: answer, 5: answer})
    assert [(call.message_seq, call.index) for call in left.unanswered] == [(2, 0)]
    await again.tool_call_started(tool_call(agent.id, attempt=1))
    await again.tool_call_finished(tool_result(agent.id, attempt=1))
    whole = await again.begin_execution(agent)
    assert (len(whole.messages), whole.ahead, whole.unanswered) == (6, {}, ())


async def test_finished_execution_leaves_nothing_open(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
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
