"""Tests that a call that is cut while it waits for a rate limit was never sent and costs nothing."""

from collections.abc import Awaitable, Callable
from uuid import UUID

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
    writer,
)
from tarsy.record.ids import execution_id, stage_id
from tarsy.record.run import ExecutionOutcome, RunOutcome, State
from tarsy.record.timeline import RETRYING, WAITING, EventStatus, EventType
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs

Cut = Callable[[asyncpg.Pool, UUID, UUID], Awaitable[object]]


async def by_another_attempt(pool: asyncpg.Pool, run: UUID, owner: UUID) -> None:
    attempt = await next_attempt(pool, run, owner)
    assert (await writer(pool, run, attempt).begin_execution(execution(run))).model_calls == 2


async def with_its_execution(pool: asyncpg.Pool, run: UUID, _: UUID) -> None:
    of = execution_id(stage_id(run, 0), 0)
    await writer(pool, run).finish_execution(ExecutionOutcome(of, State.TIMED_OUT))


async def with_its_run(pool: asyncpg.Pool, run: UUID, _: UUID) -> None:
    await Runs(pool).finish(run, 1, RunOutcome(State.CANCELLED))


CUTS = pytest.mark.parametrize("cut", [by_another_attempt, with_its_execution, with_its_run])


async def asked(pool: asyncpg.Pool, *told: tuple[str, EventStatus]) -> tuple[UUID, UUID]:
    """A run with one finished call, and one under way of which its timeline tells this."""
    run, owner, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id, cost_usd=1))
    call = model_call(agent.id, 1, 3)
    await write.model_call_started(call)
    place = {"type": EventType.NOTICE, "execution": agent.id, "model_call": call.id}
    await write.write_events(
        [event(call.id, reason, status, metadata={"reason": reason}, **place) for reason, status in told]
    )
    return run, owner


@CUTS
async def test_call_that_is_cut_while_it_waits_for_its_turn_was_never_sent(pool: asyncpg.Pool, cut: Cut) -> None:
    run, owner = await asked(pool, (WAITING, EventStatus.STREAMING))

    await cut(pool, run, owner)

    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.interrupted_model_calls, record.model_calls) == (0, 1)
    assert record.usage.complete and record.cost_complete
    row = await pool.fetchrow(
        "SELECT state, input_tokens, output_tokens, cost_usd FROM llm_interaction WHERE number = 1"
    )
    assert tuple(row) == ("interrupted", 0, 0, 0)
    (used,) = await Reads(pool).usage(3600, "model")
    assert (used.calls, used.interrupted, used.calls_of_unknown_usage, used.calls_of_unknown_cost) == (1, 0, 0, 0)


@CUTS
@pytest.mark.parametrize(
    "told",
    [[], [(WAITING, EventStatus.COMPLETED)], [(RETRYING, EventStatus.COMPLETED), (WAITING, EventStatus.STREAMING)]],
    ids=["without a limit", "after its turn came", "before another try"],
)
async def test_call_that_was_sent_is_interrupted_and_of_unknown_cost(
    pool: asyncpg.Pool, cut: Cut, told: list[tuple[str, EventStatus]]
) -> None:
    run, owner = await asked(pool, *told)

    await cut(pool, run, owner)

    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.interrupted_model_calls, record.model_calls) == (1, 1)
    assert not record.usage.complete and not record.cost_complete
    (used,) = await Reads(pool).usage(3600, "model")
    assert (used.calls, used.interrupted, used.calls_of_unknown_usage, used.calls_of_unknown_cost) == (2, 1, 1, 1)
