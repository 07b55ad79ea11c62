"""Tests reading the outcomes of model calls by the provider in the plan of their run."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg

from integration.store.build import execution, model_call, model_result, new_run, stage, worker, writer
from tarsy.plan.model import ObjectRef
from tarsy.record.run import Failure
from tarsy.store.runs.calls import Calls
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.writer import RunWriter

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


async def begun(pool: asyncpg.Pool, namespace: str, uid: str, generation: int = 1) -> tuple[RunWriter, UUID]:
    """A run whose plan names an LLMProvider `local`."""
    made = new_run(namespace=namespace)
    ref = ObjectRef(kind="LLMProvider", namespace=namespace, name="local", uid=uid, generation=generation)
    other = ObjectRef(kind="Chain", namespace=namespace, name="local", uid="of-the-chain")
    plan = made.plan.model_copy(update={"objects": (other, ref)})
    await Runs(pool).accept(type(made)(**{**{f: getattr(made, f) for f in made.__slots__}, "plan": plan}))
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 1000)
    write, agent = writer(pool, claimed.id), execution(claimed.id)
    await write.begin_stage(stage(claimed.id))
    await write.begin_execution(agent)
    return write, agent.id


async def called(write: RunWriter, agent: UUID, number: int, failure: str | None) -> None:
    await write.model_call_started(model_call(agent, number, number))
    failed = Failure(failure, "words of a server") if failure else None
    await write.model_call_finished(model_result(agent, number, number, failure=failed))


async def test_calls_are_told_with_the_object_that_the_plan_of_their_run_names(pool: asyncpg.Pool) -> None:
    for namespace, uid, failure in (("team-a", "uid-a", "ModelTimeout"), ("team-b", "uid-b", None)):
        write, agent = await begun(pool, namespace, uid, generation=3)
        await called(write, agent, 0, failure)
        await write.model_call_started(model_call(agent, 1, 1))  # not ended
    found = await Calls(pool).ended_since(LONG_AGO)
    assert [(one.namespace, one.name, one.uid, one.generation, one.failure) for one in found] == [
        ("team-a", "local", "uid-a", 3, "ModelTimeout"),
        ("team-b", "local", "uid-b", 3, None),
    ]
    assert not any("words of a server" in str(one) for one in found)
    assert await Calls(pool).ended_since(found[-1].finished_at) == []


async def test_calls_of_every_run_of_one_plan_are_told(pool: asyncpg.Pool) -> None:
    for failure in ("ModelTimeout", None):
        write, agent = await begun(pool, "team-a", "uid-a")
        await called(write, agent, 0, failure)
    assert await pool.fetchval("SELECT count(DISTINCT plan_hash) FROM investigation") == 1
    found = await Calls(pool).ended_since(LONG_AGO)
    assert [(one.uid, one.failure) for one in found] == [("uid-a", "ModelTimeout"), ("uid-a", None)]


async def test_of_more_calls_than_are_asked_for_the_newest_are_told(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "uid-a")
    for number, failure in enumerate(("ModelTimeout", "RateLimited", None)):
        await called(write, agent, number, failure)
    calls = Calls(pool)
    assert [one.failure for one in await calls.ended_since(LONG_AGO, most=2)] == ["RateLimited", None]
    assert len(await calls.ended_since(LONG_AGO, most=3)) == len(await calls.ended_since(LONG_AGO, most=4)) == 3


async def test_an_interrupted_call_says_nothing(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "uid-a")
    await called(write, agent, 0, "ModelTimeout")
    await pool.execute("UPDATE llm_interaction SET state = 'interrupted'")
    assert await Calls(pool).ended_since(LONG_AGO) == []
