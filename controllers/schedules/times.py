"""Decides which time of an AlertSchedule is to be decided about now, and when the next one is.

Watches nothing and writes nothing: a pure function of the object, its times and a clock.

Decision: only the latest time that passed counts; older ones create no Alert. A schedule that is new, or whose spec has
changed, begins with its creation, or with the moment at which the operator sees the change: suspending it, or another
expression, never makes up for times that passed before.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tarsy.plan.cron_times import CronTimes
from tarsy.resources.meta import ObjectMeta
from tarsy.resources.schema import whole_seconds
from tarsy.resources.v1alpha1 import AlertSchedule

SCHEDULE_NAME = "tarsy.dev/schedule"
"""Annotation of an Alert with the name of its AlertSchedule."""


class FiringResult(StrEnum):
    """Lists the outcomes of a time."""

    CREATED = "created"
    REFUSED = "refused"
    OVERLAP = "overlap"
    MISSED = "missed"


ON_TIME = timedelta(seconds=60)
"""How late an Alert is created where missed times are skipped: a busy operator is late, not away."""


@dataclass(frozen=True, slots=True)
class ScheduleLook:
    """Holds the position of the clock in a schedule."""

    due: datetime | None
    """The time to decide about; None: none has passed."""

    in_time: bool
    """Whether its Alert may still be created."""

    begun: datetime
    """Times up to this one are decided."""

    next: datetime | None
    """The next time; None: the schedule is suspended, or has none."""


def look_at_clock(schedule: AlertSchedule, times: CronTimes, now: datetime) -> ScheduleLook:
    """Finds the time to decide about.

    Args:
        schedule: the object.
        times: of its expression.
        now: the current time, with a time zone.
    """
    spec, begun = schedule.spec, _begun(schedule, now)
    if spec.suspend:
        return ScheduleLook(None, False, begun, None)
    due = times.latest(begun, now) if begun < now else None
    late = ON_TIME if spec.missed_runs == "Skip" else timedelta(seconds=spec.starting_deadline_seconds)
    return ScheduleLook(due, due is not None and now - due <= late, begun, times.after(now))


def _begun(schedule: AlertSchedule, now: datetime) -> datetime:
    decided, meta = schedule.status.decided_time, schedule.metadata
    if decided is None:
        return meta.creation_timestamp or whole_seconds(now)
    return max(decided, whole_seconds(now)) if _has_changed(schedule, meta) else decided


def _has_changed(schedule: AlertSchedule, meta: ObjectMeta) -> bool:
    return schedule.status.observed_generation != meta.generation
