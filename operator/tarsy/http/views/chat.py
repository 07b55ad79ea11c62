"""Models of questions about an investigation and their answers.

Decision: questions are read from the record, so an answer stays readable after its object has expired. A question that
is not recorded yet, or was rejected, is read from its object; its text is left out, because it is not masked.
"""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from tarsy.http.models import Body, View
from tarsy.http.views.common import NEXT_PAGE, STATE, FailureView, RunRef, Spent
from tarsy.record.reading.trace import QuestionTrace
from tarsy.record.run import State
from tarsy.resources.meta import condition
from tarsy.resources.schema import ObjectName
from tarsy.resources.v1alpha1 import ChatMessage
from tarsy.resources.v1alpha1.common import ConditionType, DesiredState

MAX_QUESTION = 100_000


class Question(Body):
    """A new question about an investigation."""

    question: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION, pattern=r"\S")] = Field(
        description="Text of the question. The whole investigation is its context."
    )
    name: Annotated[ObjectName, Field(description="Name of the ChatMessage. Generated when omitted.")] | None = None


class Asked(View):
    """An accepted question."""

    namespace: str
    name: str
    uid: str
    investigation: str


class ChatMessageView(RunRef):
    """A question and its answer."""

    place: int | None = Field(
        description="Number of the question within the investigation, from 1. Null until it is recorded."
    )
    question: str | None = Field(description="Text with secrets masked. Null until it is recorded.")
    author: str | None
    via: str | None = Field(description="Program that asked in the author's name (Slack). Null if there is none.")
    state: State = Field(description=STATE)
    desired_state: DesiredState
    answer: str | None
    failure: FailureView | None = Field(description="Reason why there is no answer.")
    asked_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    spent: Spent

    @classmethod
    def of(cls, found: QuestionTrace, namespace: str) -> Self:
        """Converts a recorded question."""
        return cls(
            namespace=namespace,
            name=found.name,
            uid=found.id,
            place=found.place,
            question=found.question,
            author=found.author,
            via=found.via,
            state=found.state,
            desired_state=found.desired_state.value,
            answer=found.answer,
            failure=FailureView.of(found.failure),
            asked_at=found.accepted_at,
            started_at=found.started_at,
            finished_at=found.finished_at,
            spent=Spent.of(found.usage, found.cost_usd, found.cost_complete),
        )

    @classmethod
    def not_recorded(cls, found: ChatMessage) -> Self:
        """Converts a question that is not recorded: it is still pending, or was rejected."""
        finished = condition(found.status.conditions, ConditionType.FINISHED)
        state = State.PENDING
        if finished is not None and finished.status == "True":
            state = State.CANCELLED if found.status.phase == "Cancelled" else State.FAILED
        error = found.status.last_error
        return cls(
            namespace=found.metadata.namespace,
            name=found.metadata.name,
            uid=found.metadata.uid,
            place=None,
            question=None,
            author=None,
            via=found.spec.via,
            state=state,
            desired_state=found.spec.desired_state,
            answer=None,
            failure=FailureView(reason=error.reason, message=error.message) if error else None,
            asked_at=found.metadata.creation_timestamp,
            started_at=None,
            finished_at=found.status.finished_at,
            spent=Spent(),
        )


class ChatMessageList(View):
    """Questions in the order in which they were asked."""

    items: tuple[ChatMessageView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class DesiredStateView(View):
    """The desired state that was set on a run."""

    namespace: str
    name: str
    uid: str
    desired_state: DesiredState
    questions: tuple[str, ...] = Field(
        default=(), description="ChatMessages that were cancelled instead, because the investigation had already ended."
    )
