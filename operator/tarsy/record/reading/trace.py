"""Defines the trace as readers get it: questions, stages, agents, model calls and tool calls.

Writers use other types (`tarsy.record.run`, `tarsy.record.boundaries`): a reader wants a call and its outcome in one
object, with the names of the stage and agent that made it. Words that a newer version may have added are text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from tarsy.record.approvals.acted import StageActed
from tarsy.record.dispatch import HypothesisVerdict
from tarsy.record.judging.precedent import Precedent
from tarsy.record.judging.replay import Rung
from tarsy.record.messages import Access, ToolCall, ToolDefinition
from tarsy.record.run import DesiredState, Failure, InteractionState, ModelCallKind, StageKind, State
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class RunInput:
    """Input of a run, masked, and its author; a run that answers a question has a `question` instead of alert data."""

    alert_data: str
    question: str | None
    runbook: str | None
    author: str | None
    precedents: Sequence[Precedent] = ()


@dataclass(frozen=True, slots=True)
class QuestionTrace:
    """A question about an investigation and its outcome; `place` is its turn, from 1; `via` asked for the author."""

    id: UUID
    name: str
    place: int
    question: str
    author: str | None
    via: str | None
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
class AgentDetail:
    """An agent of a stage, with its usage; a sub-agent has a `parent`, and the id by which its dispatch is cited."""

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
    parent: UUID | None = None
    dispatched_by: str | None = None
    task: str | None = None
    hypothesis: str | None = None
    verdict: HypothesisVerdict | None = None
    iterations: int = 0


@dataclass(frozen=True, slots=True)
class StageDetail:
    """A stage with those of its agents that have begun; `acted` only of a stage of kind Action."""

    id: UUID
    index: int
    name: str
    kind: StageKind | str
    state: State
    started_at: datetime
    finished_at: datetime | None
    expected_agents: int
    parallel: str | None
    success_policy: str | None
    failure: Failure | None
    agents: Sequence[AgentDetail]
    acted: StageActed | None = None


@dataclass(frozen=True, slots=True)
class CallTrace:
    """Times and state of a call."""

    id: UUID
    execution: UUID
    state: InteractionState | str
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class ModelCallTrace(CallTrace):
    """A model call in brief; `usage` None: not known."""

    number: int
    kind: ModelCallKind | str
    provider: str
    model: str
    strategy: str
    usage: Usage | None
    cost_usd: Decimal | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class ToolCallTrace(CallTrace):
    """A tool call in brief; a model cites it by `ref`. For the other fields see `record.boundaries.ToolCallStart`."""

    server: str
    tool: str
    message_seq: int
    index: int
    attempt: int
    made: bool
    repeated_of: UUID | None
    refused: str | None
    access: Access | str
    ref: str
    rung: Rung | str | None = None
    cassette_line: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """A tool call as an agent of a stage asked for it: `server.tool` and the arguments as the model wrote them."""

    stage: str
    agent: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallOwner:
    """Stage and agent that made a call; `answer` is the name of the question when the call was made for an answer."""

    stage: str
    agent: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class ModelCallDetail:
    """A model call with its whole answer; `tarsy.store.reading.reads.Reads.sent` returns the request."""

    of: CallOwner
    call: ModelCallTrace
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

    of: CallOwner
    call: ToolCallTrace
    call_id: str
    arguments: str
    result: str | None
    idempotency_key: str
    repeatable: bool
    tries: Sequence[UUID] = field(default=())
