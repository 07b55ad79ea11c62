"""Tests that steps are written once, completely and cleaned, also in parallel."""

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    begun_run,
    claimed_run,
    event,
    execution,
    model_call,
    model_result,
    stage,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import (
    ALERT_DATA,
    ExecutionOutcome,
    Failure,
    StageOutcome,
    State,
)
from tarsy.record.usage import Usage
from tarsy.store.errors import StoreError
from tarsy.store.reading.reads import Reads


async def test_every_step_written_twice_is_one_row_and_counts_once(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)

    async def all_steps() -> None:
        events = [event(agent.id, "a", execution=agent.id), event(agent.id, "a", content="last wins")]
        await write.begin_stage(stage(run))
        await write.begin_execution(agent)
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
        await write.model_call_finished(model_result(agent.id), events)
        await write.model_call_finished(model_result(agent.id), events)
        await write.tool_call_started(tool_call(agent.id), events)
        await write.tool_call_started(tool_call(agent.id), events)
        await write.tool_call_finished(tool_result(agent.id), events)
        await write.tool_call_finished(tool_result(agent.id), events)
        await write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, result="done"), events)
        await write.finish_stage(StageOutcome(agent.stage, State.COMPLETED), events)
        await write.degrade_evidence({"kubernetes": "did not start"})

    await all_steps()
    before = await _contents(pool)
    await all_steps()

    assert await _contents(pool) == before
    assert {table: len(rows) for table, rows in before.items()} == {
        "stage": 1,
        "execution": 1,
        "message": 4,
        "llm_interaction": 1,
        "mcp_interaction": 1,
        "timeline_event": 1,
    }
    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.model_calls, record.tool_calls) == (1, 1)
    assert record.usage == Usage(input_tokens=100, output_tokens=20, thinking_tokens=5, cached_tokens=40)
    assert record.evidence_missing == ("kubernetes: did not start",)


async def test_alert_that_was_cut_is_told_beside_the_servers_that_were_missing(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    recorder = writer(pool, run)
    await recorder.degrade_evidence({"kubernetes": "did not start"})
    await recorder.degrade_evidence({ALERT_DATA: "m is shown 5 of its 9 bytes"})
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.evidence_missing == ("kubernetes: did not start",)
    assert record.alert_cut == "m is shown 5 of its 9 bytes"


async def _contents(pool: asyncpg.Pool) -> dict[str, list[dict[str, object]]]:
    tables = ("stage", "execution", "message", "llm_interaction", "mcp_interaction", "timeline_event")
    found = {}
    for table in tables:
        rows = sorted(await pool.fetch(f"TABLE {table}"), key=lambda row: (row[0], row[1]))
        found[table] = [{k: v for k, v in dict(row).items() if k not in ("revision", "updated_at")} for row in rows]
    return found


async def test_revision_grows_with_every_step_and_tells_what_changed_since(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write, reads = writer(pool, run), Reads(pool)
    seen = []

    async def look() -> int:
        record = await reads.record(run)
        assert record is not None
        seen.append(record.revision)
        return record.revision

    await look()
    await write.begin_stage(stage(run))
    await look()
    await write.write_events([event(run, f"e{n}") for n in range(5)])
    after = await look()
    await write.write_events([event(run, "e2", content="changed"), event(run, "e9")])
    await look()
    assert seen == list(range(seen[0], seen[0] + 4))
    changed = await reads.timeline(run, after_revision=after)
    assert [shown.content for shown in changed] == ["changed", "e9"]
    assert {shown.revision for shown in changed} == {seen[-1]}
    assert len(await reads.timeline(run, limit=2)) == 4  # a revision is never cut in two
    assert await reads.timeline(run, after_revision=seen[-1]) == []


async def test_parallel_agents_of_one_run_write_side_by_side_without_loss(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write, agents, calls = writer(pool, run), 8, 12
    await write.begin_stage(stage(run, agents=agents))

    async def agent(index: int) -> None:
        start = execution(run, index)
        await write.begin_execution(start)
        seq = 0
        for number in range(calls):
            new = PROMPT if number == 0 else ()
            await write.model_call_started(model_call(start.id, number, seq, new))
            seq += len(new)
            await write.model_call_finished(
                model_result(start.id, number, seq),
                [event(start.id, f"{number}", execution=start.id), event(run, "shared by all")],
            )
            await write.tool_call_started(tool_call(start.id, seq))
            await write.tool_call_finished(tool_result(start.id, seq))
            seq += 2
        await write.finish_execution(ExecutionOutcome(start.id, State.COMPLETED))

    deadlocks = await pool.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for index in range(agents):
            group.create_task(agent(index))

    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.model_calls, record.tool_calls) == (agents * calls, agents * calls)
    assert record.usage.input_tokens == 100 * agents * calls
    assert record.stages[0].agents_finished == agents
    assert record.revision == 2 + 1 + agents * (4 * calls + 2)
    assert await pool.fetchval("SELECT count(*) FROM message") == agents * (2 + 2 * calls)
    await pool.execute("SELECT pg_stat_force_next_flush()")
    assert await pool.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == deadlocks


async def test_same_step_tried_twice_at_the_same_time_counts_once(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    await write.model_call_started(model_call(agent.id, 0, 0, PROMPT))
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(write.model_call_finished(model_result(agent.id), [event(agent.id)]))
    record = await Reads(pool).record(run)
    assert record is not None
    assert (record.model_calls, record.usage.input_tokens) == (1, 100)


async def test_usage_that_was_not_reported_makes_the_sum_incomplete(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    for number in (0, 1):
        await write.model_call_started(model_call(agent.id, number))
    await write.model_call_finished(model_result(agent.id, 0))
    failed = replace(
        model_result(agent.id, 1), usage=None, message=None, message_seq=None, failure=Failure("Stalled", "no token")
    )
    await write.model_call_finished(failed)
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.usage == Usage(
        input_tokens=100, output_tokens=20, thinking_tokens=5, cached_tokens=40, complete=False
    )
    assert record.model_calls == 2
    row = await pool.fetchrow("SELECT * FROM llm_interaction WHERE number = 1")
    assert (row["state"], row["failure_reason"], row["input_tokens"]) == ("failed", "Stalled", None)


async def test_tool_definitions_are_stored_once_for_all_calls_that_share_them(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    agent = execution(run)
    await writer(pool, run).begin_stage(stage(run))
    await writer(pool, run).begin_execution(agent)
    same = writer(pool, run)
    await same.model_call_started(model_call(agent.id, 0))
    await same.model_call_started(model_call(agent.id, 1))
    await writer(pool, run).model_call_started(model_call(agent.id, 2))
    await same.model_call_started(replace(model_call(agent.id, 3), tools=()))
    (stored,) = await pool.fetch("SELECT * FROM tool_set")
    assert stored["definitions"][0]["name"] == "kubernetes.get"
    used = await pool.fetch("SELECT tool_set FROM llm_interaction ORDER BY number")
    assert [row["tool_set"] for row in used] == [stored["hash"]] * 3 + [None]


async def test_first_calls_of_runs_with_the_same_tools_do_not_wait_for_each_other(pool: asyncpg.Pool) -> None:
    before, run = await begun_run(pool), await begun_run(pool, name="alert-2")
    await before.write.model_call_started(model_call(before.agent.id, new=PROMPT))
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM tool_set FOR NO KEY UPDATE")  # as versions before this one lock it
        async with asyncio.timeout(10):
            await run.write.model_call_started(model_call(run.agent.id, new=PROMPT))
    assert await pool.fetchval("SELECT count(*) FROM llm_interaction c JOIN tool_set t ON t.hash = c.tool_set") == 2


async def test_text_is_stored_without_control_characters_and_otherwise_whole(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    dirty, clean = "a\x00b\x1b[31mc\r\n\tä€😀\ud83d\x9b", "ab[31mc\n\tä€😀�"
    await write.model_call_started(model_call(agent.id, 0, 0, [Message(Role.USER, dirty)]))
    answer = Message(
        Role.ASSISTANT, dirty, (ToolCall("c\x001", "kubernetes.get", dirty),), provider_state={dirty: [dirty, 1, None]}
    )
    await write.model_call_finished(
        model_result(agent.id, 0, 1, answer, thinking=dirty, response_metadata={"k": dirty}),
        [event(agent.id, content=dirty, metadata={"k": {"n": dirty}})],
    )
    await write.tool_call_started(tool_call(agent.id, 1))
    await write.tool_call_finished(tool_result(agent.id, 1, result=dirty, message=Message(Role.TOOL, dirty)))
    await write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, result=dirty))

    left = await write.begin_execution(agent)
    user, assistant, tool = left.messages
    assert (user.content, assistant.content, tool.content, left.result) == (clean,) * 4
    assert assistant.tool_calls == (ToolCall("c1", "kubernetes.get", clean),)
    assert assistant.provider_state == {clean: [clean, 1, None]}
    (shown,) = await Reads(pool).timeline(run)
    assert (shown.content, shown.metadata) == (clean, {"k": {"n": clean}})
    assert await pool.fetchval("SELECT result FROM mcp_interaction") == clean


async def test_messages_of_a_mebibyte_are_stored_whole(pool: asyncpg.Pool) -> None:
    run, _, write, agent = await begun_run(pool)
    large = "0123456789abcde\n" * 65536
    await write.model_call_started(model_call(agent.id, 0, 0, [Message(Role.USER, large)]))
    await write.model_call_finished(model_result(agent.id, 0, 1), [event(agent.id, content=large)])
    await write.tool_call_started(tool_call(agent.id, 1))
    await write.tool_call_finished(tool_result(agent.id, 1, result=large, message=Message(Role.TOOL, large)))
    left = await write.begin_execution(agent)
    assert (left.messages[0].content, left.messages[2].content) == (large, large)
    (shown,) = await Reads(pool).timeline(run)
    assert shown.content == large


async def test_step_of_something_never_begun_is_refused_with_its_place(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write, agent = writer(pool, run), execution(run)
    with pytest.raises(StoreError, match=str(agent.stage)):
        await write.finish_stage(StageOutcome(agent.stage, State.COMPLETED))
    with pytest.raises(StoreError, match="model call"):
        await write.model_call_finished(model_result(agent.id))
    with pytest.raises(StoreError, match="model call 0"):
        await write.model_call_started(model_call(agent.id))


async def test_each_step_tells_that_the_run_changed_after_its_commit(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    told = []
    write = type(writer(pool, run))(pool, run, 1, remaining=lambda: 10, notify=lambda *wake: told.append(wake))
    await write.begin_stage(stage(run))
    assert told == [("tarsy_run", str(run))]
