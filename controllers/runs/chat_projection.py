"""Projects the record of an answer onto the status of its ChatMessage and onto Events; pure functions."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from tarsy.controllers.runs.projection import last_error, project_usage
from tarsy.record.reading.conditions import made, phase
from tarsy.record.run import InvestigationRecord, State
from tarsy.resources.meta import Condition, ConditionStatus, set_condition
from tarsy.resources.v1alpha1 import ChatMessage, ChatMessageStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation_status import RecordRef


def project_answer(record: InvestigationRecord, message: ChatMessage, now: datetime) -> ChatMessageStatus:
    """Makes the status of an accepted question.

    Args:
        record: the answer's record.
        message: the object as it is, for its generation and the transition times of its conditions.
        now: the time of a change, with a time zone.
    """
    generation, conditions = message.metadata.generation, message.status.conditions
    for condition in _conditions(record):
        conditions = set_condition(conditions, condition.model_copy(update={"observed_generation": generation}), now)
    return ChatMessageStatus(
        observed_generation=generation,
        conditions=conditions,
        phase=phase(record),
        answer=record.outcome.final_analysis if record.outcome else None,
        attempt=record.attempt,
        usage=project_usage(record),
        last_error=last_error(record),
        queued_at=record.accepted_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        record=RecordRef(id=str(record.id), seal=record.seal),
        record_revision=record.revision,
    )


def news_of_answer(
    record: InvestigationRecord, old: ChatMessageStatus
) -> Iterator[tuple[Literal["Normal", "Warning"], str, str]]:
    """Lists what happened since `old` as Events: type, reason, message."""
    if record.attempt > 1 and record.attempt != (old.attempt or 0) and not record.state.finished:
        yield "Warning", "Resumed", f"The answer was resumed after its worker was lost (attempt {record.attempt})."
    if record.state.finished and old.phase != phase(record):
        failure = record.outcome.failure if record.outcome else None
        if record.state is State.COMPLETED:
            yield "Normal", "Answered", "The question was answered."
        else:
            yield "Warning", phase(record), failure.message if failure else f"There is no answer: {phase(record)}."


def _conditions(record: InvestigationRecord) -> Iterator[Condition]:
    failure = record.outcome.failure if record.outcome else None
    yield made(ConditionType.ACCEPTED, "True", "Planned", f"Chain {record.chain} answers the question.")
    if not record.state.finished:
        yield made(ConditionType.FINISHED, "False", phase(record), "There is no answer yet.")
        yield made(ConditionType.SUCCEEDED, "Unknown", phase(record), "There is no answer yet.")
        return
    done = record.state is State.COMPLETED
    reason = failure.reason if failure else phase(record)
    message = failure.message if failure else "The question was answered." if done else "There is no answer."
    succeeded: ConditionStatus = "True" if done else "False"
    yield made(ConditionType.FINISHED, "True", reason, message)
    yield made(ConditionType.SUCCEEDED, succeeded, reason, message)
