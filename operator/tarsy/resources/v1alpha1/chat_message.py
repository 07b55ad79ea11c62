"""ChatMessage: one follow-up question to an investigation.

Decision: question and answer are one object, like a pod and its exit code, so `kubectl wait` can wait for an answer.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import Model, Rule, Time, clipped
from tarsy.resources.v1alpha1.common import (
    DESIRED_STATE_ONLY_FORWARD,
    STAMPED,
    Author,
    DesiredState,
    NameRef,
    immutable,
)
from tarsy.resources.v1alpha1.investigation import Count, LastError, Phase, RecordRef, UsageSummary

MAX_ANSWER = 8192


class ChatMessageSpec(Model):
    """The question."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        DESIRED_STATE_ONLY_FORWARD,
        *immutable("ChatMessage", "investigationRef", "question", "author"),
    )

    investigation_ref: NameRef = Field(description="The Investigation that is asked about.")
    question: Annotated[str, StringConstraints(min_length=1, max_length=100_000)] = Field(description="The question.")
    author: Author | None = Field(default=None, description=STAMPED)
    desired_state: DesiredState = Field(
        default="Running",
        description="Running; Concluded: stop now and answer with what is known; Cancelled. Only forward.",
    )


class ChatMessageStatus(Status):
    """The answer, and how it came about."""

    phase: Phase | None = Field(
        default=None,
        description="For people: Pending (not accepted yet), Queued (waits for a worker, or for the question before), "
        "Running, Concluding (told to stop and answer), Succeeded, Failed, Cancelled, TimedOut.",
    )
    answer: Annotated[str, clipped(MAX_ANSWER), StringConstraints(max_length=MAX_ANSWER)] | None = Field(
        default=None, description="The answer, cut when it is long; the record has all of it."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="How many times a worker has taken it up; more than 1 after a crash."
    )
    usage: UsageSummary | None = Field(default=None, description="What the answer used so far.")
    last_error: LastError | None = Field(default=None, description="Why there is no answer.")
    queued_at: Time | None = Field(default=None, description="When it was queued.")
    started_at: Time | None = Field(default=None, description="When a worker first took it up.")
    finished_at: Time | None = Field(default=None, description="When it ended.")
    record: RecordRef | None = Field(default=None, description="Where the full record of the answer is.")
    record_revision: Count | None = Field(
        default=None, description="The revision of the record that this status was computed from."
    )


class ChatMessage(Resource[ChatMessageSpec, ChatMessageStatus]):
    """One follow-up question to an investigation, and its answer."""

    KIND: ClassVar[str] = "ChatMessage"
    PLURAL: ClassVar[str] = "chatmessages"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tchat",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Investigation", ".spec.investigationRef.name", description="What is asked about."),
        Column("Phase", ".status.phase", description="Where the answer is."),
        AGE,
        Column("Author", ".spec.author.username", description="Who asks.", wide=True),
        Column("Question", ".spec.question", description="The question.", wide=True),
        Column("Answer", ".status.answer", description="The answer.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.investigationRef.name",)

    kind: Literal["ChatMessage"] = "ChatMessage"
    status: ChatMessageStatus = ChatMessageStatus()
