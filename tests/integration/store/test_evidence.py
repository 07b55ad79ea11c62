"""Tests that a finding may cite only tool calls of its own run."""

from uuid import uuid4

import asyncpg

from integration.store.build import (
    PROMPT,
    begun_run,
    model_call,
    model_result,
    stage,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.ids import call_ref, idempotency_key, tool_call_id
from tarsy.record.run import ExecutionStart
from tarsy.store.runs.writer import RunWriter


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


async def test_results_of_another_run_are_not_told(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id))
    other, second = await begun(pool, name="alert-2")

    assert await other.told_results(second.id) == await other.told_results(agent.id) == []
    assert [found.ref for found in await write.told_results(agent.id)] == [ref(agent)]


async def test_a_question_is_told_the_results_of_its_investigation_and_of_the_other_questions(
    pool: asyncpg.Pool,
) -> None:
    writes = [await begun(pool, name=f"alert-{n}") for n in range(3)]
    for write, agent in writes:
        await write.tool_call_started(tool_call(agent.id))
        await write.tool_call_finished(tool_result(agent.id))
    about, first, second = [
        await pool.fetchval("SELECT id FROM investigation WHERE name = $1", f"alert-{n}") for n in range(3)
    ]
    await pool.execute("UPDATE investigation SET parent = $1 WHERE id = ANY($2)", about, [first, second])

    told = [[found.ref for found in await write.told_results(agent.id)] for write, agent in writes]

    everything = {ref(agent) for _, agent in writes}
    assert [set(refs) for refs in told] == [{ref(writes[0][1])}, everything, everything]
    assert [len(refs) for refs in told] == [1, 3, 3]


async def test_results_are_read_in_pages(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    for index in range(17):
        await write.tool_call_started(tool_call(agent.id, message_seq=2, index=index))
        await write.tool_call_finished(tool_result(agent.id, message_seq=2, index=index))

    first = await write.told_results(agent.id)
    second = await write.told_results(agent.id, [found.id for found in first])

    assert (len(first), len(second)) == (16, 1)
    assert {found.ref for found in [*first, *second]} == {ref(agent, index) for index in range(17)}


async def test_the_only_writer_of_a_run_tells_its_results_without_reading_them(pool: asyncpg.Pool) -> None:
    run, _, _, agent = await begun_run(pool)
    write = writer(pool, run, alone=True)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id))
    stored = await writer(pool, run).told_results(agent.id)

    await pool.execute("UPDATE mcp_interaction SET result = 'another'")

    assert await write.told_results(agent.id) == stored and [one.text for one in stored] == ["a pod"]
