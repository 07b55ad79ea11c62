"""Summarizes the reviews of the finding of an investigation.

Decision: the log is the only truth, and is never changed. State and verdict are computed from it, in its order: a
person counts once, by their newest verdict; a reopening lets all verdicts before it no longer count. Where people
disagree, the least favourable verdict is that of the investigation: it is never called better than one of them found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

from tarsy.record.finding import Confidence
from tarsy.record.judging.incident_outcome import IncidentOutcome

MAX_REVIEW_ACTIVITIES: Final = 500
"""Entries that the log of an investigation holds at most."""


class ReviewAction(StrEnum):
    """Kind of an entry. RELEASED: a claim was deleted without a verdict."""

    CLAIMED = "claimed"
    COMPLETED = "completed"
    REOPENED = "reopened"
    RELEASED = "released"


class ReviewState(StrEnum):
    """State of an investigation in the queue of reviews."""

    NEEDS_REVIEW = "NeedsReview"
    IN_PROGRESS = "InProgress"
    REVIEWED = "Reviewed"


class ReviewVerdict(StrEnum):
    """Verdict on a finding, the least favourable last."""

    RIGHT = "Right"
    PARTLY = "Partly"
    WRONG = "Wrong"

    @property
    def severity(self) -> int:
        """Position in the order from Right to Wrong."""
        return list(ReviewVerdict).index(self)


@dataclass(frozen=True, slots=True)
class ReviewActivity:
    """One entry of the log: what a person did through the Review `review`, with what it said then."""

    review: str
    author: str
    action: ReviewAction
    verdict: ReviewVerdict | None = None
    root_cause: Mapping[str, Any] | None = None
    note: str | None = None
    at: datetime | None = None
    """Time at which the operator stored it; None: not stored yet."""

    def says(self, other: Self | None) -> bool:
        """Whether `other` is of the same Review and says the same."""
        return other is not None and (
            self.review == other.review
            and self.author == other.author
            and self.action is other.action
            and self.verdict is other.verdict
            and self.root_cause == other.root_cause
            and self.note == other.note
        )


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """State of the reviews of an investigation.

    Attributes:
        state: its place in the queue.
        verdict: the least favourable counted verdict; None: there is none.
        claimed_by: people who review it now, in the order of their claims.
        counted: the verdicts that count, one a person, the oldest first.
    """

    state: ReviewState
    verdict: ReviewVerdict | None = None
    claimed_by: tuple[str, ...] = ()
    counted: tuple[ReviewActivity, ...] = ()

    @property
    def root_cause(self) -> Mapping[str, Any] | None:
        """The root cause that the newest counted verdict names which names one."""
        return next((one.root_cause for one in reversed(self.counted) if one.root_cause), None)


def summarize_reviews(log: Sequence[ReviewActivity]) -> ReviewSummary:
    """Summarizes a log.

    Args:
        log: all entries about one investigation, in the order in which they were stored.
    """
    counted: dict[str, ReviewActivity] = {}
    claims: dict[str, str] = {}
    for entry in log:
        match entry.action:
            case ReviewAction.REOPENED:
                counted, claims = {}, {}
            case ReviewAction.COMPLETED:
                claims.pop(entry.author, None)
                counted.pop(entry.author, None)  # the newest one is the last one
                counted[entry.author] = entry
            case ReviewAction.CLAIMED:
                was = counted.get(entry.author)
                if was is not None and was.review == entry.review:
                    del counted[entry.author]  # its author took the verdict back
                claims[entry.author] = entry.review
            case ReviewAction.RELEASED:
                if claims.get(entry.author) == entry.review:
                    del claims[entry.author]
    verdicts = [one.verdict for one in counted.values() if one.verdict is not None]
    unfinished = ReviewState.IN_PROGRESS if claims else ReviewState.NEEDS_REVIEW
    state = ReviewState.REVIEWED if verdicts else unfinished
    verdict = max(verdicts, key=lambda one: one.severity, default=None)
    return ReviewSummary(state, verdict, tuple(claims), tuple(counted.values()))


@dataclass(frozen=True, slots=True)
class ReviewableRun:
    """An investigation that a Review names."""

    id: UUID
    finished: bool
    finding: bool
    replay: bool
    outcome: IncidentOutcome | None = None
    """Outcome of its alert; None: not known."""


@dataclass(frozen=True, slots=True)
class QueuedReview:
    """An investigation in the queue of reviews."""

    id: UUID
    namespace: str
    name: str
    alert_type: str
    chain: str
    chain_namespace: str
    finished_at: datetime
    object_deleted_at: datetime | None
    summary: str
    confidence: str
    state: ReviewState
    verdict: ReviewVerdict | None
    claimed_by: tuple[str, ...]
    reviewed_by: tuple[str, ...]
    changed_at: datetime | None
    outcome: IncidentOutcome | None = None


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """The confidence of a finding, and what people found."""

    confidence: Confidence
    verdict: ReviewVerdict


def why_unreviewable(run: ReviewableRun | None, which: str) -> tuple[str, str] | None:
    """Returns reason and sentence why an investigation cannot be reviewed; None: it can.

    Args:
        run: the investigation; None: there is no record of it.
        which: kind, namespace and name, for the sentence.
    """
    if run is None:
        return "InvestigationMissing", f"there is no record of {which}; correct the name, or delete the Review"
    if run.replay:
        return "IsReplay", f"{which} is a replay; review the investigation that it replays"
    if not run.finished:
        return "StillRunning", f"{which} has not ended; a Review of it counts once it has"
    if not run.finding:
        return "NoFinding", f"{which} ended without a finding, so there is nothing to review"
    return None
