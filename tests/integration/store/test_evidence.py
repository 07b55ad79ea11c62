"""Tests that a finding may cite only tool calls of its own run."""

from uuid import uuid4

import asyncpg

from integration.store.build import (
    PROMPT,
    begun_run,
    model_call,
    model_result,
    tool_call,
    tool_result,
)
from tarsy.record.ids import call_ref, idempotency_key, tool_call_id
from tarsy.record.run import ExecutionStart
from tarsy.store.writer import RunWriter


async def begun(pool: asyncpg.Pool, **of_run: str) -> tuple[RunWriter, ExecutionStart]:
    _, _, write, agent = await begun_run(pool, **of_run)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    return write, agent


def ref(agent: ExecutionStart, index: int = 0) -> str:
    return call_ref(idempotency_key(agent.id, 2, index))


async def test_a_call_of_another_run_is_not_found(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id))
    other, _ = await begun(pool, name="alert-2")

    assert await other.evidence([ref(agent), str(tool_call_id(agent.id, 2, 0, 0)), str(uuid4())]) == {}
