"""SIGKILL of a worker in what lies beside an investigation's own steps: summaries, compaction, answers to questions.

As in `test_points.py` there is a run for each, and one kill for all of them: each round, every run is brought to its
next point, all stand still there, and the worker that runs them is killed.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import yaml

from chaos.exactness import assert_record_is_whole, turns
from chaos.fleet import Fleet
from chaos.points import Gate, Points
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.once("the API takes no part in what is shown"),
]


@dataclass(frozen=True, slots=True)
class Point:
    """Where the worker dies: at a write that stands still, which is then committed or not, or in an outside call."""

    name: str
    gate: Gate | None = None
    commit: bool = False
    tool: bool = False


UNSENT = Point("before a model call, written and not sent", Gate.MODEL_CALL_STARTED, commit=True)
UNWRITTEN = Point("answered by the model, unwritten", Gate.MODEL_CALL_FINISHED)
WRITTEN = Point("answered by the model, written", Gate.MODEL_CALL_FINISHED, commit=True)
STREAM = Point("in a model's stream")
UNTOLD = Point("answered by the tool, unwritten", Gate.TOOL_CALL_FINISHED)
TOLD = Point("answered by the tool, written", Gate.TOOL_CALL_FINISHED, commit=True)
CALLING = Point("before a tool call, unwritten with the answer that asks for it", Gate.TOOL_CALL_STARTED)
ENDING = Point("concluded, unwritten", Gate.END)

SUMMARIES, COMPACTION, ANSWERS = "summaries", "compaction", "answers"
SUMMARIZER = f"{SUMMARIES}:summarization"
POINTS = {
    # The result is on record from the first of the calls for a summary on; so is the summary from `WRITTEN` on.
    SUMMARIES: [
        CALLING,
        Point("answered by the tool, no summary begun", Gate.MODEL_CALL_STARTED),
        UNSENT,
        STREAM,
        UNWRITTEN,
        WRITTEN,
        UNTOLD,
        TOLD,
    ],
    COMPACTION: [
        CALLING,
        Point("compacted, unwritten with the tool's answer", Gate.MODEL_CALL_STARTED),
        Point("compacted, written and not sent", Gate.MODEL_CALL_STARTED, commit=True),
        STREAM,
        UNWRITTEN,
        WRITTEN,
    ],
    ANSWERS: [
        Point("claimed, nothing written", Gate.BEGIN),
        UNSENT,
        STREAM,
        UNWRITTEN,
        WRITTEN,
        Point("in a tool call", tool=True),
        UNTOLD,
        TOLD,
        Point("answered, unwritten", Gate.MODEL_CALL_FINISHED),
        ENDING,
    ],
}
LOST = {SUMMARIES: 5, COMPACTION: 4, ANSWERS: 5}
"""Model calls that were written as begun and never as ended."""
UNSENT_MODEL_CALLS = {SUMMARIES: 2, COMPACTION: 1, ANSWERS: 2}
"""Model calls of these that were never sent; `TOLD` has one more than `UNSENT` where it is reached."""
UNSENT_TOOL_CALLS = {SUMMARIES: 0, COMPACTION: 0, ANSWERS: 1}
"""Tool calls that were written with the answer that asks for them (`WRITTEN`), and not sent."""
HANG = {"hang": {"after": 2, "times": 1}}
LONG = "200"
"""Lines of a result: more than is told whole where results are summarized."""
ENORMOUS = "4000"
"""Lines of a result that fills a window."""
TOLD_ANSWER = "The disk is still full, as far as I see."
SCRIPT = {
    "agents": {
        SUMMARIES: [
            {"text": "I look.", "calls": [{"name": "short.look", "arguments": {"what": LONG}}]},
            {"text": json.loads(ANSWER)},
        ],
        SUMMARIZER: [{"text": "Two hundred lines, one like the other.", **HANG}],
        COMPACTION: [
            {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": ENORMOUS}}]},
            {"text": json.loads(ANSWER), **HANG},
        ],
        "asked": [{"text": json.loads(ANSWER)}],
        ANSWERS: [
            {"text": "I wait for it.", "calls": [{"name": "tools.wait", "arguments": {"what": "now"}}], **HANG},
            {"text": TOLD_ANSWER},
        ],
    }
}


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install(tuple(POINTS))
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


async def build(tenant: Tenant) -> None:
    """A chain for each, named after it; the agent that is tried is named after it too."""
    await tenant.use_model(yaml.safe_dump(SCRIPT))
    small = (await tenant.get("model", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "small", {**small, "contextWindow": 8192})
    await tenant.use_tools(tools={"readOnly": ["look", "wait"]}, summarization={"enabled": False})
    short = {"thresholdTokens": 100, "summaryTokens": 50}
    await tenant.use_tools("short", tools={"readOnly": ["look"]}, summarization=short)
    await tenant.use_agent(SUMMARIES, "short")
    await tenant.use_agent(COMPACTION, "tools")
    await tenant.use_agent("asked")
    await tenant.use_agent(ANSWERS, "tools")
    await tenant.use_chain([SUMMARIES], name=SUMMARIES)
    await tenant.use_chain([COMPACTION], name=COMPACTION, llmProvider="small")
    await tenant.use_chain(["asked"], name=ANSWERS, chat={"agent": ANSWERS})


async def test_kill_in_summaries_compaction_and_answers_repeats_no_finished_step(
    bare_tenant: Tenant, points: Points, fleet: Fleet
) -> None:
    tenant, rounds, covered = bare_tenant, max(map(len, POINTS.values())), 0
    runs: dict[str, UUID] = {}
    await build(tenant)
    fleet.controller()
    about = await tenant.investigate(ANSWERS, chain=ANSWERS)
    worker = await fleet.successor()
    await tenant.finished(ANSWERS)
    await worker.kill()

    async def reached(name: str, point: Point) -> bool:
        if point.gate is not None:
            return bool(await points.waiting(name, point.gate))
        if point.tool:
            return tenant.tool_calls("wait") > 0
        streaming = {SUMMARIES: (SUMMARIZER, 0), COMPACTION: (COMPACTION, 1), ANSWERS: (ANSWERS, 0)}[name]
        return any((r.agent, r.turn) == streaming and r.chunks >= 2 for r in tenant.model.journal.requests)

    for number in range(rounds):
        # All of them come to their last point in the last round: none goes on unwatched while others are killed.
        aims = {name: todo[number - rounds] for name, todo in POINTS.items() if rounds - number <= len(todo)}
        for name, point in aims.items():
            if name not in runs:
                runs[name] = await begin(tenant, name)
            if point.gate is not None:
                await points.close(name, point.gate)
        worker = await fleet.successor()
        for name, point in aims.items():
            await until(f"{name} is at: {point.name}", lambda n=name, p=point: reached(n, p))  # type: ignore[misc]
        await worker.kill()
        for name, point in aims.items():
            if point.gate is not None:
                await points.let_go(name, point.gate, commit=point.commit)
            elif point.tool:
                (tenant.folder / "gate").touch()
        covered += len(aims)
    await fleet.successor()

    exact, repeated = 0, 0
    for name in (SUMMARIES, COMPACTION):
        inv = await tenant.finished(name)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        exact += inv["status"]["finding"]["summary"] == SUMMARY
    message = await answered(tenant)
    exact += message["status"]["answer"] == TOLD_ANSWER
    attempts = {name: (await tenant.record(run)).attempt for name, run in runs.items()}
    assert attempts == {name: len(todo) + 1 for name, todo in POINTS.items()}
    for name, run in runs.items():
        await assert_record_is_whole(tenant, run, agents={name} - {COMPACTION})
        repeated += await repeated_steps(tenant, run, name)
    assert (await tenant.record(about)).attempt == 1
    await assert_sent_as_recorded(tenant, runs[COMPACTION])
    print(
        f"\nkills {rounds}, points {covered}, repeated finished steps {repeated}, exact answers {exact} of {len(runs)}"
    )
    assert (repeated, exact) == (0, len(runs))


async def begin(tenant: Tenant, name: str) -> UUID:
    """The investigation, or the question."""
    if name != ANSWERS:
        return await tenant.investigate(name, chain=name)
    spec = {"investigationRef": {"name": ANSWERS}, "question": "Is it still full?"}
    return UUID((await tenant.put("ChatMessage", ANSWERS, spec))["metadata"]["uid"])


async def answered(tenant: Tenant) -> dict[str, Any]:
    """The question once it has its answer."""

    async def look() -> Any:
        message = await tenant.get(ANSWERS, "ChatMessage")
        return message if condition(message, "Finished") == "True" else None

    found: dict[str, Any] = await until("the question is answered", look)
    return found


async def repeated_steps(tenant: Tenant, run: UUID, name: str) -> int:
    """Requests and tool calls that are not explained by the rows of the run."""
    agents = {name, SUMMARIZER} if name == SUMMARIES else {name}
    asked = sum(times for (agent, _), times in turns(tenant).items() if agent in agents)
    rows = await tenant.model_calls(run)
    assert [row["state"] for row in rows].count("interrupted") == LOST[name]
    assert [row["state"] for row in rows].count("completed") == (3 if name == SUMMARIES else 2)
    calls = await tenant.mcp_calls(run)
    keys = {row["idempotency_key"] for row in calls}
    made = sum(line.split()[1] in keys for line in (tenant.folder / "calls").read_text().splitlines())
    return asked - (len(rows) - UNSENT_MODEL_CALLS[name]) + made - (len(calls) - UNSENT_TOOL_CALLS[name])


async def assert_sent_as_recorded(tenant: Tenant, run: UUID) -> None:
    """A conversation was compacted once, and each request is what the record says was sent."""
    sent = []
    for row in await tenant.model_calls(run):
        sent.append([(message.role.value, message.content) for message in await tenant.reads.sent(row["id"])])
    for request in tenant.model.journal.requests:
        if request.agent == COMPACTION:
            assert [(m["role"], m.get("content") or "") for m in request.messages] in sent
    calls = await tenant.rows(
        "SELECT DISTINCT p.call FROM superseded p JOIN execution e ON e.id = p.execution "
        "JOIN stage s ON s.id = e.stage WHERE s.investigation = $1",
        run,
    )
    assert len(calls) == 1, "what was compacted stays as it was compacted"
