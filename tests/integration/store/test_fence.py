"""Tests that only the attempt with the lease writes; an earlier one changes no row of any table."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    claimed_run,
    event,
    execution,
    expire,
    model_call,
    next_attempt,
    stage,
    tool_call,
    worker,
    writer,
)
from tarsy.record.run import LeaseLost, RunOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from unit.engine.recorder_contract import WRITES


@pytest.mark.parametrize("step", WRITES)
async def test_old_attempt_writes_nothing(pool: asyncpg.Pool, step: str) -> None:
    run, owner = await claimed_run(pool)
    zombie = writer(pool, run, 1)
    await zombie.begin_stage(stage(run))
    await zombie.begin_execution(execution(run))
    await zombie.model_call_started(model_call(execution(run).id, 0, 0, PROMPT[:1]))
    await zombie.tool_call_started(tool_call(execution(run).id))
    await zombie.write_events([event(run, "open", content="old")])
    await next_attempt(pool, run, owner)
    before = await _everything(pool)
    with pytest.raises(LeaseLost):
        await WRITES[step](zombie, run)
    assert await _everything(pool) == before


async def test_old_attempt_cannot_finish_the_run(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await next_attempt(pool, run, owner)
    before = await _everything(pool)
    with pytest.raises(LeaseLost):
        await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="mine"))
    assert await _everything(pool) == before


async def test_run_is_not_claimed_while_its_dead_owner_is_in_the_middle_of_a_step(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    heir = await worker(pool)
    async with _step_in_flight(pool, run) as step:
        await expire(pool, owner)
        async with asyncio.timeout(60):
            assert await Claims(pool).claim(heir, 1, 10) == []
    await step
    (claimed,) = await Claims(pool).claim(heir, 1, 10)
    assert (claimed.id, claimed.attempt) == (run, 2)


async def test_sweep_leaves_a_run_whose_dead_owner_is_in_the_middle_of_a_step(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await pool.execute("UPDATE investigation SET deadline = now() - interval '1 hour'")
    async with _step_in_flight(pool, run) as step:
        await expire(pool, owner)
        async with asyncio.timeout(60):
            assert await Runs(pool).expire_overdue(1) == []
    await step
    assert await Runs(pool).expire_overdue(1) == [run]


async def test_finish_waits_for_a_step_in_flight_closes_what_it_opened_and_no_step_follows(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    async with _step_in_flight(pool, run) as step:
        finishing = asyncio.create_task(Runs(pool).finish(run, 1, RunOutcome(State.CANCELLED)))
        done, _ = await asyncio.wait([finishing], timeout=0.2)
        assert not done
    await step
    await finishing
    (shown,) = await Reads(pool).timeline(run)
    assert shown.status is EventStatus.CANCELLED
    with pytest.raises(LeaseLost):
        await writer(pool, run).write_events([event(run)])


@asynccontextmanager
async def _step_in_flight(pool: asyncpg.Pool, run: UUID) -> AsyncIterator[asyncio.Task[None]]:
    """A step that has passed the fence and waits for the investigation's row until the block ends."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM investigation WHERE id = $1 FOR UPDATE", run)
        step = asyncio.create_task(writer(pool, run).write_events([event(run, status=EventStatus.STREAMING)]))
        async with asyncio.timeout(60):
            while not await pool.fetchval(waiting):  # noqa: ASYNC110 (Postgres has no event for it)
                await asyncio.sleep(0.01)
        yield step


async def _everything(pool: asyncpg.Pool) -> dict[str, list[Any]]:
    tables = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'tarsy' ORDER BY 1")
    return {table: sorted(map(repr, await pool.fetch(f"TABLE {table}"))) for (table,) in tables}
