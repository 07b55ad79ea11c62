"""Holds the data of one run in memory: its stages, executions, calls and timeline."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from tarsy.record.approvals.acted import ExecutedCall
from tarsy.record.approvals.git_change import CHANGE_FOR_GIT, ChangeForGit
from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, OfferedTools, ToolCallResult, ToolCallStart
from tarsy.record.dispatch import DISPATCH_TOOLS
from tarsy.record.first_attempt import MOST_CALLS, FirstAttempt, HandedOnCall
from tarsy.record.history import BudgetExceeded, PastCall
from tarsy.record.ids import call_ref
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import Access, Message, Role
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionStart,
    InteractionState,
    LoopState,
    StageKind,
    StageOutcome,
    StageStart,
)
from tarsy.record.timeline import TimelineEvent


@dataclass
class StageRow:
    """A stage."""

    start: StageStart
    outcome: StageOutcome | None = None


@dataclass
class ExecutionRow:
    """An execution with its conversation."""

    start: ExecutionStart
    outcome: ExecutionOutcome | None = None
    loop: LoopState = field(default_factory=LoopState)
    messages: dict[int, Message] = field(default_factory=dict)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages in order, up to the first gap."""
        whole = next(seq for seq in range(len(self.messages) + 1) if seq not in self.messages)
        return tuple(self.messages[seq] for seq in range(whole))

    @property
    def ahead(self) -> dict[int, Message]:
        """The messages behind the first gap."""
        whole = len(self.conversation)
        return {seq: message for seq, message in sorted(self.messages.items()) if seq > whole}


@dataclass
class ModelCallRow:
    """A model call; it was cut before it was sent where it is `unsent`."""

    start: ModelCallStart
    state: InteractionState = InteractionState.STARTED
    result: ModelCallResult | None = None
    unsent: bool = False


@dataclass
class ToolCallRow:
    """A tool call."""

    start: ToolCallStart
    state: InteractionState = InteractionState.STARTED
    result: ToolCallResult | None = None
    answered: str | None = None
    duration_ms: int | None = None
    began: int = 0
    ended: int | None = None
    replayed: ReplayedFrom | None = None
    marks: EvidenceMarks | None = None

    @property
    def citable(self) -> bool:
        """Whether a claim may cite it: it is closed, and not about sub-agents."""
        closed = self.state in (InteractionState.COMPLETED, InteractionState.FAILED)
        return closed and (bool(self.start.server) or self.start.tool not in DISPATCH_TOOLS)


@dataclass
class Record:
    """Holds the whole record of one run.

    Every execution begins at `began`. `seconds` have passed since the run started, without the `waited_seconds` for
    which it was parked, and `age_seconds` since its tool calls, for an attempt that begins now. `tries` are the tries
    of a tool call by its place: execution, message and index. `approved` are the
    approvals that a call can consume, by id, with the id of the call, and `consumed` the calls that consumed one.
    """

    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    stages: dict[UUID, StageRow] = field(default_factory=dict)
    executions: dict[UUID, ExecutionRow] = field(default_factory=dict)
    model_calls: dict[UUID, ModelCallRow] = field(default_factory=dict)
    tool_calls: dict[UUID, ToolCallRow] = field(default_factory=dict)
    tries: dict[tuple[UUID, int, int], list[ToolCallRow]] = field(default_factory=dict)
    events: dict[UUID, TimelineEvent] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    pins: dict[str, Mapping[str, str]] = field(default_factory=dict)
    offered: dict[UUID, OfferedTools] = field(default_factory=dict)
    exceeded: BudgetExceeded | None = None
    approved: dict[UUID, UUID] = field(default_factory=dict)
    consumed: set[UUID] = field(default_factory=set)
    seconds: float = 0.0
    waited_seconds: float = 0.0
    age_seconds: float = 0.0
    steps: int = 0

    def execution(self, display_name: str) -> ExecutionRow:
        """The execution of the agent people see under that name."""
        return next(row for row in self.executions.values() if row.start.display_name == display_name)

    def texts(self, display_name: str) -> list[tuple[Role, str]]:
        """Role and text of each message of an agent."""
        return [(m.role, m.content) for m in self.execution(display_name).conversation]

    def names(self, execution: UUID | None) -> tuple[str | None, str | None]:
        """The name of an agent, and of the one that dispatched it."""
        found = self.executions.get(execution) if execution else None
        parent = self.executions.get(found.start.parent) if found and found.start.parent else None
        return found.start.display_name if found else None, parent.start.display_name if parent else None

    def is_confirmed(self) -> bool:
        """Whether a tool call has a result of which the control plane wrote at least a part."""
        return any(
            row.marks is not None and (row.marks.integrity is Integrity.K or bool(row.marks.control))
            for row in self.tool_calls.values()
            if row.state is InteractionState.COMPLETED
        )

    def acts(self, call: ToolCallRow) -> bool:
        """Whether a stage of kind Action made a call."""
        return self.stages[self.executions[call.start.execution].start.stage].start.kind is StageKind.ACTION

    def past_calls(self) -> tuple[PastCall, ...]:
        """The tool calls that are closed, in the order of their ends."""
        tools = list(self.tool_calls.values())
        changes = [t for t in tools if t.start.made and t.start.access is not Access.READ_ONLY]
        changed = max((math.inf if t.ended is None else t.ended for t in changes), default=-1)
        return tuple(
            PastCall(
                id=t.start.id,
                execution=t.start.execution,
                message_seq=t.start.message_seq,
                index=t.start.index,
                server=t.start.server,
                tool=t.start.tool,
                arguments=t.start.call.arguments,
                age_seconds=self.age_seconds,
                usable=t.start.made
                and t.start.access is Access.READ_ONLY
                and t.state is InteractionState.COMPLETED
                and t.began > changed,
                repeated_of=t.start.repeated_of,
                answered=t.start.made and t.state is InteractionState.COMPLETED,
                acts=self.acts(t),
            )
            for t in sorted(tools, key=lambda t: t.ended or 0)
            if t.state is not InteractionState.STARTED
        )

    def actions(self, stage: UUID) -> list[ExecutedCall]:
        """The calls of a stage that were sent after people approved them, in order."""
        sent = [
            (execution.start.index, row.start.message_seq, row.start.index, row)
            for row in self.tool_calls.values()
            if row.start.id in self.consumed
            and (execution := self.executions[row.start.execution]).start.stage == stage
            and self.acts(row)
        ]
        return [
            ExecutedCall(call_ref(row.start.idempotency_key), f"{row.start.server}.{row.start.tool}", row.state.value)
            for *_, row in sorted(sent, key=lambda one: one[:3])
        ]

    def changes_for_git(self) -> list[ChangeForGit]:
        """The changes of calls that were refused because GitOps manages their objects, in order."""
        events = sorted(self.events.values(), key=lambda one: one.seq)
        found = [event.metadata[CHANGE_FOR_GIT] for event in events if CHANGE_FOR_GIT in event.metadata]
        return [ChangeForGit.model_validate(one) for one in found]

    def first_attempt(self, stages: Collection[UUID]) -> FirstAttempt:
        """The tool calls of stages that were made and did not fail, and the tokens of their model calls."""
        within = {one for one, row in self.executions.items() if row.start.stage in stages}
        tools = [row for row in self.tool_calls.values() if row.start.execution in within]
        calls = [
            HandedOnCall(row.start.server, row.start.tool, row.start.call.arguments, row.answered, row.marks)
            for row in sorted(tools, key=lambda row: row.began)
            if row.start.made and row.state is InteractionState.COMPLETED and row.answered is not None
            if row.start.server and (row.replayed is None or row.replayed.rung is not Rung.SIMULATED)
        ]
        models = [row for row in self.model_calls.values() if row.start.execution in within and not row.unsent]
        known = [row.result.usage for row in models if row.result and row.result.usage]
        guessed = [row.result or row.start for row in models if not (row.result and row.result.usage)]
        return FirstAttempt(
            calls[-MOST_CALLS:],
            sum(usage.input_tokens for usage in known) + sum(one.estimated_tokens for one in guessed),
            sum(usage.output_tokens for usage in known),
        )

    def told(self, execution: UUID, known: Collection[UUID], *, sensitive: bool) -> list[ToldResult]:
        """Results of servers that the model of an execution may know of.

        Those of itself, its parent and its sub-agents, and of earlier stages.

        Args:
            execution: of the agent.
            known: ids of those that the caller has.
            sensitive: only those whose text must not leave.
        """
        stage_of = {one: row.start.stage for one, row in self.executions.items()}
        family = {one: row.start.parent or one for one, row in self.executions.items()}
        index_of = {one: row.start.index for one, row in self.stages.items()}
        found = []
        for row in (row for row in self.tool_calls.values() if row.start.id not in known):
            start, marks = row.start, row.marks or EvidenceMarks()
            closed = row.state in (InteractionState.COMPLETED, InteractionState.FAILED)
            related = family[start.execution] == family[execution]
            related = related or index_of[stage_of[start.execution]] < index_of[stage_of[execution]]
            if row.answered is not None and start.made and closed and related and (marks.sensitive or not sensitive):
                ref, tool = call_ref(start.idempotency_key), f"{start.server}.{start.tool}"
                of = self.executions[start.execution].start
                place = (-1, index_of[of.stage], of.index, start.message_seq, start.index)
                found.append(ToldResult(start.id, ref, tool, start.call.arguments, row.answered, marks, place))
        return found
