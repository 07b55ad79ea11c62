"""What the trace consists of as it is read back, and how rows of Postgres become that.

These are for reading alone: what is written has types of its own (`tarsy.record.run`), because a reader wants a call
and its outcome in one, with the names of those whose call it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.ids import call_ref
from tarsy.record.messages import Access, ToolCall, ToolDefinition
from tarsy.record.run import DesiredState, Failure, InteractionState, ModelCallKind, StageKind, State
from tarsy.record.usage import Usage
from tarsy.store import rows


@dataclass(frozen=True, slots=True)
class Given:
    """What a run was given to read, masked, and who asked for it."""

    alert_data: str
    runbook: str | None
    author: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A question about an investigation, and what became of it; `place` is its turn, from 1."""

    id: UUID
    name: str
    place: int
    question: str
    author: str | None
    state: State
    desired_state: DesiredState
    revision: int
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    answer: str | None
    usage: Usage
    cost_usd: Decimal | None
    cost_complete: bool
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a stage, with what it used."""

    id: UUID
    index: int
    agent: str
    display_name: str
    strategy: str
    provider: str
    model: str
    state: State
    started_at: datetime
    finished_at: datetime | None
    failure: Failure | None
    model_calls: int
    tool_calls: int
    usage: Usage
    cost_usd: Decimal | None
    cost_complete: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage with those of its agents that have begun."""

    id: UUID
    index: int
    name: str
    kind: StageKind
    state: State
    started_at: datetime
    finished_at: datetime | None
    expected_agents: int
    parallel: str | None
    success_policy: str | None
    failure: Failure | None
    agents: Sequence[Agent]


@dataclass(frozen=True, slots=True)
class Timed:
    """When a call was made, how long it took, and where it is."""

    id: UUID
    execution: UUID
    state: InteractionState
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class ModelCall(Timed):
    """A model call in brief; `usage` None: not known."""

    number: int
    kind: ModelCallKind
    provider: str
    model: str
    strategy: str
    usage: Usage | None
    cost_usd: Decimal | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class ToolCallRow(Timed):
    """A tool call in brief; `ref` is what a model knows it by. For the others see `record.boundaries.ToolCallStart`."""

    server: str
    tool: str
    message_seq: int
    index: int
    attempt: int
    made: bool
    repeated_of: UUID | None
    refused: str | None
    access: Access
    ref: str


@dataclass(frozen=True, slots=True)
class Of:
    """Whose call it is; `answer` is the question's name when it was made for an answer."""

    stage: str
    agent: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class ModelCallDetail:
    """A model call with all that was answered; what it was sent is `tarsy.store.reads.Reads.sent`."""

    of: Of
    call: ModelCall
    answer: str | None
    tool_calls: Sequence[ToolCall]
    thinking: str | None
    tools: Sequence[ToolDefinition]
    metadata: dict[str, Any]
    estimated_tokens: int
    estimated_cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class ToolCallDetail:
    """A tool call with arguments and result; `tries` are the ids of all tries of the same call, in order."""

    of: Of
    call: ToolCallRow
    call_id: str
    arguments: str
    result: str | None
    idempotency_key: str
    repeatable: bool
    tries: Sequence[UUID] = field(default=())


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that is alive."""

    id: UUID
    host: str
    started_at: datetime
    expires_at: datetime
    schema_version: int
    runs: int


def _usage(row: asyncpg.Record, complete: bool = True) -> Usage:
    return Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        thinking_tokens=row["thinking_tokens"] or 0,
        cached_tokens=row["cached_tokens"] or 0,
        complete=complete,
    )


def answer(row: asyncpg.Record) -> Answer:
    """A question and what became of it."""
    return Answer(
        id=row["id"],
        name=row["name"],
        place=row["place"],
        question=row["question"],
        author=row["author"],
        state=State(row["state"]),
        desired_state=DesiredState(row["desired_state"]),
        revision=row["revision"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        answer=row["answer"],
        usage=_usage(row, row["usage_complete"]),
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        failure=rows.failure(row),
    )


def stage(agents: Sequence[asyncpg.Record]) -> Stage:
    """A stage, of the rows of its agents."""
    first = agents[0]
    reason = first["stage_failure_reason"]
    return Stage(
        id=first["stage"],
        index=first["stage_index"],
        name=first["stage_name"],
        kind=StageKind(first["kind"]),
        state=State(first["stage_state"]),
        started_at=first["stage_started_at"],
        finished_at=first["stage_finished_at"],
        expected_agents=first["expected_agents"],
        parallel=first["parallel"],
        success_policy=first["success_policy"],
        failure=None if reason is None else Failure(reason, first["stage_failure_message"]),
        agents=[_agent(row) for row in agents if row["id"] is not None],
    )


def _agent(row: asyncpg.Record) -> Agent:
    return Agent(
        id=row["id"],
        index=row["index"],
        agent=row["agent"],
        display_name=row["display_name"],
        strategy=row["strategy"],
        provider=row["provider"],
        model=row["model"],
        state=State(row["state"]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        failure=rows.failure(row),
        model_calls=row["model_calls"],
        tool_calls=row["tool_calls"],
        usage=_usage(row, row["usage_complete"]),
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
    )


def _timed(row: asyncpg.Record) -> dict[str, Any]:
    return {
        "id": row["id"],
        "execution": row["execution"],
        "state": InteractionState(row["state"]),
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "duration_ms": row["duration_ms"],
    }


def model_call(row: asyncpg.Record) -> ModelCall:
    """A model call in brief."""
    return ModelCall(
        **_timed(row),
        number=row["number"],
        kind=ModelCallKind(row["kind"]),
        provider=row["provider"],
        model=row["model"],
        strategy=row["strategy"],
        usage=None if row["input_tokens"] is None else _usage(row),
        cost_usd=row["cost_usd"],
        failure=rows.failure(row),
    )


def tool_call(row: asyncpg.Record) -> ToolCallRow:
    """A tool call in brief."""
    return ToolCallRow(
        **_timed(row),
        server=row["server"],
        tool=row["tool"],
        message_seq=row["message_seq"],
        index=row["index"],
        attempt=row["attempt"],
        made=row["made"],
        repeated_of=row["repeated_of"],
        refused=row["refused"],
        access=Access(row["access"]),
        ref=call_ref(row["idempotency_key"]),
    )


def of(row: asyncpg.Record) -> Of:
    """Whose call it is."""
    return Of(row["stage_name"], row["agent_name"], row["run_name"] if row["parent"] else None)
