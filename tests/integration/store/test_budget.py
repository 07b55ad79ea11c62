"""Tests the usage of a run on Postgres: cost, estimates, the limit it reached, tool calls, compacted messages."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import asyncpg

from integration.store.build import (
    PROMPT,
    begun_run,
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
from tarsy.record import ids
from tarsy.record.history import BudgetExceeded, BudgetLimit, RunHistory
from tarsy.record.messages import Access, Message, Role, ToolCall
from tarsy.record.run import Failure, InvestigationRecord, RunOutcome, State
from tarsy.record.timeline import EventType
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.writer import RunWriter


async def begun(pool: asyncpg.Pool) -> tuple[UUID, UUID, RunWriter, UUID]:
    """A run whose agent has begun: its id, its worker, its writer, the execution."""
    run, owner, write, agent = await begun_run(pool)
    return run, owner, write, agent.id


async def record(pool: asyncpg.Pool, run: UUID) -> InvestigationRecord:
    found = await Reads(pool).record(run)
    assert found is not None
    return found


async def test_cost_is_summed_exactly_and_says_when_a_part_is_unknown(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun(pool)
    assert ((await record(pool, run)).cost_usd, (await record(pool, run)).cost_complete) == (None, True)
    for number, cost in enumerate((Decimal("0.1"), Decimal("0.2"), Decimal("0.00000001"))):
        await write.model_call_started(model_call(agent, number, number, PROMPT[:1]))
        done = model_result(agent, number, number + 1, cost_usd=cost)
        await write.model_call_finished(done)
        await write.model_call_finished(done)  # its answer was lost: written twice, counted once
    found = await record(pool, run)
    assert (found.cost_usd, found.cost_complete) == (Decimal("0.30000001"), True)

    await write.model_call_started(model_call(agent, 3, 4))
    await write.model_call_finished(replace(model_result(agent, 3, 5), usage=None, estimated_tokens=70))

    found = await record(pool, run)
    assert (found.cost_usd, found.cost_complete) == (Decimal("0.30000001"), False)
    history = await write.history()
    assert (history.tokens, history.estimated, history.cost_usd) == (3 * 120 + 70, True, Decimal("0.30000001"))


async def test_a_call_that_a_dead_attempt_left_open_counts_as_estimated(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun(pool)
    opened = replace(model_call(agent, 0, 0, PROMPT), estimated_tokens=500, estimated_cost_usd=Decimal("0.25"))
    await write.model_call_started(opened)

    again = writer(pool, run, await next_attempt(pool, run, owner))
    before = await again.history()
    await again.begin_execution(execution(run))
    after = await again.history()

    assert (before.tokens, before.cost_usd, before.estimated) == (500, Decimal("0.25"), True)
    assert replace(after, seconds=0.0) == replace(before, seconds=0.0)
    assert 0 < before.seconds < 60 and before.stages == {ids.stage_id(run, 0)}
    assert not (await record(pool, run)).cost_complete
    assert not (await record(pool, run)).usage.complete


async def test_a_call_left_open_at_the_end_makes_the_cost_incomplete(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun(pool)
    await write.model_call_started(model_call(agent, 0, 0, PROMPT))

    await Runs(pool).finish(run, 1, RunOutcome(State.FAILED, failure=Failure("X", "x")))

    assert not (await record(pool, run)).cost_complete
    assert not (await record(pool, run)).usage.complete


async def test_the_first_limit_reached_stays_and_survives(pool: asyncpg.Pool) -> None:
    run, owner, write, _ = await begun(pool)
    first = BudgetExceeded(BudgetLimit.COST, "The run's budget of US$ 1 is reached.")
    assert (await write.history()).exceeded is None
    told = event(run, "budget", type=EventType.NOTICE, content=first.message)
    await write.budget_exceeded(first, [told])
    await write.budget_exceeded(BudgetExceeded(BudgetLimit.TOKENS, "another"), [told])

    again = writer(pool, run, await next_attempt(pool, run, owner))

    assert (await again.history()).exceeded == (await record(pool, run)).budget_exceeded == first
    assert [e.content for e in await Reads(pool).timeline(run)] == [first.message]


async def test_only_calls_that_were_made_count_and_repetitions_name_their_original(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun(pool)
    first, again = replace(tool_call(agent), access=Access.READ_ONLY), tool_call(agent, 4)
    await write.tool_call_started(first)
    await write.tool_call_finished(tool_result(agent))
    await write.tool_call_started(replace(again, made=False, access=Access.READ_ONLY, repeated_of=first.id))
    await write.tool_call_finished(tool_result(agent, 4))

    history = await write.history()

    assert (history.tool_calls, (await record(pool, run)).tool_calls) == (1, 1)
    one, two = history.calls
    assert (one.id, one.usable, one.repeated_of) == (first.id, True, None)
    assert (two.id, two.usable, two.repeated_of) == (again.id, False, first.id)
    assert (one.server, one.tool, one.arguments) == ("kubernetes", "get", '{"kind": "Pod"}')
    assert 0 <= one.age_seconds < 60


async def test_each_call_is_rebuilt_as_it_was_sent_whatever_was_compacted_later(pool: asyncpg.Pool) -> None:
    run, owner, write, agent = await begun(pool)
    answer = Message(Role.ASSISTANT, "let me look", (ToolCall("c1", "kubernetes.get", "{}"),))
    result = Message(Role.TOOL, "long " * 100, tool_call_id="c1", tool_name="kubernetes.get")
    first = model_call(agent, 0, 0, PROMPT)
    await write.model_call_started(first)
    await write.model_call_finished(model_result(agent, 0, 2, answer))
    await write.tool_call_started(tool_call(agent))
    await write.tool_call_finished(tool_result(agent, message=result))
    whole, short, shorter = model_call(agent, 1, 4), model_call(agent, 2, 4), model_call(agent, 3, 4)
    await write.model_call_started(whole)
    await write.model_call_started(replace(short, superseded={3: "long … long\x00", 2: "let me"}))
    await write.model_call_started(replace(short, superseded={3: "not this"}))  # the same step, written again
    await write.model_call_started(replace(shorter, superseded={3: "…"}))

    async def sent(call: UUID) -> list[str]:
        return [message.content for message in await Reads(pool).sent(call)]

    assert await sent(first.id) == ["you are", "what is wrong?"]
    assert await Reads(pool).sent(whole.id) == [*PROMPT, answer, result]
    assert await sent(short.id) == ["you are", "what is wrong?", "let me", "long … long"]
    assert await sent(shorter.id) == ["you are", "what is wrong?", "let me", "…"]
    assert (await Reads(pool).sent(short.id))[2].tool_calls == answer.tool_calls
    left = await writer(pool, run, await next_attempt(pool, run, owner)).begin_execution(execution(run))
    assert left.messages == (*PROMPT, answer, result)
    assert left.superseded == {2: "let me", 3: "…"}


async def test_history_of_a_first_attempt_is_empty_and_what_it_writes_is_in_it(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write = writer(pool, run)
    assert await write.history() == RunHistory()
    await write.begin_stage(stage(run))
    assert (await write.history()).stages == {stage(run).id}
