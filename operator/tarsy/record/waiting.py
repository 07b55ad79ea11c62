"""Defines what a run waits for without a worker: a decision about a tool call, a rate limit, or a quota.

A run waits by being parked: its loop is on record, its lease is given back, and none of its clocks run. The engine asks
about a call again whenever it resumes, so that an answer depends on the record of the approval alone.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tarsy.record.approvals.provenance import ArgumentOrigin
from tarsy.record.messages import Access, Refusal


class WaitReason(StrEnum):
    """Reason for which a run is parked."""

    APPROVAL = "Approval"
    PROVIDER_LIMIT = "ProviderLimit"
    QUOTA = "Quota"


_CONDITIONS = {
    WaitReason.APPROVAL.value: "WaitingForApproval",
    WaitReason.PROVIDER_LIMIT.value: "WaitingForProvider",
    WaitReason.QUOTA.value: "WaitingForQuota",
}


def waiting_reason(parked_for: str) -> str:
    """Returns the reason of the condition Finished of a run that is parked, also for a word of a newer version."""
    return _CONDITIONS.get(parked_for, "Parked")


@dataclass(frozen=True, slots=True)
class Wait:
    """A run goes on at a decision, or `until` then at the latest; `sentence` reports what it waits for."""

    reason: WaitReason
    until: datetime
    sentence: str


class RunWaits(Exception):
    """An agent, or a whole run, can go no further before something outside has happened."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait.sentence)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A tool call that may be made only with the approval of people.

    `call` is the id of its row, which does not exist before the call is approved, and the same whenever the question
    is asked again; `ref` is the id by which the model cites it. `arguments` hold no secret: they are as on record and
    as they would be sent. `definition` is the digest of the pinned tool (empty: unknown), `answer` what the model wrote
    in the answer that asks for the call. `account` is the ServiceAccount that its targets are read with. `seconds` is
    how long the run may still wait in all, and `requests` how many approvals it may ask for in all.
    `provenance` tells where the arguments come from.
    """

    call: UUID
    execution: UUID
    ref: str
    name: str
    server: str
    tool: str
    arguments: str
    access: Access
    definition: str
    answer: str
    seconds: float
    requests: int
    account: str | None = None
    provenance: tuple[ArgumentOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalWaits:
    """Waits for a decision, which people may make until then."""

    until: datetime


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """The call may be made. The step that begins it (`Recorder.tool_call_started`) consumes this approval.

    `sentence` reports who approved, for the timeline, and `undo` how the call can be undone, for its model.
    """

    approval: UUID
    sentence: str = "The call is approved."
    undo: str = ""


ApprovalAnswer = ApprovalWaits | ApprovalGiven | Refusal
"""A `Refusal` answers the call without making it: rejected, expired, stale, not enforced, too many requests."""


@dataclass(frozen=True, slots=True)
class WaitingLimits:
    """Holds the limits of waiting: total time, number of approvals, and the delay above which a rate limit parks a run.

    A provider that asks to come back later than after `provider_seconds` parks the run; 0: none does.
    """

    seconds: float = 24 * 3600.0
    requests: int = 5
    provider_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class WaitingRoom:
    """Holds the remaining wait of a run: its limits, the seconds waited, and whether there is no place to wait."""

    limits: WaitingLimits = field(default_factory=WaitingLimits)
    waited_seconds: float = 0.0
    full: str | None = None

    @property
    def seconds(self) -> float:
        """Seconds that the run may still wait."""
        return max(0.0, self.limits.seconds - self.waited_seconds)
