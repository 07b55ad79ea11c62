"""Builds what tests write: plans, runs, and the steps of an agent."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import asyncpg

from tarsy.plan.model import AgentLimits, AgentPlan, ObjectRef, Plan, ProviderPlan, StagePlan, Strategy
from tarsy.record import ids
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.run import ExecutionStart, LoopState, ModelCallKind, StageKind, StageStart
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.usage import Usage
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.held_steps import HOLD_SECONDS
from tarsy.store.runs.lifecycle import NewRun, Runs
from tarsy.store.runs.writer import RunWriter

TOOLS = (ToolDefinition("kubernetes.get", "Gets an object.", {"type": "object"}),)


def plan(
    *,
    namespace: str = "team-a",
    chain: str = "crashloop",
    seconds: float = 600.0,
    namespace_limit: int | None = None,
    chain_limit: int | None = None,
) -> Plan:
    provider = ProviderPlan(
        ref=ObjectRef(kind="LLMProvider", namespace=namespace, name="local"), type="openai", model="scripted"
    )
    agent = AgentPlan(
        name="triage", agent="kubernetes-agent", strategy=Strategy.LANGCHAIN, provider=provider, max_iterations=5
    )
    return Plan(
        namespace=namespace,
        alert_type="KubePodCrashLooping",
        chain=ObjectRef(kind="Chain", namespace=namespace, name=chain),
        stages=(StagePlan(name="investigate", agents=(agent, agent), synthesis=agent),),
        executive_summary=agent,
        limits=AgentLimits(investigation_seconds=seconds),
        namespace_limit=namespace_limit,
        chain_limit=chain_limit,
    )


def new_run(*, namespace: str = "team-a", name: str = "alert-1", priority: int = 0, **of_plan: Any) -> NewRun:
    return NewRun(
        id=uuid4(),
        namespace=namespace,
        namespace_uid=f"uid-of-{namespace}",
        name=name,
        plan=plan(namespace=namespace, **of_plan),
        alert_data='{"pod": "checkout-7d"}',
        runbook="# Look at the logs",
        author={"username": "ada"},
        priority=priority,
    )


async def worker(pool: asyncpg.Pool, ttl_seconds: float = 60.0) -> UUID:
    identity = uuid4()
    await Claims(pool).register(identity, "node-1", ttl_seconds)
    return identity


async def claimed_run(pool: asyncpg.Pool, **of_run: Any) -> tuple[UUID, UUID]:
    """A run, accepted and claimed for the first time, and its worker."""
    run = new_run(**of_run)
    await Runs(pool).accept(run)
    owner = await worker(pool)
    (claimed,) = await Claims(pool).claim(owner, 1, 1000)
    assert claimed.id == run.id
    return run.id, owner


async def expire(pool: asyncpg.Pool, identity: UUID) -> None:
    """Lets a worker's time pass."""
    await pool.execute("UPDATE worker SET expires_at = now() - interval '1 millisecond' WHERE id = $1", identity)


async def next_attempt(pool: asyncpg.Pool, run: UUID, owner: UUID) -> int:
    """Another worker claims the run from its dead owner."""
    await expire(pool, owner)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 1000)
    assert claimed.id == run
    return claimed.attempt


def writer(
    pool: asyncpg.Pool,
    run: UUID,
    attempt: int = 1,
    seconds: float = 60.0,
    hold_seconds: float = HOLD_SECONDS,
    *,
    alone: bool = False,
) -> RunWriter:
    return RunWriter(pool, run, attempt, remaining=lambda: seconds, hold_seconds=hold_seconds, alone=alone)


def stage(run: UUID, index: int = 0, agents: int = 1) -> StageStart:
    return StageStart(ids.stage_id(run, index), index, f"stage-{index}", StageKind.INVESTIGATION, agents)


def execution(run: UUID, index: int = 0, stage_index: int = 0) -> ExecutionStart:
    parent = ids.stage_id(run, stage_index)
    identity = ids.execution_id(parent, index)
    return ExecutionStart(
        identity, parent, index, "kubernetes-agent", f"triage-{index + 1}", "langchain", "local", "scripted"
    )


class BegunRun(NamedTuple):
    """A claimed run whose first agent has begun, with the writer of its first attempt."""

    run: UUID
    owner: UUID
    write: RunWriter
    agent: ExecutionStart


async def begun_run(pool: asyncpg.Pool, **of_run: Any) -> BegunRun:
    run, owner = await claimed_run(pool, **of_run)
    write, agent = writer(pool, run), execution(run)
    await write.begin_stage(stage(run))
    await write.begin_execution(agent)
    return BegunRun(run, owner, write, agent)


def model_call(
    of: UUID, number: int = 0, first_seq: int = 0, new: Sequence[Message] = (), loop: LoopState | None = None
) -> ModelCallStart:
    return ModelCallStart(
        id=ids.model_call_id(of, number),
        execution=of,
        number=number,
        kind=ModelCallKind.ITERATION,
        provider="local",
        model="scripted",
        strategy="langchain",
        first_seq=first_seq,
        new_messages=tuple(new),
        message_count=first_seq + len(new),
        tools=TOOLS,
        loop=loop or LoopState(),
    )


def model_result(
    of: UUID, number: int = 0, seq: int = 2, message: Message | None = None, **changes: Any
) -> ModelCallResult:
    return ModelCallResult(
        id=ids.model_call_id(of, number),
        execution=of,
        message_seq=seq,
        message=message or Message(Role.ASSISTANT, "let me look", (ToolCall("c1", "kubernetes.get", "{}"),)),
        usage=Usage(input_tokens=100, output_tokens=20, thinking_tokens=5, cached_tokens=40),
        duration_ms=12,
        **{"loop": LoopState(iteration=number + 1), **changes},
    )


def tool_call(of: UUID, message_seq: int = 2, index: int = 0, attempt: int = 0) -> ToolCallStart:
    return ToolCallStart(
        id=ids.tool_call_id(of, message_seq, index, attempt),
        execution=of,
        message_seq=message_seq,
        index=index,
        attempt=attempt,
        call=ToolCall("c1", "kubernetes.get", '{"kind": "Pod"}'),
        server="kubernetes",
        tool="get",
        idempotency_key=ids.idempotency_key(of, message_seq, index),
    )


def tool_result(of: UUID, message_seq: int = 2, index: int = 0, attempt: int = 0, **changes: Any) -> ToolCallResult:
    values: dict[str, Any] = {
        "id": ids.tool_call_id(of, message_seq, index, attempt),
        "execution": of,
        "message_seq": message_seq + 1 + index,
        "message": Message(Role.TOOL, "a pod", tool_call_id="c1", tool_name="kubernetes.get"),
        "result": "a pod",
        "is_error": False,
        "duration_ms": 3,
        "loop": LoopState(iteration=1, tool_calls=1),
    }
    return ToolCallResult(**(values | changes))


def event(owner: UUID, part: str = "response", status: EventStatus = EventStatus.COMPLETED, **changes: Any) -> Event:
    values: dict[str, Any] = {
        "id": ids.event_id(owner, part),
        "type": EventType.LLM_RESPONSE,
        "status": status,
        "content": part,
    }
    return Event(**(values | changes))


PROMPT = (Message(Role.SYSTEM, "you are"), Message(Role.USER, "what is wrong?"))
