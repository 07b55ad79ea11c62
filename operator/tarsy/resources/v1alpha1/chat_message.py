"""ChatMessage: one follow-up question to an investigation.

Decision: question and answer are one object, like a pod and its exit code, so `kubectl wait` can wait for an answer.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import Model, Rule, clipped
from tarsy.resources.v1alpha1.common import DESIRED_STATE_ONLY_FORWARD, DesiredState, NameRef, immutable


class ChatMessageSpec(Model):
    """The question."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        DESIRED_STATE_ONLY_FORWARD,
        *immutable("ChatMessage", "investigationRef", "question"),
    )

    investigation_ref: NameRef = Field(description="The Investigation that is asked about.")
    question: Annotated[str, StringConstraints(min_length=1, max_length=100_000)] = Field(description="The question.")
    desired_state: DesiredState = Field(
        default="Running",
        description="Running; Concluded: stop now and answer with what is known; Cancelled. Only forward.",
    )


class ChatMessageStatus(Status):
    """The answer."""

    phase: Literal["Pending", "Queued", "Running", "Succeeded", "Failed", "Cancelled", "TimedOut"] | None = Field(
        default=None, description="For people: where the answer is."
    )
    answer: Annotated[str, clipped(8192), StringConstraints(max_length=8192)] | None = Field(
        default=None, description="The answer, cut when it is long; the record has all of it."
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
        Column("Question", ".spec.question", description="The question.", wide=True),
        Column("Answer", ".status.answer", description="The answer.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.investigationRef.name",)

    kind: Literal["ChatMessage"] = "ChatMessage"
    status: ChatMessageStatus = ChatMessageStatus()
