"""Tests that old records are deleted in small steps, and rows that running runs use are not."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    event,
    execution,
    model_call,
    model_result,
    new_run,
    stage,
    tool_call,
    tool_result,
    worker,
    writer,
)
from tarsy.record.messages import ToolDefinition
from tarsy.record.run import RunOutcome, State
from tarsy.store.reading.reads import Reads
from tarsy.store.retention import PURGE_LOCK, Retention
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

DAY = 86_400.0
KEPT = 30 * DAY


async def begun(pool: asyncpg.Pool, name: str = "alert-1", *, namespace: str = "team-a", tool: str = "get") -> UUID:
    """A run in the middle, with something in each layer of the record."""
    run = new_run(namespace=namespace, name=name)
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 1000)
    assert claimed.id == run.id
    write, of = writer(pool, run.id), execution(run.id)
    await write.begin_stage(stage(run.id))
    await write.begin_execution(of)
    call = model_call(of.id, new=PROMPT)
    tools = (ToolDefinition(f"kubernetes.{tool}", "Gets an object.", {"type": "object"}),)
    await write.model_call_started(type(call)(**{**fields(call), "tools": tools}), [event(of.id, "thinking")])
    await write.model_call_finished(model_result(of.id))
    await write.tool_call_started(tool_call(of.id))
    await write.tool_call_finished(tool_result(of.id))
    again = model_call(of.id, 1, 4)
    await write.model_call_started(type(call)(**{**fields(again), "superseded": {3: "a pod …"}, "tools": tools}))
    return run.id


def fields(call: object) -> dict[str, object]:
    return {name: getattr(call, name) for name in type(call).__dataclass_fields__}  # type: ignore[attr-defined]


async def ended(pool: asyncpg.Pool, run: UUID, seconds_ago: float, *, settled: bool = True) -> UUID:
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="the probe"))
    await pool.execute(
        "UPDATE investigation SET finished_at = now() - make_interval(secs => $2), settled = $3 WHERE id = $1",
        run,
        seconds_ago,
        settled,
    )
    return run


async def there(pool: asyncpg.Pool, runs: Sequence[UUID]) -> list[bool]:
    known = await Reads(pool).known(runs)
    return [run in known for run in runs]


async def filled(pool: asyncpg.Pool) -> set[str]:
    """The tables that have rows."""
    names = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'tarsy'")
    return {name for (name,) in names if await pool.fetchval(f"SELECT EXISTS (SELECT FROM {name})")}  # noqa: S608


async def test_old_record_is_deleted_with_all_that_belongs_to_it(pool: asyncpg.Pool) -> None:
    outside = {"schema_migrations", "worker", "namespace_turn"}  # whose turn it is; a claim deletes what is a day old
    await ended(pool, await begun(pool), KEPT + 1)
    layers = {"investigation_input", "stage", "execution", "message", "llm_interaction", "mcp_interaction"}
    assert await filled(pool) - outside >= layers | {"timeline_event", "superseded", "tool_set"}
    assert await Retention(pool).purge(KEPT) == {"team-a": 1}
    assert await filled(pool) == outside | {"erased_run"}


async def test_record_is_kept_to_the_second(pool: asyncpg.Pool) -> None:
    young = await ended(pool, await begun(pool, "young"), KEPT - 30)
    old = await ended(pool, await begun(pool, "old"), KEPT + 1)
    assert await Retention(pool).purge(KEPT) == {"team-a": 1}
    assert await there(pool, [young, old]) == [True, False]
    assert await Retention(pool).purge(KEPT) == {}


async def test_runs_that_have_not_ended_are_kept_however_old_they_are(pool: asyncpg.Pool) -> None:
    running = await begun(pool)
    pending = new_run(name="pending")
    await Runs(pool).accept(pending)
    await pool.execute("UPDATE investigation SET accepted_at = now() - interval '10 years'")
    assert await Retention(pool).purge(0) == {}
    assert await there(pool, [running, pending.id]) == [True, True]


async def test_record_whose_object_was_not_told_of_the_end_has_a_day_for_it(pool: asyncpg.Pool) -> None:
    fresh = await ended(pool, await begun(pool, "fresh"), DAY - 30, settled=False)
    stuck = await ended(pool, await begun(pool, "stuck"), DAY + 1, settled=False)
    await Retention(pool).purge(1)
    assert await there(pool, [fresh, stuck]) == [True, False]


async def test_only_the_namespaces_that_were_named_are_looked_at(pool: asyncpg.Pool) -> None:
    mine = await ended(pool, await begun(pool, namespace="team-a"), KEPT + 1)
    other = await ended(pool, await begun(pool, namespace="team-b"), KEPT + 1)
    retention = Retention(pool)
    assert [found.namespace for found in await retention.survey(KEPT, ["team-b"])] == ["team-b"]
    assert await retention.purge(KEPT, ["team-b", "team-c"]) == {"team-b": 1}
    assert await there(pool, [mine, other]) == [True, False]


async def test_survey_says_what_purge_deletes_and_changes_nothing(pool: asyncpg.Pool) -> None:
    for number in range(3):
        await ended(pool, await begun(pool, f"n-{number}"), KEPT + 1 + number * DAY)
    retention = Retention(pool)
    (found,) = await retention.survey(KEPT)
    assert (found.namespace, found.investigations) == ("team-a", 3)
    assert round((found.newest - found.oldest).total_seconds() / DAY) == 2
    assert await retention.survey(KEPT) == [found]
    assert await retention.purge(KEPT) == {"team-a": 3}
    assert await retention.survey(KEPT) == []


@pytest.mark.parametrize(("runs", "rows", "at_once"), [(100, 1, 1), (2, 10_000, 2), (100, 10_000, 3)])
async def test_a_transaction_deletes_few_runs_the_oldest_first(
    pool: asyncpg.Pool, runs: int, rows: int, at_once: int
) -> None:
    made = [await ended(pool, await begun(pool, f"n-{age}"), KEPT + age) for age in (3, 2, 1)]
    assert await Retention(pool).purge_some(KEPT, runs=runs, rows=rows) == {"team-a": at_once}
    assert await there(pool, made) == [False] * at_once + [True] * (3 - at_once)


async def test_tool_definitions_go_with_the_last_run_that_used_them(pool: asyncpg.Pool) -> None:
    for name, tool, age in (("one", "get", 3), ("two", "get", 2), ("three", "list", 1)):
        await ended(pool, await begun(pool, name, tool=tool), KEPT + age)
    retention, left = Retention(pool), []
    while await retention.purge_some(KEPT, runs=1):
        left.append(await pool.fetchval("SELECT count(*) FROM tool_set"))
    assert left == [2, 1, 0]


async def test_run_that_takes_up_tools_which_are_just_being_deleted_stores_them_anew(pool: asyncpg.Pool) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    await Claims(pool).claim(await worker(pool), 1, 10)
    write, of = writer(pool, run.id), execution(run.id)
    await write.begin_stage(stage(run.id))
    await write.begin_execution(of)
    await write.model_call_started(model_call(of.id, new=PROMPT))
    await pool.execute("UPDATE llm_interaction SET tool_set = NULL")  # as if of a run that is being deleted
    async with pool.acquire() as purger:
        transaction = purger.transaction()
        await transaction.start()
        await purger.execute("DELETE FROM tool_set")
        step = asyncio.create_task(writer(pool, run.id).model_call_started(model_call(of.id, 1, 2)))
        await _blocked(pool)
        await transaction.commit()
    await step
    assert await pool.fetchval("SELECT count(*) FROM tool_set t JOIN llm_interaction c ON c.tool_set = t.hash") == 1


async def test_tools_that_a_run_is_just_taking_up_stay(pool: asyncpg.Pool) -> None:
    old = await ended(pool, await begun(pool, "old"), KEPT + 1)
    live = await begun(pool, "live", tool="list")
    async with pool.acquire() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(
            "UPDATE llm_interaction SET tool_set = (SELECT c.tool_set FROM llm_interaction c JOIN execution e"
            " ON e.id = c.execution JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 LIMIT 1)"
            " WHERE execution IN (SELECT e.id FROM execution e JOIN stage s ON s.id = e.stage"
            " WHERE s.investigation = $2)",
            old,
            live,
        )
        purge = asyncio.create_task(Retention(pool).purge(KEPT))
        await _blocked(pool)
        await transaction.commit()
    assert await purge == {"team-a": 1}
    assert await there(pool, [old, live]) == [False, True]
    assert await pool.fetchval("SELECT count(*) FROM tool_set t JOIN llm_interaction c ON c.tool_set = t.hash") == 2


async def _blocked(pool: asyncpg.Pool) -> None:
    """Waits until a statement waits for another's lock."""
    async with asyncio.timeout(60):
        while not await pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            await pool.execute("SELECT pg_sleep(0.01)")


async def test_two_who_delete_take_turns_and_each_record_is_counted_once(pool: asyncpg.Pool) -> None:
    for number in range(6):
        await ended(pool, await begun(pool, f"n-{number}"), KEPT + 1)
    async with pool.acquire() as holder:
        await holder.execute("SELECT pg_advisory_lock($1)", PURGE_LOCK)
        tasks = [asyncio.create_task(Retention(pool).purge(KEPT)) for _ in range(2)]
        await asyncio.sleep(0.2)
        assert await pool.fetchval("SELECT count(*) FROM investigation") == 6
        await holder.execute("SELECT pg_advisory_unlock($1)", PURGE_LOCK)
    async with asyncio.timeout(60):
        assert sum([(await task).get("team-a", 0) for task in tasks]) == 6


async def test_recreated_namespace_does_not_read_its_predecessors_records(pool: asyncpg.Pool) -> None:
    reads, runs = Reads(pool), Runs(pool)
    before, after = new_run(name="same"), new_run(name="other")
    await runs.accept(before)
    assert (found := await reads.find("team-a", "same")) is not None and found.id == before.id
    await runs.accept(type(after)(**{**fields(after), "namespace_uid": "the-new-one"}))
    assert await reads.find("team-a", "same") is None
    assert await reads.find("team-a", "same", "the-new-one") is None
    assert (found := await reads.find("team-a", "same", "uid-of-team-a")) is not None and found.id == before.id
    assert (found := await reads.find("team-a", "other")) is not None and found.id == after.id
