"""Holds the context of one run: its ports, and the state that its agents share."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tarsy.engine.conversation.masking import Mask
from tarsy.engine.limits.budget import BudgetTracker
from tarsy.engine.ports import (
    Approvals,
    Control,
    DryRun,
    HandOn,
    Live,
    Models,
    NotRead,
    ObjectReader,
    Recorder,
    Toolboxes,
)
from tarsy.engine.provenance.result_readings import KeptReadings
from tarsy.engine.tool_calls.loop_guard import LoopGuard
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.snapshot import Snapshot
from tarsy.plan.model import ChangesPlan, ObjectRef, SkillPlan
from tarsy.record.approvals.provenance import Origin, ToldResult
from tarsy.record.first_attempt import HandedOnCall
from tarsy.record.judging.replay import KnownChanges
from tarsy.record.messages import Refusal
from tarsy.record.waiting import ApprovalQuestion, WaitingRoom


class NoFollowers:
    """The followers of a run that nobody follows."""

    followed = False

    def when_followed(self, _: Callable[[], None]) -> AbstractContextManager[None]:
        """Never calls it."""
        return nullcontext()

    def began(self, event: UUID, pieces: Sequence[str]) -> None:
        """Does nothing."""

    def grew(self, event: UUID) -> None:
        """Does nothing."""

    def ended(self, event: UUID) -> None:
        """Does nothing."""


class NoObjects:
    """The reader of a process that reads no objects."""

    async def read(self, changes: ChangesPlan) -> Snapshot | NotRead:
        """Returns why there is nothing."""
        return NotRead("this process reads no objects of the cluster")

    async def history(self, changes: ChangesPlan, since: datetime) -> RecordedHistory:
        """Returns nothing."""
        return RecordedHistory()

    def without_secrets(self, text: str) -> str:
        """Returns the text."""
        return text


class NoApprovals:
    """The approvals of a process in which nobody can be asked."""

    async def ask(self, question: ApprovalQuestion, dry_run: DryRun) -> Refusal:
        """Refuses the call."""
        why = "its calls need the approval of people, and nobody can be asked here"
        sentence = f"{question.name} was not called: {why}. Say in your answer what you would do with it."
        return Refusal("ApprovalUnavailable", sentence)

    async def withdraw(self, call: UUID, why: str) -> None:
        """Does nothing."""


def hand_on_nothing(toolboxes: Toolboxes, calls: Sequence[HandedOnCall]) -> Toolboxes:
    """Returns the toolboxes: all calls are made."""
    return toolboxes


@dataclass(frozen=True, slots=True)
class RunContext:
    """All ports of one run, with the budget tracker and the loop guard that its agents share.

    `mask` removes secrets from the output of its models before it is recorded; `live` receives that output as it
    streams. `silent` are the providers that gave no conclusion when the run was asked to conclude: they are not asked
    again. `windows` are the context windows that providers reported when they refused a conversation as too long: an
    agent that begins starts from them. `objects` reads the cluster for stages of kind Changes; in a replay,
    `known_changes` answers them from the record instead, given the arguments of their calls. `alert` is the text of the
    alert, whose names and numbers claims may use; `prompt_texts` are the texts of people and of the alert in its
    prompts, with their origin, and `assigned` the task of a sub-agent, which another model wrote. `approvals` asks
    people about calls, and `waiting` tells how long the run may still wait for them. `skills` are those of the plan.
    `readings` are the forms of results that arguments of calls are looked for in. `precedents` are the lines
    about earlier investigations, as a text from outside that must not leave. `replay`: nothing is sent to any server
    that changes something. `hand_on` gives a second attempt of a
    stage the results of the first one.
    """

    recorder: Recorder
    models: Models
    toolboxes: Toolboxes
    control: Control
    meter: BudgetTracker = field(default_factory=BudgetTracker)
    guard: LoopGuard = field(default_factory=LoopGuard)
    mask: Mask = str
    live: Live = field(default_factory=NoFollowers)
    silent: set[ObjectRef] = field(default_factory=set)
    windows: dict[ObjectRef, int] = field(default_factory=dict)
    objects: ObjectReader = field(default_factory=NoObjects)
    known_changes: Callable[[str], KnownChanges] | None = None
    alert: str = ""
    prompt_texts: Sequence[tuple[Origin, str]] = ()
    assigned: Sequence[ToldResult] = ()
    approvals: Approvals = field(default_factory=NoApprovals)
    waiting: WaitingRoom = field(default_factory=WaitingRoom)
    skills: Sequence[SkillPlan] = ()
    readings: KeptReadings = field(default_factory=KeptReadings)
    precedents: ToldResult | None = None
    replay: bool = False
    hand_on: HandOn = hand_on_nothing

    @property
    def concluding(self) -> bool:
        """Whether the run comes to its conclusion now: because that was asked for, or its budget is reached."""
        return self.control.concluding or self.meter.exceeded is not None
