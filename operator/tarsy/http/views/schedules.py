"""Models of AlertSchedules, without the text of their Alerts."""

from datetime import datetime
from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.http.views.configuration import ConfiguredView, configured_fields
from tarsy.resources.v1alpha1 import AlertSchedule


class ScheduleView(ConfiguredView):
    """An AlertSchedule."""

    schedule: str = Field(description="Cron expression.")
    time_zone: str = Field(description="Time zone of the expression.")
    suspended: bool = Field(description="Whether creation of Alerts is suspended.")
    alert_type: str = Field(description="Type of the Alerts.")
    last: datetime | None = Field(description="Latest time for which an Alert was created.")
    next: datetime | None = Field(description="Next time. Null while the schedule is suspended or not Ready.")
    active: tuple[str, ...] = Field(description="Names of its Alerts that are not finished.")
    author: str | None = Field(description="User in whose name Alerts are created.")

    @classmethod
    def of(cls, found: AlertSchedule) -> Self:
        """Converts an AlertSchedule."""
        spec, status = found.spec, found.status
        return cls(
            **configured_fields(found),
            schedule=spec.schedule,
            time_zone=spec.time_zone,
            suspended=spec.suspend,
            alert_type=spec.template.alert_type,
            last=status.last_schedule_time,
            next=None if spec.suspend else status.next_schedule_time,
            active=tuple(one.name for one in status.active),
            author=spec.author.username if spec.author else None,
        )


class ScheduleList(View):
    """AlertSchedules, sorted by namespace and name."""

    items: tuple[ScheduleView, ...]
    next: str | None = Field(alias="continue", default=None, description=NEXT_PAGE)
