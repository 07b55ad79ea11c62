"""Tests the sums of `tarsy usage` by each dimension, with unknown usage apart from zero."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import PROMPT, begun_run, execution, model_call, model_result
from tarsy.record.messages import Message, Role
from tarsy.record.reading.usage_report import UsageBy
from tarsy.record.run import Failure
from tarsy.record.usage import Usage
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.writer import RunWriter


async def begun(pool: asyncpg.Pool, namespace: str, chain: str) -> tuple[RunWriter, UUID]:
    _, _, write, agent = await begun_run(pool, namespace=namespace, name=f"{namespace}-{chain}", chain=chain)
    return write, agent.id


async def called(write: RunWriter, agent: UUID, number: int, model: str, cost: str | None) -> None:
    await write.model_call_started(replace(model_call(agent, number, number, PROMPT[:1]), model=model))
    await write.model_call_finished(
        model_result(agent, number, number + 1, cost_usd=None if cost is None else Decimal(cost))
    )


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", {"big": 2, "small": 1}),
        ("provider", {"local": 3}),
        ("chain", {"team-a/disk": 2, "team-b/pods": 1}),
        ("alertType", {"KubePodCrashLooping": 3}),
        ("namespace", {"team-a": 2, "team-b": 1}),
        ("author", {"ada": 3}),
    ],
)
async def test_usage_is_summed_by_what_is_asked_for(pool: asyncpg.Pool, by: UsageBy, names: dict[str, int]) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "big", "1.5")
    await called(write, agent, 1, "small", "0.25")
    write, agent = await begun(pool, "team-b", "pods")
    await called(write, agent, 0, "big", "1")
    found = await Reads(pool).usage(3600, by)
    assert {item.name: item.calls for item in found} == names
    assert sum(item.cost_usd or 0 for item in found) == Decimal("2.75")
    assert sum(item.input_tokens for item in found) == 300
    assert [item.cost_usd for item in found] == sorted((item.cost_usd for item in found), reverse=True)


async def test_namespace_that_was_created_anew_is_told_from_the_one_before(pool: asyncpg.Pool) -> None:
    for number, uid in enumerate(("old", "new")):
        write, agent = await begun(pool, "team-a", f"chain-{number}")
        await called(write, agent, 0, "big", str(2 - number))
        of = f"chain-{number}"
        await pool.execute("UPDATE investigation SET namespace_uid = $1 WHERE chain = $2", uid, of)
    found = await Reads(pool).usage(3600, "namespace")
    assert [(item.name, item.cost_usd) for item in found] == [("team-a (uid old)", 2), ("team-a", 1)]
    (whole,) = await Reads(pool).usage(3600, "model")
    assert whole.investigations == 2


async def test_what_is_not_known_is_counted_and_not_summed_as_zero(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "big", None)
    await write.model_call_started(replace(model_call(agent, 1, 2), model="big"))
    lost = replace(model_result(agent, 1, 3), usage=None, message=None, message_seq=None, estimated_tokens=70)
    await write.model_call_finished(replace(lost, failure=Failure("PartialStream", "cut")))
    await write.model_call_started(replace(model_call(agent, 2, 2), model="big"))
    refused = replace(model_result(agent, 2, 3), usage=None, message=None, message_seq=None)
    await write.model_call_finished(replace(refused, failure=Failure("CredentialsRejected", "no")))
    (found,) = await Reads(pool).usage(3600, "model")
    assert (found.calls, found.cost_usd) == (3, None)
    assert (found.calls_of_unknown_usage, found.calls_of_unknown_cost) == (1, 2)


@pytest.mark.parametrize(
    ("usage", "interrupted"), [(Usage(input_tokens=9, output_tokens=1), 1), (None, 1), (Usage(), 0)]
)
async def test_a_call_that_was_cut_is_counted_as_interrupted_if_it_was_sent(
    pool: asyncpg.Pool, usage: Usage | None, interrupted: int
) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await write.model_call_started(model_call(agent, 0, 0, PROMPT[:1]))
    told = Message(Role.USER, "cut off")
    cut = replace(model_result(agent, 0, 1, told), usage=usage, interrupted=True)
    for _ in range(2):  # a step that is written twice counts once
        await write.model_call_finished(replace(cut, failure=Failure("ConcludeRequested", "cut")))
    (run,) = await pool.fetch("SELECT * FROM investigation")
    assert (run["model_calls"], run["interrupted_model_calls"]) == (0, interrupted)
    assert run["usage_complete"] is (usage is not None)
    (call,) = await pool.fetch("SELECT * FROM llm_interaction")
    assert (call["state"], call["message_seq"], call["failure_reason"]) == ("interrupted", None, "ConcludeRequested")
    record = await write.begin_execution(replace(execution(run["id"]), id=agent))
    assert record.messages[-1] == told, "an attempt that resumes sends the same"


async def test_calls_from_before_the_span_do_not_count_and_those_under_way_neither(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "big", "1")
    await pool.execute("UPDATE llm_interaction SET started_at = now() - interval '2 hours'")
    await write.model_call_started(model_call(agent, 1, 2))
    assert await Reads(pool).usage(3600, "model") == []
    assert [item.calls for item in await Reads(pool).usage(3 * 3600, "model")] == [1]
