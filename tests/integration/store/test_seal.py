"""Tests that a change of a sealed record is found, whatever row it is of, and that an unchanged one is sound."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import (
    PROMPT,
    begun_run,
    event,
    model_call,
    model_result,
    new_run,
    next_attempt,
    plan,
    tool_call,
    tool_result,
    writer,
)
from tarsy.record.boundaries import OfferedTools
from tarsy.record.dispatch import HypothesisVerdict, VerdictValue
from tarsy.record.finding import Claim
from tarsy.record.history import BudgetExceeded, BudgetLimit
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.reading.seal import FlawKind, PublishedSeal
from tarsy.record.run import DesiredState, ExecutionOutcome, RunOutcome, StageOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.reading.reads import Reads
from tarsy.store.retention import Retention
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.sealing.sealed_record import SealedRecord

TOOL = ToolDefinition("kubernetes.get", "Gets an object.", {"type": "object"})
STATE = {"signature": "s", "small": 1e-7, "large": 1e16, "minus": -0.0, "control": "a\x07b", "deep": [{"x": 1.5}]}


async def whole_run(pool: asyncpg.Pool) -> UUID:
    """A finished run with something in every table of the record, a second attempt, and a question."""
    run, owner, write, agent = await begun_run(pool)
    offered = OfferedTools(agent.id, (TOOL,), {"kubernetes": "read \x00 first"})
    await write.pin_tools({"kubernetes": {"get": "sha256:1"}}, offered)
    await write.degrade_evidence({"loki": "it does not answer"})
    await write.budget_exceeded(BudgetExceeded(BudgetLimit.TOKENS, "all tokens are used"))
    message = Message(Role.ASSISTANT, "let me look", (ToolCall("c1", "kubernetes.get", "{}"),), provider_state=STATE)
    await write.model_call_started(
        model_call(agent.id, new=PROMPT), [event(agent.id, "thinking", EventStatus.STREAMING)]
    )
    await write.model_call_finished(
        model_result(agent.id, message=message, response_metadata=STATE), [event(agent.id, "thinking")]
    )
    await write.tool_call_started(tool_call(agent.id))
    await write.model_call_started(model_call(agent.id, 1, 3), [event(agent.id, "open", EventStatus.STREAMING)])
    attempt = await next_attempt(pool, run, owner)
    write = writer(pool, run, attempt)
    await write.begin_execution(agent)
    await write.tool_call_started(tool_call(agent.id, attempt=1))
    marks = EvidenceMarks(Integrity.A, ((0, 8),))
    await write.tool_call_finished(replace(tool_result(agent.id, attempt=1), marks=marks))
    again = model_call(agent.id, 2, 4)
    await write.model_call_started(
        type(again)(**{**{n: getattr(again, n) for n in again.__slots__}, "superseded": {3: "a pod …"}})
    )
    await write.model_call_finished(model_result(agent.id, 2, 4, Message(Role.ASSISTANT, "the probe")))
    await write.finish_execution(ExecutionOutcome(agent.id, State.COMPLETED, "the probe"), [event(agent.id, "final")])
    await write.finish_stage(StageOutcome(agent.stage, State.COMPLETED))
    await Runs(pool).set_desired_state(run, DesiredState.CONCLUDED)
    await Runs(pool).finish(run, attempt, RunOutcome(State.COMPLETED, final_analysis="the probe"))
    await Questions(pool).ask(run, [NewQuestion(uuid4(), "why-1", "why?", plan(), {"username": "bob"})])
    return run


async def flaws(pool: asyncpg.Pool, run: UUID, published: PublishedSeal | None = None) -> list[tuple[FlawKind, str]]:
    reports = await SealedRecord(pool).check(run, {} if published is None else {run: published})
    return [(flaw.kind, flaw.where.split("/")[0]) for report in reports for flaw in report.flaws]


async def test_an_unchanged_record_is_sound(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    of_run, of_question = await SealedRecord(pool).check(run)
    assert (of_run.flaws, of_question.flaws) == ([], [])
    assert (of_run.question, of_question.question) == (False, True)
    assert of_run.left_open == 3  # the tool call and the model call of the dead attempt, and its streaming event
    record = await Reads(pool).record(run)
    assert record is not None
    assert of_run.head == record.seal


@pytest.mark.parametrize("column", ["task", "hypothesis", "verdict", "parent", "dispatched_by"])
async def test_a_change_of_a_dispatch_or_a_verdict_is_found(pool: asyncpg.Pool, column: str) -> None:
    run, _, write, agent = await begun_run(pool)
    child = replace(
        agent, id=uuid4(), index=101, parent=agent.id, dispatched_by=uuid4(), task="look", hypothesis="it is full"
    )
    verdict = HypothesisVerdict(verdict=VerdictValue.SUPPORTED, stated="Supported", claims=(Claim(text="full"),))
    await write.begin_execution(child)
    await write.finish_execution(ExecutionOutcome(child.id, State.COMPLETED, "full", verdict=verdict))
    assert await flaws(pool, run) == []

    values = {"verdict": """'{"verdict": "Refuted"}'""", "task": "'x'", "hypothesis": "'x'"}
    changed = values.get(column, "gen_random_uuid()")
    await pool.execute(f"UPDATE execution SET {column} = {changed} WHERE id = $1", child.id)  # noqa: S608

    assert await flaws(pool, run) == [(FlawKind.CHANGED, "execution")]


TEXTS: Mapping[str, tuple[str, ...]] = {
    "investigation": ("name", "chain", "plan_hash", "final_analysis", "budget_message"),
    "investigation_input": ("alert_data", "runbook", "plan"),
    "stage": ("name", "kind", "state"),
    "execution": ("agent", "model", "state", "result"),
    "message": ("role", "content", "tool_call_id"),
    "superseded": ("content",),
    "llm_interaction": ("provider", "model", "thinking", "state"),
    "mcp_interaction": ("server", "tool", "arguments", "result", "state", "access"),
    "timeline_event": ("type", "status", "content"),
}
LATER = "interval '1 microsecond'"
OTHERS: Sequence[tuple[str, str, str]] = (
    ("investigation", "finding", "'{}'"),
    ("investigation", "evidence_missing", """'{"loki": "it was slow"}'"""),
    ("investigation", "evidence_missing", "'{}'"),
    ("investigation", "accepted_at", f"accepted_at - {LATER}"),
    ("investigation", "seal", "sha256(seal)"),
    ("investigation_input", "author", """'{"username": "eve"}'"""),
    ("stage", "finished_at", f"finished_at + {LATER}"),
    ("execution", "started_at", f"started_at + {LATER}"),
    ("execution", "instructions", "NULL"),
    ("message", "provider_state", """'{"signature": "t"}'"""),
    ("message", "created_at", f"created_at + {LATER}"),
    ("llm_interaction", "input_tokens", "1"),
    ("llm_interaction", "cost_usd", "0.01"),
    ("mcp_interaction", "made", "NOT made"),
    ("mcp_interaction", "integrity", "NULL"),
    ("mcp_interaction", "integrity", """'{"class": "K", "state": false, "control": []}'"""),
    ("tool_pin", "tools", """'{"get": "sha256:2"}'"""),
    ("tool_set", "definitions", "'[]'"),
    ("timeline_event", "metadata", """'{"reason": "Other"}'"""),
    ("timeline_event", "updated_at", f"updated_at + {LATER}"),
    ("sealed_step", "at", f"at + {LATER}"),
    ("sealed_step", "head", "sha256(head)"),
    ("sealed_step", "keys", "keys[2:]"),
    ("sealed_step", "digests", "array_fill(sha256('x'), ARRAY[cardinality(digests)])"),
)
KEYS = {
    "investigation_input": "investigation",
    "message": "execution, seq",
    "superseded": "execution, seq, call",
    "tool_pin": "investigation, server",
    "tool_set": "hash",
    "sealed_step": "investigation, revision",
}
"""Primary keys that are not `id`."""


@pytest.fixture
async def kept(pool: asyncpg.Pool) -> tuple[UUID, Sequence[str]]:
    """A sound run, and the names of the tables of which a copy is kept."""
    run = await whole_run(pool)
    tables = sorted({*TEXTS, *(table for table, *_ in OTHERS)})
    await pool.execute("CREATE SCHEMA kept")
    for table in tables:
        await pool.execute(f"CREATE TABLE kept.{table} AS SELECT * FROM {table}")  # noqa: S608
    return run, tables


async def test_a_change_of_any_row_is_found(pool: asyncpg.Pool, kept: tuple[UUID, Sequence[str]]) -> None:
    run, _ = kept
    changes = [(table, name, f"coalesce({name}, '') || 'x'") for table, names in TEXTS.items() for name in names]
    unseen = []
    for table, column, value in (*changes, *OTHERS):
        await pool.execute(f"UPDATE {table} SET {column} = {value}")  # noqa: S608
        if not await flaws(pool, run):
            unseen.append((table, column))
        key = KEYS.get(table, "id")
        same = " AND ".join(f"t.{part.strip()} = k.{part.strip()}" for part in key.split(","))
        await pool.execute(f"UPDATE {table} t SET {column} = k.{column} FROM kept.{table} k WHERE {same}")  # noqa: S608
    assert unseen == []
    assert await flaws(pool, run) == []


DELETED = ("timeline_event", "message", "mcp_interaction", "llm_interaction", "superseded", "tool_pin", "stage")


@pytest.mark.parametrize("table", DELETED)
async def test_a_missing_row_is_found(pool: asyncpg.Pool, table: str) -> None:
    run = await whole_run(pool)
    column = KEYS.get(table, "id")
    of_open = " WHERE state = 'completed'" if table.endswith("_interaction") else ""
    row = f"SELECT ctid FROM {table}{of_open} ORDER BY {column} LIMIT 1"  # noqa: S608
    if table == "timeline_event":
        row = "SELECT ctid FROM timeline_event WHERE status = 'completed' ORDER BY seq LIMIT 1"
    assert await pool.execute(f"DELETE FROM {table} WHERE ctid = ({row})") == "DELETE 1"  # noqa: S608
    assert FlawKind.MISSING in {kind for kind, _ in await flaws(pool, run)}


async def test_an_added_row_is_found(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    await pool.execute(
        "INSERT INTO timeline_event (id, investigation, seq, revision, type, status, content, metadata)"
        " VALUES (gen_random_uuid(), $1, 1000, 1, 'final_analysis', 'completed', 'all is well', '{}')",
        run,
    )
    assert await flaws(pool, run) == [(FlawKind.NOT_SEALED, "event")]


async def test_a_missing_step_is_found(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    await pool.execute(
        "DELETE FROM sealed_step WHERE investigation = $1 AND revision = ("
        " SELECT min(revision) + 2 FROM sealed_step WHERE investigation = $1)",
        run,
    )
    assert FlawKind.BROKEN in {kind for kind, _ in await flaws(pool, run)}


async def test_a_cut_tail_is_found_by_the_published_head_alone(pool: asyncpg.Pool) -> None:
    """Whoever deletes the last steps can also write the head of the run: only the status of the object knows better."""
    run = await whole_run(pool)
    (report, _) = await SealedRecord(pool).check(run)
    published = PublishedSeal(report.revision, report.head)
    assert await flaws(pool, run, published) == []
    await pool.execute("DELETE FROM sealed_step WHERE investigation = $1 AND revision = $2", run, report.revision)
    await pool.execute(
        "UPDATE investigation SET seal = (SELECT head FROM sealed_step WHERE investigation = $1"
        " ORDER BY revision DESC LIMIT 1), state = 'running', final_analysis = NULL WHERE id = $1",
        run,
    )
    assert await flaws(pool, run) == []
    assert await flaws(pool, run, published) == [(FlawKind.CUT, "chain")]


async def test_steps_after_the_published_head_are_counted(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    steps = await pool.fetch("SELECT revision, head FROM sealed_step WHERE investigation = $1 ORDER BY revision", run)
    early = PublishedSeal(steps[2]["revision"], steps[2]["head"].hex())
    (report, _) = await SealedRecord(pool).check(run, {run: early})
    assert (report.flaws, report.unpublished) == ([], len(steps) - 3)


async def test_a_record_of_an_older_version_is_told_as_not_sealed(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    await pool.execute("DELETE FROM sealed_step WHERE investigation = $1", run)
    await pool.execute("UPDATE investigation SET seal = NULL WHERE id = $1", run)
    (report, _) = await SealedRecord(pool).check(run)
    assert report.steps == 0
    assert {flaw.kind for flaw in report.flaws} == {FlawKind.NOT_SEALED}


async def test_a_deleted_record_leaves_its_head(pool: asyncpg.Pool) -> None:
    run = await whole_run(pool)
    (report, _) = await SealedRecord(pool).check(run)
    await pool.execute(
        "UPDATE investigation SET state = 'completed', settled = true, finished_at = now() - interval '2 days'"
    )
    await Retention(pool).purge(86_400.0)
    assert await SealedRecord(pool).check(run) == []
    erased = await SealedRecord(pool).erased("team-a", "alert-1", "uid-of-team-a")
    assert erased is not None
    assert (erased.run, erased.head) == (run, report.head)


async def test_what_a_deletion_left_is_forgotten_after_a_year(pool: asyncpg.Pool) -> None:
    await pool.executemany(
        "INSERT INTO erased_run (investigation, namespace, namespace_uid, name, erased_at)"
        " VALUES (gen_random_uuid(), 'team-a', 'uid-of-team-a', $1, now() - $2::interval)",
        [("young", timedelta(days=364)), ("old", timedelta(days=367))],
    )
    await Retention(pool).purge(86_400.0)
    assert await SealedRecord(pool).erased("team-a", "young", "uid-of-team-a") is not None
    assert await SealedRecord(pool).erased("team-a", "old", "uid-of-team-a") is None


async def test_a_run_that_ends_before_it_starts_is_sound(pool: asyncpg.Pool) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    await Runs(pool).set_desired_state(run.id, DesiredState.CANCELLED)
    (report,) = await SealedRecord(pool).check(run.id)
    assert (report.flaws, report.steps) == ([], 2)
