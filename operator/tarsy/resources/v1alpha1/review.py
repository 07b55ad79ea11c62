"""Review: the verdict of one person on the finding of an investigation.

Decision: the state follows from what is written, so that a manifest in Git says the same as a command: without a
verdict the object claims the investigation, with one it completes the review, and `reopen` asks for another look. The
object may be changed by its author, and deleted; the database keeps everything that was said.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import LabelName, Model, ObjectName, Time, ValidationRule
from tarsy.resources.v1alpha1.common import Author, ObjectRef, immutable

MAX_NOTE = 4_096
FindingVerdict = Literal["Right", "Partly", "Wrong"]
ReviewPhase = Literal["InProgress", "Completed", "Reopened"]
ReviewNote = Annotated[str, StringConstraints(max_length=MAX_NOTE)]


class RootCauseObject(Model):
    """The object that was the root cause."""

    api_version: (
        Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9./-]+$")] | None
    ) = Field(default=None, description="API version, such as apps/v1.")
    kind: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[A-Za-z]+$")] = Field(
        description="Kind, such as Deployment."
    )
    namespace: LabelName | None = Field(
        default=None, description="Namespace. Defaults to that of the Review; leave it out for cluster-scoped objects."
    )
    name: ObjectName = Field(description="Name.")


class ReviewSpec(Model):
    """Verdict of a person on the finding of an investigation."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.reopen) || !self.reopen || (!has(self.verdict) && !has(self.rootCause))",
            "reopen requests another review; leave out verdict and rootCause, or remove reopen",
            lambda self: not self.reopen or (self.verdict is None and self.root_cause is None),
            field="reopen",
        ),
        ValidationRule(
            "!has(self.rootCause) || has(self.verdict)",
            "rootCause belongs to a verdict; set verdict to Right, Partly or Wrong",
            lambda self: self.root_cause is None or self.verdict is not None,
            field="rootCause",
        ),
        *immutable("Review", "investigationRef", "author"),
    )

    investigation_ref: ObjectRef = Field(
        description="Finished Investigation in the same namespace. Without a uid, the latest of this name."
    )
    verdict: FindingVerdict | None = Field(
        default=None,
        description="Verdict on the finding. Right: it names the root cause. Partly: it names a part of it, or a "
        "symptom. Wrong: it blames something else. Not set: you have claimed the investigation and are reviewing it.",
    )
    root_cause: RootCauseObject | None = Field(
        default=None, description="Object that was the root cause. Not set if the cause was not an object."
    )
    note: ReviewNote | None = Field(
        default=None, description="Reasons and actions taken. Visible to everyone who may list Reviews."
    )
    reopen: bool | None = Field(
        default=None,
        description="Requests another review. Earlier verdicts no longer count, but stay on record.",
    )
    author: Author | None = Field(
        default=None,
        description="The user who created this object. Set by admission; leave it out. Only this user may change it.",
    )


class ReviewStatus(Status):
    """State of the review."""

    phase: ReviewPhase | None = Field(
        default=None, description="Phase for display: InProgress, Completed, or Reopened. Not set until it is accepted."
    )
    investigation_uid: Annotated[str, StringConstraints(max_length=36)] | None = Field(
        default=None, description="Uid of the Investigation that was found."
    )
    noted_at: Time | None = Field(default=None, description="Time at which the operator stored the review.")


class Review(Resource[ReviewSpec, ReviewStatus]):
    """The verdict of one person on a finding. It claims the investigation until it has a verdict."""

    KIND: ClassVar[str] = "Review"
    PLURAL: ClassVar[str] = "reviews"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("trev",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Investigation", ".spec.investigationRef.name", description="Investigation that is reviewed."),
        Column("Verdict", ".spec.verdict", description="Verdict on its finding."),
        Column("Root cause", ".spec.rootCause.name", description="Object that was the root cause."),
        Column("Phase", ".status.phase", description="InProgress, Completed or Reopened."),
        Column("Author", ".spec.author.username", description="User who reviews."),
        AGE,
        Column(
            "Reason",
            '.status.conditions[?(@.type=="Accepted")].reason',
            description="Whether the review was accepted, or why not.",
            wide=True,
        ),
        Column("Note", ".spec.note", description="Reasons and actions taken.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.investigationRef.name", ".spec.verdict")

    kind: Literal["Review"] = "Review"
    spec: ReviewSpec
    status: ReviewStatus = ReviewStatus()
