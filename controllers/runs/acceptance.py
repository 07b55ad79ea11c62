"""Decides how long a run waits to be accepted, and writes the status of one that waits or is never accepted.

Watches: nothing of its own. Decides: when the wait of an Investigation or ChatMessage is over: after
`acceptanceTimeoutSeconds` of the object, else of the InvestigationDefaults of its namespace or the library, else one
hour. Writes: the conditions and the last error of the object, and an Event when it gives the object up.

Decision: the wait is counted from the first refusal that people could read (when `Accepted` became False), not from the
object's creation, so that an operator that was down for a night gives up nothing unseen. An object that was given up is
finished: correcting its configuration later does not start it, because nobody expects it any more.
"""

from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import set_alike, write_status
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.run_secret import remove_run_secret
from tarsy.plan.resolve import defaults_for
from tarsy.record.reading.conditions import made
from tarsy.resources.meta import Condition, Conditions, ConditionStatus, condition, set_condition
from tarsy.resources.v1alpha1 import ChatMessage, ChatMessageStatus, Investigation, InvestigationStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation_status import LastError

RECHECK_SECONDS = 30.0
"""Seconds until an object that waits is looked at again: ConfigMaps, Namespaces and rights are not watched."""

ACCEPTANCE_SECONDS = 3600
"""Seconds to wait where neither the object nor any InvestigationDefaults set a time."""

NOT_ACCEPTED = "NotAccepted"
_S = TypeVar("_S", bound=InvestigationStatus | ChatMessageStatus)
_REJECTED: tuple[tuple[ConditionType, ConditionStatus], ...] = (
    (ConditionType.ACCEPTED, "False"),
    (ConditionType.FINISHED, "True"),
    (ConditionType.SUCCEEDED, "False"),
)
_CANCELLED = ("CancelledBeforeStart", "ConcludedBeforeStart")


async def wait_for_acceptance(
    run: Investigation | ChatMessage, refusal: NotYet, context: ReconcileContext, now: datetime
) -> float | None:
    """Writes why a run is not accepted, and gives it up when its wait is over.

    Args:
        run: the object, which has no record yet.
        refusal: why it is not accepted.
        context: of the reconcile.
        now: the current time.

    Returns:
        The seconds until the next look; None when the object was given up.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    meta, old = run.metadata, run.status
    kubernetes, cache = context.kubernetes, context.cache
    own = run.spec.acceptance_timeout_seconds if isinstance(run, Investigation) else None
    wait = acceptance_timeout(own, meta.namespace, cache, context.settings.library_namespace)
    until = deadline(old.conditions, wait, now)
    if now < until:
        status = waiting(old, meta.generation, refusal.reason, refusal.message, until, now)
        await write_status(kubernetes.client, cache, run, status)
        return min(RECHECK_SECONDS, (until - now).total_seconds() + 1)
    await remove_run_secret(run, context)
    status = given_up(old, meta.generation, refusal.reason, refusal.message, wait, now)
    if await write_status(kubernetes.client, cache, run, status) is not None and status.last_error:
        await kubernetes.events.tell(run, NOT_ACCEPTED, status.last_error.message, kind="Warning")
    return None


def acceptance_timeout(own: int | None, namespace: str, cache: Cache, library_namespace: str) -> timedelta:
    """Finds how long an object waits to be accepted.

    Args:
        own: `acceptanceTimeoutSeconds` of the object, in seconds; None when not set.
        namespace: of the object.
        cache: holds the InvestigationDefaults.
        library_namespace: whose InvestigationDefaults are used where the namespace has none.
    """
    defaults = defaults_for(namespace, cache, library_namespace)
    of_namespace = defaults.spec.acceptance_timeout_seconds if defaults is not None else None
    return timedelta(seconds=next((it for it in (own, of_namespace) if it is not None), ACCEPTANCE_SECONDS))


def deadline(conditions: Conditions, wait: timedelta, now: datetime) -> datetime:
    """Finds when an object is given up.

    Args:
        conditions: of the object; the wait is counted from `Accepted` having become False.
        wait: how long it waits.
        now: the current time; the wait is counted from here when the object was not refused before.
    """
    accepted = condition(conditions, ConditionType.ACCEPTED)
    since = accepted.last_transition_time if accepted is not None and accepted.status == "False" else None
    return (since or now.replace(microsecond=0)) + wait


def waiting(status: _S, generation: int, reason: str, message: str, until: datetime, now: datetime) -> _S:
    """Makes the status of an object that waits.

    Args:
        status: of the object.
        generation: of the object.
        reason: why it is not accepted, for the condition.
        message: the same as a sentence.
        until: when it is given up.
        now: the current time.
    """
    text = f"The run has not started. If it is not accepted before {until:%Y-%m-%dT%H:%M:%SZ}, it ends as NotAccepted."
    refused = LastError(reason=reason, message=message)
    finished = made(ConditionType.FINISHED, "False", NOT_ACCEPTED, text)
    succeeded = made(ConditionType.SUCCEEDED, "Unknown", NOT_ACCEPTED, "The run has not started.")
    known = _conditions(status, generation, refused, (finished, succeeded), now)
    return type(status)(observed_generation=generation, conditions=known, phase="Pending", last_error=refused)


def given_up(status: _S, generation: int, reason: str, message: str, wait: timedelta, now: datetime) -> _S:
    """Makes the status of an object whose wait is over.

    Args:
        status: of the object.
        generation: of the object.
        reason: why it was not accepted, for the condition.
        message: the same as a sentence.
        wait: how long it waited.
        now: the current time.
    """
    text = f"It was not accepted within {wait.total_seconds():.0f} s ({reason}): {message}"
    finished = made(ConditionType.FINISHED, "True", NOT_ACCEPTED, text)
    succeeded = made(ConditionType.SUCCEEDED, "False", NOT_ACCEPTED, text)
    refused = LastError(reason=reason, message=message)
    return type(status)(
        observed_generation=generation,
        conditions=_conditions(status, generation, refused, (finished, succeeded), now),
        phase="Failed",
        last_error=LastError(reason=NOT_ACCEPTED, message=text),
        finished_at=now.replace(microsecond=0),
    )


def rejected(
    run: Investigation | ChatMessage, reason: str, message: str, now: datetime
) -> InvestigationStatus | ChatMessageStatus:
    """Makes the status of an object that is never accepted.

    Args:
        run: the object.
        reason: why it is not accepted, for the conditions; one of a cancellation gives phase Cancelled.
        message: the same as a sentence.
        now: the current time.
    """
    status, generation = run.status, run.metadata.generation
    return status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": set_alike(status.conditions, _REJECTED, reason, message, generation, now),
            "phase": "Cancelled" if reason in _CANCELLED else "Failed",
            "last_error": LastError(reason=reason, message=message),
            "finished_at": status.finished_at or now.replace(microsecond=0),
        }
    )


def _conditions(
    status: InvestigationStatus | ChatMessageStatus,
    generation: int,
    refused: LastError,
    others: tuple[Condition, ...],
    now: datetime,
) -> Conditions:
    """Sets `Accepted` to what refused the object, and `others`."""
    known = status.conditions
    for item in (made(ConditionType.ACCEPTED, "False", refused.reason, refused.message), *others):
        known = set_condition(known, item.model_copy(update={"observed_generation": generation}), now)
    return known


def was_given_up(conditions: Conditions) -> bool:
    """Checks the conditions of an object for a wait that is over."""
    end = condition(conditions, ConditionType.FINISHED)
    return end is not None and end.status == "True" and end.reason == NOT_ACCEPTED


async def tell_rerun(run: UUID, context: ReconcileContext) -> None:
    """Publishes the status of the investigation that an accepted run reruns: it names that run."""
    record = await context.store.reads.record(run)
    rerun = record.retry_of if record is not None else None
    if rerun is not None and (original := await context.store.reads.record(rerun.id)) is not None:
        context.publish_again(original)
