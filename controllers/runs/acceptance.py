"""How long a run, or a question about one, waits to be accepted, and how it is given up.

Watches: nothing of its own. Decides: when a wait is over: so long after it was first told why it is not accepted, as
`acceptanceTimeoutSeconds` of the object says, else that of the InvestigationDefaults of its namespace or the library,
else an hour. Writes: nothing; its callers write what it makes.

Decision: the wait is counted from the first refusal that people could read (when `Accepted` became False), not from the
object's creation, so an operator that was away for a night gives up nothing that nobody had looked at. A run that was
given up is over: what would be right tomorrow does not wake it, as nobody expects it any more.
"""

from datetime import datetime, timedelta
from typing import TypeVar

from tarsy.controllers.machinery.cache import Cache
from tarsy.plan.resolve import defaults_for
from tarsy.record.conditions import made
from tarsy.resources.meta import Condition, Conditions, condition, set_condition
from tarsy.resources.v1alpha1 import ChatMessageStatus, InvestigationStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation import LastError

ACCEPTANCE_SECONDS = 3600
"""Where neither the object nor any InvestigationDefaults say otherwise."""

NOT_ACCEPTED = "NotAccepted"
_S = TypeVar("_S", InvestigationStatus, ChatMessageStatus)


def acceptance_timeout(own: int | None, namespace: str, cache: Cache, library_namespace: str) -> timedelta:
    """How long an object of `namespace` waits; `own` is what it says itself."""
    defaults = defaults_for(namespace, cache, library_namespace)
    of_namespace = defaults.spec.acceptance_timeout_seconds if defaults is not None else None
    return timedelta(seconds=next((it for it in (own, of_namespace) if it is not None), ACCEPTANCE_SECONDS))


def deadline(conditions: Conditions, wait: timedelta, now: datetime) -> datetime:
    """When an object is given up that has these conditions; counted from `now` when it was not refused before."""
    accepted = condition(conditions, ConditionType.ACCEPTED)
    since = accepted.last_transition_time if accepted is not None and accepted.status == "False" else None
    return (since or now.replace(microsecond=0)) + wait


def waiting(status: _S, generation: int, reason: str, message: str, until: datetime, now: datetime) -> _S:
    """The status of an object that waits, with why, and until when."""
    text = f"The run has not started; unless it is accepted before {until:%Y-%m-%dT%H:%M:%SZ}, it is given up."
    wanted = (
        made(ConditionType.ACCEPTED, "False", reason, message),
        made(ConditionType.FINISHED, "False", NOT_ACCEPTED, text),
        made(ConditionType.SUCCEEDED, "Unknown", NOT_ACCEPTED, "The run has not started."),
    )
    return type(status)(
        observed_generation=generation,
        conditions=_with(status.conditions, wanted, generation, now),
        phase="Pending",
        last_error=LastError(reason=reason, message=message),
    )


def given_up(status: _S, generation: int, reason: str, message: str, wait: timedelta, now: datetime) -> _S:
    """The status of an object whose wait is over."""
    text = f"It was not accepted within {wait.total_seconds():.0f} s ({reason}): {message}"
    wanted = (
        made(ConditionType.ACCEPTED, "False", reason, message),
        made(ConditionType.FINISHED, "True", NOT_ACCEPTED, text),
        made(ConditionType.SUCCEEDED, "False", NOT_ACCEPTED, text),
    )
    return type(status)(
        observed_generation=generation,
        conditions=_with(status.conditions, wanted, generation, now),
        phase="Failed",
        last_error=LastError(reason=NOT_ACCEPTED, message=text),
        finished_at=now.replace(microsecond=0),
    )


def _with(known: Conditions, wanted: tuple[Condition, ...], generation: int, now: datetime) -> Conditions:
    """The conditions with those that are wanted, observed at a generation."""
    for item in wanted:
        known = set_condition(known, item.model_copy(update={"observed_generation": generation}), now)
    return known


def was_given_up(conditions: Conditions) -> bool:
    """Whether the wait of an object with these conditions is over."""
    end = condition(conditions, ConditionType.FINISHED)
    return end is not None and end.status == "True" and end.reason == NOT_ACCEPTED
