"""Declares the ports of the engine: the protocols that the runtime implements with store, stream, llm and mcp.

The engine knows no database, no Kubernetes and no SDK. Every method of `Recorder` is one fenced transaction: its step
is on record when it returns, or it raises. The end of a call is the exception: it may be held for the next step of the
same execution, for at most 50 ms, and is lost when the process dies before. Every other step of an execution, and every
read, is preceded by what is held of it; an error of a held step is raised by the next one, or stops the run.
`LeaseLost` means that another attempt owns the run, and that this one must stop without another effect.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.snapshot import Snapshot
from tarsy.llm.protocol import LLMClient
from tarsy.plan.model import ChangesPlan, ProviderPlan, ServerPlan
from tarsy.record.approvals.acted import ExecutedCall
from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, OfferedTools, ToolCallResult, ToolCallStart
from tarsy.record.finding import Evidence
from tarsy.record.first_attempt import FirstAttempt, HandedOnCall
from tarsy.record.history import BudgetExceeded, RunHistory
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
    StageOutcome,
    StageRecord,
    StageStart,
)
from tarsy.record.timeline import Event, TimelineEvent
from tarsy.record.waiting import ApprovalAnswer, ApprovalQuestion


class Recorder(Protocol):
    """Writes the steps of a run. Events that come with a step are written in the transaction of the step."""

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """Creates the stage, or returns what an earlier attempt left."""
        ...

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the stage."""
        ...

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """Creates the execution, or returns what an earlier attempt left.

        Model calls an earlier attempt left open become `interrupted`, and so do their streaming events.
        """
        ...

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution."""
        ...

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (a).

        Raises QuotaRefused when a quota has no room for the worst case: nothing of this step is on record then, and
        the step that was held before it is.
        """
        ...

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (b); it may be held."""
        ...

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> bool:
        """Boundary (c); consumes the approval of a call that has one.

        Returns whether the call may be sent. False for one that is not made, and for one whose approval did not hold
        any more (withdrawn, expired, or consumed by another call), whose row then has that as its answer.
        """
        ...

    async def tool_call_answered(
        self, call: UUID, answer: ToolOutcome, duration_ms: int, events: Sequence[Event] = ()
    ) -> None:
        """Writes the result of a call that stays open until a summary of it is made.

        Args:
            call: id of the tool call.
            answer: in full, without secrets.
            duration_ms: of the call.
            events: of this step.
        """
        ...

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (d); it may be held."""
        ...

    async def write_events(self, events: Sequence[Event]) -> None:
        """Creates or replaces timeline events outside of a step (a stream that began, a notice)."""
        ...

    async def stage_timeline(self, stage: UUID) -> Mapping[UUID, Sequence[TimelineEvent]]:
        """The events of a stage by execution, in order: what synthesis reads."""
        ...

    async def history(self) -> RunHistory:
        """Reads the usage and the tool calls of all attempts so far; called once, before an attempt continues."""
        ...

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """Notes the limit that the run reached; the first one stays."""
        ...

    async def evidence(self, call_ids: Collection[str]) -> Mapping[str, Evidence]:
        """Those of `call_ids` that are closed tool calls of this run: by `call_ref`, or by the id of the row.

        A call whose outcome is unknown is no evidence.
        """
        ...

    async def is_confirmed(self) -> bool:
        """Whether a tool call of this run has a result of which the control plane wrote at least a part (class K)."""
        ...

    async def changes_for_git(self) -> Sequence[ChangeForGit]:
        """Reads the changes of calls of this run that were refused because GitOps manages their objects, in order."""
        ...

    async def actions(self, stage: UUID) -> Sequence[ExecutedCall]:
        """Reads the calls of a stage of kind Action that were sent after people approved them, in order."""
        ...

    async def told_results(
        self, execution: UUID, known: Collection[UUID] = (), *, sensitive: bool = False
    ) -> Sequence[ToldResult]:
        """The next results of tools that the model of an execution may know of, a page at a time, by their ids.

        Those of the execution itself and of earlier stages, not of agents beside it; for a question also those of its
        investigation and of the other questions about that. The last page has fewer than `RESULTS_A_PAGE`.

        Args:
            execution: of the agent.
            known: ids of those that the caller has.
            sensitive: only those whose text must not leave.
        """
        ...

    async def first_attempt(self, stages: Collection[UUID]) -> FirstAttempt:
        """Reads the tool calls and the usage of the stages that are the first attempt of a stage of the plan."""
        ...

    async def pin_tools(
        self, found: Mapping[str, Mapping[str, str]], offered: OfferedTools
    ) -> Mapping[str, Mapping[str, str]]:
        """Pins the tools of servers that the run opens for the first time; returns all pinned digests.

        Args:
            found: digests of tools, by server.
            offered: what an agent is offered, which is recorded with it.
        """
        ...

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """Notes tool servers (name to reason) that were missing, or ALERT_DATA that is cut, for `EvidenceDegraded`."""
        ...


class Models(Protocol):
    """Clients for the providers of a plan."""

    def client(self, provider: ProviderPlan) -> AbstractAsyncContextManager[LLMClient]:
        """A client for one call, with the key as it is now.

        Raises ModelError(CREDENTIALS_MISSING) on entry when the Secret, its label or its key is missing.
        """
        ...


class Toolbox(Protocol):
    """The tools of one agent execution."""

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """Returns all tools that may be called, named `server.tool`, in a stable order."""
        ...

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Servers that could not be opened, with a sentence each."""
        ...

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions that servers give for their own use, by server; untrusted text."""
        ...

    def split(self, name: str) -> tuple[str, str]:
        """`server.tool` taken apart ("", name when there is no dot)."""
        ...

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """A digest of each tool of each server that was opened, whether this agent may call it or not."""
        ...

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools by server that are withheld because nobody accepted their definition (`MCPServer.spec.pin`)."""
        ...

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from `pinned` (digests by server); returns the tools withheld, by server."""
        ...

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool: only tools known to be read-only cannot change another's answer."""
        ...

    def refusal(self, name: str) -> Refusal | None:
        """Why a tool that its server has is not called for this agent; None when it is, and when there is none such."""
        ...

    def repeatable(self, name: str) -> bool:
        """Whether the call may be made again when its outcome is unknown."""
        ...

    def needs_approval(self, name: str) -> bool:
        """Whether each call of the tool needs the approval of people."""
        ...

    def shown(self, name: str, arguments: str) -> str:
        """A call's arguments without secrets, as record and people see them; never raises."""
        ...

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool. Unknown tools, bad arguments and timeouts are outcomes; only cancellation is raised.

        Args:
            name: `server.tool`.
            arguments: as the model wrote them.
            timeout: seconds for the whole call.
            idempotency_key: the same for each attempt at this call.
        """
        ...


class Toolboxes(Protocol):
    """Opens toolboxes."""

    def open(self, servers: Sequence[ServerPlan]) -> AbstractAsyncContextManager[Toolbox]:
        """Opens the servers side by side; those that fail are in `unavailable`, never an error."""
        ...


HandOn = Callable[[Toolboxes, Sequence[HandedOnCall]], Toolboxes]
"""Makes toolboxes that answer calls of a first attempt from the record, and make all others."""

DryRun = Callable[[str, str | bool], Awaitable[ToolOutcome | None]]
"""Makes a call with one argument set so that it has no effect; None: its tool declares no such argument."""


class Approvals(Protocol):
    """Asks people about the tool calls of one attempt."""

    async def ask(self, question: ApprovalQuestion, dry_run: DryRun) -> ApprovalAnswer:
        """Asks about a call, or returns what became of the question asked before; under the fence of the attempt.

        An approval counts once it is consumed with the start of the call. What is refused stays refused.

        Args:
            question: the call.
            dry_run: tries the call, to show people what it would change.
        """
        ...

    async def withdraw(self, call: UUID, why: str) -> None:
        """Withdraws a question that is still open, because the run goes on without the call.

        Args:
            call: id of the tool call.
            why: a sentence for people.
        """
        ...


@dataclass(frozen=True, slots=True)
class NotRead:
    """Why no object was read, as a sentence; `refused`: because rights are missing, which degrades no evidence."""

    sentence: str
    refused: bool = False


class ObjectReader(Protocol):
    """Reads the objects of a run's namespace for its stages of kind Changes."""

    async def read(self, changes: ChangesPlan) -> Snapshot | NotRead:
        """Reads what the stage's ServiceAccount and its reader both may list, or says why nothing is read.

        Args:
            changes: the stage.
        """
        ...

    async def history(self, changes: ChangesPlan, since: datetime) -> RecordedHistory:
        """Reads what is recorded of objects that the stage's ServiceAccount and its reader both may get.

        Args:
            changes: the stage.
            since: start of the window.
        """
        ...

    def without_secrets(self, text: str) -> str:
        """Removes secrets from a text of an object; never raises."""
        ...


class Control(Protocol):
    """Controls a run from outside while it runs."""

    @property
    def concluding(self) -> bool:
        """Whether the run shall stop now and summarise what it has."""
        ...

    def when_concluding(self, tell: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls `tell` once when the run is asked to conclude, at once if it was already; until the context ends."""
        ...

    def check(self) -> None:
        """Called before every outside effect: raises LeaseLost when the local lease deadline has passed."""
        ...


class Live(Protocol):
    """Receives the text of models as it streams; never raises, never blocks."""

    @property
    def followed(self) -> bool:
        """Whether the run has a follower now, who sees a text only once its event is on record."""
        ...

    def when_followed(self, tell: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls `tell` each time the run, without a follower before, gets one; until the context ends."""
        ...

    def began(self, event: UUID, pieces: Sequence[str]) -> None:
        """The text of a streaming event begins; `pieces` grows, and is all of it at any time."""
        ...

    def grew(self, event: UUID) -> None:
        """More of it has come."""
        ...

    def ended(self, event: UUID) -> None:
        """Reports that the text is complete, or that no more will follow."""
        ...
