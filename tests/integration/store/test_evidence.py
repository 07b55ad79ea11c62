"""What a finding may cite: closed tool calls of this run, by the name a model knows them by or by their row."""

from uuid import uuid4

import asyncpg

from integration.store.build import (
    PROMPT,
    claimed_run,
    execution,
    model_call,
    model_result,
    stage,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.finding import Evidence
from tarsy.record.ids import call_ref, idempotency_key, tool_call_id
from tarsy.record.run import ExecutionStart
from tarsy.store.writer import RunWriter


async def begun(pool: asyncpg.Pool, **of_run: str) -> tuple[RunWriter, ExecutionStart]:
    run, _ = await claimed_run(pool, **of_run)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    await write.model_call_finished(model_result(agent.id))
    return write, agent


def ref(agent: ExecutionStart, index: int = 0) -> str:
    return call_ref(idempotency_key(agent.id, 2, index))


async def test_a_closed_call_is_found_by_its_reference_and_by_its_row(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id, result="exit code 137"))
    row = tool_call_id(agent.id, 2, 0, 0)

    found = await write.evidence([ref(agent), str(row), "call_000000000000", "", "x' OR true --"])

    assert found == dict.fromkeys(
        (ref(agent), str(row)), Evidence(row, "stage-0", "triage-1", "kubernetes.get", "exit code 137")
    )
    assert await write.evidence([]) == {}


async def test_a_failed_call_is_evidence_and_an_open_or_interrupted_one_is_not(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    for index in range(3):
        await write.tool_call_started(tool_call(agent.id, index=index))
    await write.tool_call_finished(tool_result(agent.id, index=0, result="no such pod", is_error=True))
    await write.tool_call_finished(tool_result(agent.id, index=1, result="who knows", interrupted=True))

    found = await write.evidence([ref(agent, index) for index in range(3)])

    assert {name: evidence.result for name, evidence in found.items()} == {ref(agent, 0): "no such pod"}


async def test_of_several_tries_of_a_call_the_last_counts(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    for attempt in range(2):
        await write.tool_call_started(tool_call(agent.id, attempt=attempt))
    await write.tool_call_finished(tool_result(agent.id, attempt=1, result="second try"))

    found = await write.evidence([ref(agent)])

    assert found[ref(agent)].interaction == tool_call_id(agent.id, 2, 0, 1)


async def test_a_call_of_another_run_is_not_found(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool)
    await write.tool_call_started(tool_call(agent.id))
    await write.tool_call_finished(tool_result(agent.id))
    other, _ = await begun(pool, name="alert-2")

    assert await other.evidence([ref(agent), str(tool_call_id(agent.id, 2, 0, 0)), str(uuid4())]) == {}
