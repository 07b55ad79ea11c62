"""Reconciles AlertSchedules: creates an Alert at each of their times.

Watches: AlertSchedules, their Alerts, Chains. Decides: whether a time has come or was missed, whether an earlier Alert
is still under way, whether the author may create Alerts and use what the template names. Writes: the Alert, `Ready`,
`Fired` (what became of the latest time), the last and the next time, an Event, and the deletion of Alerts beyond the
history limits.

One timer: a reconcile returns the seconds until the next time. Decision: the Alert of a time is created before the
status, and its name is derived from the time. So an operator that dies in between, or a second one for the seconds in
which two overlap, finds the Alert and creates no other. A time that was refused is decided, and is not tried again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tarsy.controllers.machinery.clock import wall_clock
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.schedules.alerts import (
    NoAlert,
    ScheduledTime,
    chain_of,
    create_scheduled,
    delete_beyond_limits,
    scheduled_alerts,
    scheduled_name,
    why_not_created,
)
from tarsy.controllers.schedules.times import FiringResult, ScheduleLook, look_at_clock
from tarsy.plan.cron_times import CronTimes, schedule_errors
from tarsy.resources.meta import Condition, set_condition
from tarsy.resources.schema import whole_seconds
from tarsy.resources.v1alpha1 import Alert, AlertSchedule, AlertScheduleStatus, Chain
from tarsy.resources.v1alpha1.alert_schedule import MAX_ACTIVE, ActiveAlert
from tarsy.resources.v1alpha1.common import ConditionType

LONGEST_SECONDS = 300.0
"""Seconds until the next look at the latest: the clock of a machine may be set."""

_REFUSED = {"PreviousActive": FiringResult.OVERLAP, "Missed": FiringResult.MISSED}


@dataclass(frozen=True, slots=True)
class _Fired:
    """Holds the outcome of a time: the Alert, or the reason why there is none."""

    at: datetime
    reason: str
    message: str
    alert: Alert | None = None


async def reconcile(
    schedule: AlertSchedule, context: ReconcileContext, clock: Callable[[], datetime] | None = None
) -> float | None:
    """Decides about the time that has come; returns the seconds until the next one, None when there is none.

    Args:
        schedule: the object.
        context: of all reconciles.
        clock: the current time, with a time zone; None: that of the machine.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    clock = clock or wall_clock
    now, client, old = clock(), context.kubernetes.client, schedule.status
    if problems := schedule_errors(schedule):
        message = "; ".join(f"{error.field}: {error.message}" for error, _ in problems)
        ready = _condition(schedule, ConditionType.READY, "False", problems[0][1], message)
        status = old.model_copy(update={"next_schedule_time": None, "decided_time": _later(old.decided_time, now)})
        await write_status(client, context.cache, schedule, _with(schedule, status, now, ready))
        return None
    times = CronTimes(schedule.spec.schedule, schedule.spec.time_zone)
    look = look_at_clock(schedule, times, now)
    alerts: Sequence[ScheduledTime] | None = None
    fired: _Fired | None = None
    if look.due is not None or _has_news(schedule, context):
        alerts = await scheduled_alerts(schedule, client)
    if look.due is not None and alerts is not None:
        fired = await _decide(schedule, look, alerts, context)
        if fired.alert is not None and fired.at not in [one.at for one in alerts]:
            alerts = [*alerts, ScheduledTime(fired.at, fired.alert)]
    status = _status(schedule, look, fired, alerts, chain_of(schedule, context), now)
    written = await write_status(client, context.cache, schedule, status)
    if written is not None and fired is not None:
        context.note_firing(FiringResult.CREATED if fired.alert else _REFUSED.get(fired.reason, FiringResult.REFUSED))
        usual = fired.alert is not None or fired.reason == "PreviousActive"
        tell = context.kubernetes.events.tell
        await tell(schedule, fired.reason, fired.message, kind="Normal" if usual else "Warning")
    if alerts is not None:
        await delete_beyond_limits(schedule, alerts, client)
    if look.next is None:
        return None
    return min(max((look.next - clock()).total_seconds(), 0.0), LONGEST_SECONDS)


def _has_news(schedule: AlertSchedule, context: ReconcileContext) -> bool:
    """Whether the Alerts are to be listed although no time has come: one has ended or is gone, or the spec changed."""
    namespace = schedule.metadata.namespace
    if schedule.status.observed_generation != schedule.metadata.generation:
        return True
    for one in schedule.status.active:
        alert = context.cache.get(Alert, namespace, one.name)
        if alert is None or alert.metadata.uid != one.uid or ScheduledTime(_EPOCH, alert).finished:
            return True
    return False


_EPOCH = datetime.fromtimestamp(0, UTC)


async def _decide(
    schedule: AlertSchedule, look: ScheduleLook, alerts: Sequence[ScheduledTime], context: ReconcileContext
) -> _Fired:
    """Creates the Alert of the time that has come, or says why not."""
    at = look.due
    assert at is not None
    shown, name = f"{at:%Y-%m-%dT%H:%M:%SZ}", scheduled_name(schedule, at)
    created = f"Alert {name} was created for {shown}."
    if there := next((one for one in alerts if one.at == at), None):
        return _Fired(at, reason="AlertCreated", message=created, alert=there.alert)
    if not look.in_time:
        spec = schedule.spec
        late = "a minute" if spec.missed_runs == "Skip" else f"{spec.starting_deadline_seconds} s"
        said = f"{shown} passed while no operator was active; an Alert is created at most {late} late ({_MISSED})"
        return _Fired(at, reason="Missed", message=said)
    active = [one for one in alerts if not one.finished]
    if active and schedule.spec.overlap == "Forbid":
        said = f"Skipped {shown}: Alert {active[-1].alert.metadata.name} is not finished (spec.overlap: Forbid)"
        return _Fired(at, reason="PreviousActive", message=said)
    if len(active) >= MAX_ACTIVE:
        said = f"Skipped {shown}: {len(active)} Alerts are not finished; fire less often, or set overlap: Forbid"
        return _Fired(at, reason="TooManyActive", message=said)
    refused = await why_not_created(schedule, context)
    if refused is not None:
        return _Fired(at, refused[0], f"No Alert for {shown}: {refused[1]}")
    made = await create_scheduled(schedule, at, context.kubernetes.client, context.cache)
    if isinstance(made, Alert):
        return _Fired(at, reason="AlertCreated", message=created, alert=made)
    return _Fired(at, made[0], f"No Alert for {shown}: {made[1]}")


_MISSED = "spec.missedRuns, spec.startingDeadlineSeconds"


def _status(
    schedule: AlertSchedule,
    look: ScheduleLook,
    fired: _Fired | None,
    alerts: Sequence[ScheduledTime] | None,
    chain: Chain | NoAlert,
    now: datetime,
) -> AlertScheduleStatus:
    old = schedule.status
    changed: dict[str, object] = {"decided_time": look.due or look.begun, "next_schedule_time": look.next}
    if alerts is not None:
        active = [one.alert.metadata for one in alerts if not one.finished]
        changed["active"] = tuple(ActiveAlert(name=meta.name, uid=meta.uid) for meta in active[-MAX_ACTIVE:])
    if fired is not None and fired.alert is not None:
        changed["last_schedule_time"] = fired.at
    if not isinstance(chain, Chain):
        ready = _condition(schedule, ConditionType.READY, "False", *chain)
    elif schedule.spec.suspend:
        ready = _condition(
            schedule, ConditionType.READY, "True", reason="Suspended", message="spec.suspend: no Alerts are created."
        )
    else:
        ready = _condition(
            schedule, ConditionType.READY, "True", reason="Scheduled", message="Alerts are created at its times."
        )
    conditions = [ready]
    if fired is not None:
        done = "True" if fired.alert is not None else "False"
        conditions.append(_condition(schedule, ConditionType.FIRED, done, fired.reason, fired.message))
    return _with(schedule, old.model_copy(update=changed), now, *conditions)


def _with(
    schedule: AlertSchedule, status: AlertScheduleStatus, now: datetime, *conditions: Condition
) -> AlertScheduleStatus:
    known = status.conditions
    for item in conditions:
        known = set_condition(known, item, now)
    return status.model_copy(update={"observed_generation": schedule.metadata.generation, "conditions": known})


def _condition(schedule: AlertSchedule, kind: ConditionType, status: str, reason: str, message: str) -> Condition:
    return Condition.model_validate(
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": schedule.metadata.generation,
        }
    )


def _later(decided: datetime | None, now: datetime) -> datetime:
    return whole_seconds(now) if decided is None else decided
