"""Defines investigations, stages and agent executions, and the state that a resumed attempt reads.

The engine begins a row with a `...Start` and closes it with an `...Outcome`; readers get a `...Record`. Rows of the
trace are written at the boundaries (`tarsy.record.boundaries`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from tarsy.record.approvals.acted import StageActed
from tarsy.record.dispatch import Dispatch, HypothesisVerdict
from tarsy.record.finding import Finding
from tarsy.record.history import BudgetExceeded
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.replay import ReplayReport
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.messages import Message
from tarsy.record.usage import Usage


class LeaseLost(Exception):
    """The attempt no longer holds the lease of its run: it must stop without writing anything."""


class State(StrEnum):
    """State of an investigation, a stage or an execution; only an investigation and an answer can be parked."""

    PENDING = "pending"
    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"

    @property
    def finished(self) -> bool:
        """Whether the state is terminal."""
        return self not in (State.PENDING, State.RUNNING, State.PARKED)


class DesiredState(StrEnum):
    """State that the owner of an investigation requests; it only moves down this list."""

    RUNNING = "Running"
    CONCLUDED = "Concluded"
    CANCELLED = "Cancelled"


class StageKind(StrEnum):
    """Purpose of a stage; `escalation`: the second attempt of the stage before it."""

    INVESTIGATION = "investigation"
    ESCALATION = "escalation"
    SYNTHESIS = "synthesis"
    EXECUTIVE_SUMMARY = "executive_summary"
    CHAT = "chat"
    ACTION = "action"


class InteractionState(StrEnum):
    """State of a model call or a tool call; `started` rows of a dead attempt become `interrupted`."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class ModelCallKind(StrEnum):
    """Purpose of a model call."""

    ITERATION = "iteration"
    FORCED_CONCLUSION = "forced_conclusion"
    SYNTHESIS = "synthesis"
    EXECUTIVE_SUMMARY = "executive_summary"
    FINDING_REPAIR = "finding_repair"
    SUMMARIZATION = "summarization"
    SIMULATION = "simulation"
    EXTRACTION = "extraction"


@dataclass(frozen=True, slots=True)
class Failure:
    """Cause of a failure: a CamelCase `reason` for programs and a sentence for people, both without secrets."""

    reason: str
    message: str


class LoopState(BaseModel):
    """State of an agent loop beyond its conversation, which a resumed attempt needs.

    `final_answer` is there once its finding was sent back to be repaired. `tokens_per_byte` is what the provider last
    counted of a request, `last_output` the tokens of its answer; `window` is the size to which a provider's refusals
    of a conversation that was too long, `refusals` in a row, have brought down the model's window. `fallback` is the
    place, from 1, of the entry of the agent's fallback list that it is on (0: its own provider), and `tried` what the
    providers before it said. `masked_calls` are the places of those calls of the last answer that had a secret taken
    out of their arguments: only the attempt that got the answer can make them. `sent_back` are the reasons for which
    a final answer was sent back to its model, each once. `partial` is what had come of the last answer when it was cut
    to conclude, and `cut_by_length` whether the last answer reached its model's output limit. `tool_call_format` is the
    format in which the model was last asked to write its tool calls (None: not asked yet, or by an older release).
    `loaded_skills` are the skills that the model has loaded, each with the place of the message that has its text.
    `dispatches` are the sub-agents that the agent dispatched, in order.
    """

    model_config = ConfigDict(frozen=True)

    iteration: int = 0
    consecutive_timeouts: int = 0
    empty_answers: int = 0
    repeated_answers: int = 0
    slow_iterations: int = 0
    tool_calls: int = 0
    concluding: bool = False
    final_answer: str | None = None
    tokens_per_byte: float | None = None
    last_output: int = 0
    window: int | None = None
    refusals: int = 0
    fallback: int = 0
    tried: tuple[str, ...] = ()
    masked_calls: tuple[int, ...] = ()
    sent_back: tuple[str, ...] = ()
    partial: str = ""
    cut_by_length: bool = False
    tool_call_format: str | None = None
    loaded_skills: tuple[tuple[str, int], ...] = ()
    dispatches: tuple[Dispatch, ...] = ()
    usage: Usage = Usage()

    @property
    def awaits_results(self) -> bool:
        """Whether the model has not been sent the results of all its sub-agents."""
        return any(not dispatch.told for dispatch in self.dispatches)


@dataclass(frozen=True, slots=True)
class StageStart:
    """A stage about to run."""

    id: UUID
    index: int
    name: str
    kind: StageKind
    expected_agents: int
    parallel: str | None = None
    success_policy: str | None = None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as the record has it: new, or left by an earlier attempt."""

    id: UUID
    state: State
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ExecutionStart:
    """An agent execution about to run.

    That of a sub-agent has the execution of its `parent`, its `task` and `hypothesis`, and the key of the tool call
    that dispatched it.
    """

    id: UUID
    stage: UUID
    index: int
    agent: str
    display_name: str
    strategy: str
    provider: str
    model: str
    parent: UUID | None = None
    dispatched_by: UUID | None = None
    task: str | None = None
    hypothesis: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A tool call that an earlier attempt began and that has no tool message yet.

    `result` is set when the tool has answered and a summary of the result was to be made first; `summary` when the
    summary was made.
    """

    message_seq: int
    index: int
    attempt: int
    state: InteractionState
    made: bool = True
    result: str | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """An agent execution as the record has it; `started_at` is when its first attempt began it.

    `messages` is the conversation so far, in order and without gaps; `ahead` are tool messages by sequence whose calls
    were answered before an earlier one was; `model_calls` counts every model call ever started; `unanswered` are tool
    calls with a row but no tool message yet.
    """

    id: UUID
    state: State
    started_at: datetime
    messages: tuple[Message, ...] = ()
    ahead: Mapping[int, Message] = field(default_factory=dict)
    loop: LoopState = field(default_factory=LoopState)
    model_calls: int = 0
    unanswered: tuple[ToolCallRecord, ...] = ()
    superseded: Mapping[int, str] = field(default_factory=dict)
    result: str | None = None
    failure: Failure | None = None
    verdict: HypothesisVerdict | None = None


@dataclass(frozen=True, slots=True)
class ExecutionOutcome:
    """Outcome of an execution; `result` is its final answer, and `verdict` that on the hypothesis of a sub-agent."""

    execution: UUID
    state: State
    result: str | None = None
    failure: Failure | None = None
    verdict: HypothesisVerdict | None = None


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """Outcome of a stage; `acted` only of one of kind Action that ended by itself."""

    stage: UUID
    state: State
    failure: Failure | None = None
    acted: StageActed | None = None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of an investigation.

    `state` is terminal. `executive_summary_error` does not fail the run. A run that is `cut` was ended from outside:
    the timeline gets an event with the reason. `replay` is the report of a replay.
    """

    state: State
    final_analysis: str | None = None
    finding: Finding | None = None
    executive_summary: str | None = None
    executive_summary_error: str | None = None
    failure: Failure | None = None
    cut: bool = False
    replay: ReplayReport | None = None


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Progress of a stage, for status and CLI; `acted` only of a stage of kind Action."""

    index: int
    name: str
    kind: StageKind | str
    state: State
    agents: int
    agents_finished: int
    started_at: datetime | None
    finished_at: datetime | None
    failure: Failure | None
    acted: StageActed | None = None


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """Change of an agent to another provider: the `reason` of the failure, and the revision of the run."""

    revision: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class OtherRun:
    """Another investigation of the same namespace: its id, and the name of its object."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ParkedRun:
    """Holds the wait of a parked run: reason for programs, start, and latest end."""

    reason: str
    since: datetime
    until: datetime
    sentence: str


ALERT_DATA: Final = "alert data"
"""Key among missing tool servers for an alert that was cut to fit a model; names of servers contain no space."""


@dataclass(frozen=True, slots=True)
class InvestigationRecord:
    """An investigation, or the answer to a question about one, with its counters, as the projector and the CLI read it.

    `parent` is the investigation that an answer is about, None for an investigation. `cost_usd` is the sum of known
    costs, None when no cost is known; `cost_complete` is False when some cost is unknown. `alert_cut` reports how much
    of the alert a model received, when its context window was too small for all of it. `published_digest` is that of
    the last status of its object; None while the run goes on. `seal` is the head of its chain of seals, as hex.
    `waited_seconds` is the time for which it was parked before, `held_for` the quota that keeps it from starting.
    `incident_outcome` is what became of its alert. `high_verdicts` are those on findings of its Chain
    with confidence High, if its own finding is one. `retry_of` is the investigation that it reruns, `retried_by` the
    latest one that reruns it.
    """

    id: UUID
    namespace: str
    name: str
    alert_type: str
    chain: str
    chain_namespace: str
    plan_hash: str
    stages_planned: int
    state: State
    desired_state: DesiredState
    attempt: int
    revision: int
    published_revision: int
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline: datetime | None
    usage: Usage
    model_calls: int
    interrupted_model_calls: int
    tool_calls: int
    stages: tuple[StageProgress, ...]
    outcome: RunOutcome | None
    evidence_missing: tuple[str, ...] = ()
    alert_cut: str | None = None
    cost_usd: Decimal | None = None
    cost_complete: bool = True
    budget_exceeded: BudgetExceeded | None = None
    provider_changes: tuple[ProviderChange, ...] = ()
    parent: UUID | None = None
    published_digest: bytes | None = None
    seal: str | None = None
    replay: bool = False
    parked: ParkedRun | None = None
    waited_seconds: float = 0.0
    held_for: str | None = None
    incident_outcome: IncidentOutcome | None = None
    high_verdicts: HighVerdicts | None = None
    retry_of: OtherRun | None = None
    retried_by: OtherRun | None = None
