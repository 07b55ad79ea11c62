"""Questions about an investigation, and their answers.

Decision: the record tells what there is, so an answer stays readable when its object has expired; a question that is
not on record yet, or was not taken, is told from its object, without its text, which nobody has masked.
"""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from tarsy.http.route import Body, View
from tarsy.http.views.common import STATE, FailureView, RunRef, Spent
from tarsy.record.run import State
from tarsy.resources.meta import condition
from tarsy.resources.schema import ObjectName
from tarsy.resources.v1alpha1 import ChatMessage
from tarsy.resources.v1alpha1.common import ConditionType, DesiredState
from tarsy.store.traced import Answer

MAX_QUESTION = 100_000


class Question(Body):
    """A question to ask."""

    question: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION, pattern=r"\S")] = Field(
        description="What is asked, with the whole investigation as context."
    )
    name: Annotated[ObjectName, Field(description="Of the ChatMessage; one is made when not given.")] | None = None


class Asked(View):
    """A question that was taken to be asked."""

    namespace: str
    name: str
    uid: str
    investigation: str


class ChatMessageView(RunRef):
    """A question and what became of it."""

    place: int | None = Field(
        description="Its turn among the questions about the investigation, from 1; null: none yet."
    )
    question: str | None = Field(description="With secrets masked; null: it is not on record.")
    author: str | None
    state: State = Field(description=STATE)
    desired_state: DesiredState
    answer: str | None
    failure: FailureView | None = Field(description="Why there is no answer.")
    asked_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    spent: Spent

    @classmethod
    def of(cls, found: Answer, namespace: str) -> Self:
        """A question on record."""
        return cls(
            namespace=namespace,
            name=found.name,
            uid=found.id,
            place=found.place,
            question=found.question,
            author=found.author,
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
        """A question that is not on record: it waits to be looked at, or was not taken."""
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
    """Questions in their order."""

    items: tuple[ChatMessageView, ...]
    next: str | None = Field(
        alias="continue", description="Give it as `continue` for the next page; null: this was the last."
    )


class DesiredStateView(View):
    """What was asked of a run; it takes effect at once.

    `questions` are the ChatMessages that it was asked of instead, because the investigation itself had ended.
    """

    namespace: str
    name: str
    uid: str
    desired_state: DesiredState
    questions: tuple[str, ...] = ()
