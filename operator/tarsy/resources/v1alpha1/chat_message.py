"""ChatMessage: one follow-up question to an investigation.

Decision: question and answer are one object, like a pod and its exit code, so `kubectl wait` can wait for an answer.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import Model, Time, ValidationRule, clipped
from tarsy.resources.v1alpha1.common import (
    DESIRED_STATE_ONLY_FORWARD,
    STAMPED,
    Author,
    DesiredState,
    NameRef,
    immutable,
)
from tarsy.resources.v1alpha1.investigation_status import Count, LastError, Phase, RecordRef, UsageSummary

MAX_ANSWER = 8192


class ChatMessageSpec(Model):
    """The question."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        DESIRED_STATE_ONLY_FORWARD,
        *immutable("ChatMessage", "investigationRef", "question", "author", "via"),
    )

    investigation_ref: NameRef = Field(description="Investigation that the question is about.")
    question: Annotated[str, StringConstraints(min_length=1, max_length=100_000)] = Field(description="The question.")
    author: Author | None = Field(default=None, description=STAMPED)
    via: Literal["Slack"] | None = Field(
        default=None,
        description="Program that asked on behalf of the author. Only the operator sets it; leave it out. Slack: the "
        "author asked in a Slack thread and is in the administrator's list of Slack users.",
    )
    desired_state: DesiredState = Field(
        default="Running",
        description="Desired state. Running: answer the question. Concluded: stop now and answer with the "
        "information available. Cancelled: stop without an answer. It can only move forward.",
    )


class ChatMessageStatus(Status):
    """Answer and progress."""

    phase: Phase | None = Field(
        default=None,
        description="Phase for display: Pending (not accepted yet), Queued (waiting for a worker, or for the "
        "previous question), Running, Concluding (asked to stop and answer), Succeeded, Failed, Cancelled, TimedOut.",
    )
    answer: Annotated[str, clipped(MAX_ANSWER), StringConstraints(max_length=MAX_ANSWER)] | None = Field(
        default=None, description="Answer, truncated if it is long. The record has the full text."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="Number of times a worker has claimed the question. More than 1 after a crash."
    )
    usage: UsageSummary | None = Field(default=None, description="Usage of the answer so far.")
    last_error: LastError | None = Field(default=None, description="Error that prevented the answer.")
    queued_at: Time | None = Field(default=None, description="Time at which the question was queued.")
    started_at: Time | None = Field(default=None, description="Time at which a worker first claimed the question.")
    finished_at: Time | None = Field(default=None, description="Time at which the answer ended.")
    record: RecordRef | None = Field(default=None, description="Reference to the full record of the answer.")
    record_revision: Count | None = Field(default=None, description="Revision of the record that this status reflects.")


class ChatMessage(Resource[ChatMessageSpec, ChatMessageStatus]):
    """One follow-up question to an investigation, and its answer."""

    KIND: ClassVar[str] = "ChatMessage"
    PLURAL: ClassVar[str] = "chatmessages"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tchat",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Investigation", ".spec.investigationRef.name", description="Investigation that the question is about."),
        Column("Phase", ".status.phase", description="Phase of the answer."),
        AGE,
        Column("Author", ".spec.author.username", description="User who asked the question.", wide=True),
        Column("Via", ".spec.via", description="Program that asked on behalf of the author.", wide=True),
        Column("Question", ".spec.question", description="The question.", wide=True),
        Column("Answer", ".status.answer", description="The answer.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.investigationRef.name",)

    kind: Literal["ChatMessage"] = "ChatMessage"
    status: ChatMessageStatus = ChatMessageStatus()
