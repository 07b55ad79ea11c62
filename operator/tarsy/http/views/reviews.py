"""Models of reviews: the queue, the reviews of one finding, and new reviews."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from tarsy.http.models import Body, View
from tarsy.http.views.common import NEXT_PAGE, SHOWN_CONFIDENCE
from tarsy.record.finding import Confidence
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.review import QueuedReview, ReviewableRun, ReviewActivity, summarize_reviews, why_unreviewable
from tarsy.record.judging.shown_confidence import HighVerdicts, shown_confidence
from tarsy.resources.schema import ObjectName
from tarsy.resources.v1alpha1.review import FindingVerdict, ReviewNote, RootCauseObject

MAX_REVIEWED = 50
"""Investigations that one request reviews."""

OUTCOME = "What became of the alert after the finding, without anybody's verdict. Null while that is not known."

_CONFIDENCES = frozenset(Confidence)

ReviewIntent = Literal["Claim", "Complete", "Reopen"]


class ReviewItem(View):
    """A finished investigation in the queue of reviews."""

    namespace: str
    name: str
    uid: UUID
    alert_type: str
    chain: str
    chain_namespace: str
    finished_at: datetime
    finding: str = Field(description="Summary of the finding. Untrusted text.")
    confidence: str = Field(description="Confidence of the agents: High, Medium, Low or Inconclusive.")
    shown_confidence: str | None = Field(default=None, description=SHOWN_CONFIDENCE)
    outcome: IncidentOutcome | None = Field(default=None, description=OUTCOME)
    state: str = Field(description="NeedsReview, InProgress or Reviewed.")
    verdict: str | None = Field(description="Right, Partly or Wrong: the least favourable one that counts.")
    claimed_by: tuple[str, ...] = Field(description="People who review it now.")
    reviewed_by: tuple[str, ...] = Field(description="People whose verdicts count.")
    object_deleted: bool = Field(description="Whether the Investigation was deleted. Its record can be reviewed still.")

    @classmethod
    def of(cls, found: QueuedReview, high: HighVerdicts | None) -> Self:
        """Converts an entry of the queue; `high` are the verdicts on findings of its Chain with confidence High."""
        known = found.confidence in _CONFIDENCES  # a newer version may have written another word
        return cls(
            namespace=found.namespace,
            name=found.name,
            uid=found.id,
            alert_type=found.alert_type,
            chain=found.chain,
            chain_namespace=found.chain_namespace,
            finished_at=found.finished_at,
            finding=found.summary,
            confidence=found.confidence,
            shown_confidence=shown_confidence(Confidence(found.confidence), high) if known else None,
            outcome=found.outcome,
            state=found.state.value,
            verdict=found.verdict.value if found.verdict else None,
            claimed_by=found.claimed_by,
            reviewed_by=found.reviewed_by,
            object_deleted=found.object_deleted_at is not None,
        )


class ReviewPage(View):
    """A page of the queue, the last to end first."""

    items: tuple[ReviewItem, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class BlamedObject(View):
    """The object that was the root cause, as a person says."""

    api_version: str | None = None
    kind: str
    namespace: str | None = None
    name: str


class ReviewActivityView(View):
    """One entry of a review: the action of one person."""

    review: str = Field(description="Name of the Review.")
    author: str
    action: str = Field(description="claimed, completed, reopened or released.")
    verdict: str | None
    root_cause: BlamedObject | None
    note: str | None
    at: datetime | None
    counted: bool = Field(description="Whether it is a verdict that counts.")

    @classmethod
    def of(cls, entry: ReviewActivity, counted: Sequence[ReviewActivity]) -> Self:
        """Converts an entry of the log.

        Args:
            entry: the entry.
            counted: those that count.
        """
        return cls(
            review=entry.review,
            author=entry.author,
            action=entry.action.value,
            verdict=entry.verdict.value if entry.verdict else None,
            root_cause=BlamedObject.model_validate(entry.root_cause) if entry.root_cause else None,
            note=entry.note,
            at=entry.at,
            counted=any(one is entry for one in counted),
        )


class ReviewView(View):
    """Reviews of the finding of one investigation."""

    namespace: str
    name: str
    uid: UUID
    reviewable: bool = Field(description="Whether it has ended with a finding, and is no replay.")
    state: str = Field(description="NeedsReview, InProgress or Reviewed.")
    verdict: str | None = Field(description="Right, Partly or Wrong: the least favourable one that counts.")
    root_cause: BlamedObject | None = Field(description="Root cause that the newest counted verdict names.")
    outcome: IncidentOutcome | None = Field(default=None, description=OUTCOME)
    claimed_by: tuple[str, ...]
    activity: tuple[ReviewActivityView, ...] = Field(description="Everything that was said, the oldest first.")

    @classmethod
    def of(cls, namespace: str, name: str, found: ReviewableRun, log: Sequence[ReviewActivity]) -> Self:
        """Converts the log of an investigation.

        Args:
            namespace: of the investigation.
            name: of it.
            found: the investigation.
            log: everything that was said, in order.
        """
        summary = summarize_reviews(log)
        cause = summary.root_cause
        return cls(
            namespace=namespace,
            name=name,
            uid=found.id,
            reviewable=why_unreviewable(found, name) is None,
            state=summary.state.value,
            verdict=summary.verdict.value if summary.verdict else None,
            root_cause=BlamedObject.model_validate(cause) if cause else None,
            outcome=found.outcome,
            claimed_by=summary.claimed_by,
            activity=tuple(ReviewActivityView.of(entry, summary.counted) for entry in log),
        )


class ReviewsBody(Body):
    """Reviews that the caller submits."""

    action: ReviewIntent = Field(
        description="Claim: the caller reviews them now. Complete: with a verdict. Reopen: they need another look."
    )
    investigations: tuple[ObjectName, ...] = Field(
        min_length=1, max_length=MAX_REVIEWED, description="Names of finished investigations of the namespace."
    )
    verdict: FindingVerdict | None = Field(default=None, description="Verdict, with Complete only.")
    root_cause: RootCauseObject | None = Field(default=None, description="Root cause, with Complete only.")
    note: ReviewNote | None = Field(default=None, description="Reasons and actions taken.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.action == "Complete") != (self.verdict is not None):
            raise ValueError("verdict: set it to Right, Partly or Wrong with action Complete, and with no other")
        if self.root_cause is not None and self.verdict is None:
            raise ValueError("rootCause: belongs to a verdict")
        return self

    def spec(self) -> dict[str, Any]:
        """Returns the fields of a Review that say it, without the investigation."""
        found: dict[str, Any] = {"reopen": True} if self.action == "Reopen" else {}
        if self.verdict is not None:
            found["verdict"] = self.verdict
        if self.root_cause is not None:
            found["rootCause"] = self.root_cause.to_dict()
        if self.note:
            found["note"] = self.note
        return found


class ReviewResult(View):
    """Result for one investigation of the request."""

    investigation: str
    review: str | None = Field(description="Name of the Review that was created.")
    error: str | None = Field(description="Why none was created.")


class ReviewResults(View):
    """Results for each investigation, in the order of the request."""

    items: tuple[ReviewResult, ...]
