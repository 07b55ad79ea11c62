"""AlertSchedule: creates Alerts at the times of a cron expression, for routine checks.

Decision: the template and the author cannot change. An Alert of the schedule has the rights of the schedule's author,
so an edit of the template by somebody else would use rights that are not theirs. Times, suspension and limits can
change.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Lenient, Model, ObjectName, Time, Uid
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    WEEK_SECONDS,
    YEAR_SECONDS,
    Author,
    Budget,
    ConfigStatus,
    immutable,
)

MAX_ACTIVE = 20
"""Alerts of one schedule that are not finished. At this number nothing more is created."""

HOUR_SECONDS = 3600
HistoryLimit = Annotated[int, Field(ge=0, le=100)]


class ScheduledAlert(AlertContent):
    """Content of the Alerts that a schedule creates."""

    budget: Budget | None = Field(
        default=None, description="Usage limits of each run. If the chain sets a lower limit, the lower one applies."
    )
    ttl_seconds_after_finished: Annotated[int, Field(ge=HOUR_SECONDS, le=YEAR_SECONDS)] = Field(
        default=WEEK_SECONDS,
        description="Seconds from the end of an investigation to the deletion of its Alert, at least an hour.",
    )


class AlertScheduleSpec(Model):
    """Times, and the Alert that is created at each of them."""

    RULES = immutable("AlertSchedule", "template", "author")

    schedule: Annotated[str, StringConstraints(min_length=9, max_length=128)] = Field(
        description="Cron expression of five fields: minute, hour, day of month, month, day of week."
    )
    time_zone: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        default="UTC", description="IANA name of the time zone of the expression, such as Europe/Berlin."
    )
    suspend: bool = Field(
        default=False,
        description="Whether creation of Alerts is suspended. Times that pass meanwhile are not caught up.",
    )
    overlap: Literal["Forbid", "Allow"] = Field(
        default="Forbid",
        description="Whether an Alert is created while an earlier one of this schedule has not finished. With "
        "Forbid, the time is skipped.",
    )
    missed_runs: Literal["Skip", "RunOnce"] = Field(
        default="Skip",
        description="What happens with times that passed while no operator was active. Skip: nothing; an Alert is "
        "created at most a minute late. RunOnce: one Alert is created for the latest of them, at most "
        "startingDeadlineSeconds late.",
    )
    starting_deadline_seconds: Annotated[int, Field(ge=60, le=WEEK_SECONDS)] = Field(
        default=HOUR_SECONDS,
        description="Maximum delay in seconds after its time with which an Alert is still created, for RunOnce.",
    )
    successful_alerts_history_limit: HistoryLimit = Field(
        default=3, description="Number of finished Alerts with a successful investigation that are kept."
    )
    failed_alerts_history_limit: HistoryLimit = Field(
        default=3, description="Number of other finished Alerts that are kept."
    )
    template: ScheduledAlert = Field(description="Content of each Alert.")
    author: Author | None = Field(
        default=None,
        description="The user who created this object. Set by admission; leave it out. Alerts are created only if this "
        "user may create them, and in the name of this user.",
    )


class ActiveAlert(Lenient):
    """An Alert of a schedule that is not finished."""

    name: ObjectName = Field(description="Name of the Alert.")
    uid: Uid = Field(description="metadata.uid of the Alert.")


class AlertScheduleStatus(ConfigStatus):
    """Readiness of the schedule, its last and its next time."""

    last_schedule_time: Time | None = Field(default=None, description="Latest time for which an Alert was created.")
    next_schedule_time: Time | None = Field(
        default=None, description="Next time. Not set while the schedule is suspended or not Ready."
    )
    decided_time: Time | None = Field(
        default=None,
        description="Time up to which it is decided whether Alerts were created. Earlier times create none.",
    )
    active: tuple[ActiveAlert, ...] = Field(
        default=(), max_length=MAX_ACTIVE, description="Alerts of this schedule that are not finished."
    )


class AlertSchedule(Resource[AlertScheduleSpec, AlertScheduleStatus]):
    """Creates Alerts at the times of a cron expression, for example for a check every morning."""

    KIND: ClassVar[str] = "AlertSchedule"
    PLURAL: ClassVar[str] = "alertschedules"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tsched",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Schedule", ".spec.schedule", description="Cron expression."),
        Column("Time zone", ".spec.timeZone", description="Time zone of the expression."),
        Column("Suspend", ".spec.suspend", "boolean", "Whether creation of Alerts is suspended."),
        *READY_COLUMNS,
        Column("Last", ".status.lastScheduleTime", "date", "Time since the latest time with an Alert."),
        Column("Next", ".status.nextScheduleTime", description="Next time, in UTC."),
        AGE,
        Column("Alert type", ".spec.template.alertType", description="Type of the Alerts.", wide=True),
        Column(
            "Fired",
            '.status.conditions[?(@.type=="Fired")].reason',
            description="Outcome of the latest time.",
            wide=True,
        ),
        Column("Author", ".spec.author.username", description="User in whose name Alerts are created.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["AlertSchedule"] = "AlertSchedule"
    spec: AlertScheduleSpec
    status: AlertScheduleStatus = AlertScheduleStatus()
