"""Finds the times of a cron expression in a time zone.

The expression is parsed and evaluated by cronsim, which follows the cron of Debian. Where clocks change:

- An expression that names minute and hour (`30 2 * * *`) fires once a day. A time that does not exist fires at the end
  of the gap; a time that comes twice fires the first time.
- An expression whose minute or hour begins with `*` (`30 * * * *`, `*/15 2 * * *`) fires whenever the clock shows such
  a time: not in the gap, and twice in the hour that comes twice.

Two times that fall on the same moment at the end of a gap are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tarsy.plan.errors import FieldPath, PlanError
from tarsy.resources.v1alpha1.alert_schedule import AlertSchedule

_FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_FIELD = re.compile(r"[0-9A-Za-z*/,#-]+")
_REMEDY = "write a number, a range, a list, a step or *"
_FIRST_WINDOW = timedelta(minutes=2)
_WIDER = 8


class InvalidCron(ValueError):
    """Raised for an expression or a time zone that cannot be used, with a sentence that names the remedy."""


class InvalidTimeZone(InvalidCron):
    """Raised for an unknown time zone."""


class CronTimes:
    """The times of a cron expression.

    Args:
        expression: five fields.
        zone: IANA name of the time zone.

    Raises:
        InvalidTimeZone: there is no such time zone.
        InvalidCron: the expression is invalid, or has no time within fifty years.
    """

    def __init__(self, expression: str, zone: str) -> None:
        self._expression = expression
        self._zone = named_zone(zone)
        fields = expression.split()
        if len(fields) != len(_FIELDS):
            raise InvalidCron(f"{expression!r} has {len(fields)} fields; write five: {', '.join(_FIELDS)}")
        if wrong := [name for name, field in zip(_FIELDS, fields, strict=True) if not _FIELD.fullmatch(field)]:
            raise InvalidCron(f"{expression!r}: the {wrong[0]} is invalid; {_REMEDY}")
        try:
            first = self.after(datetime(2024, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            which = str(error).removeprefix("Bad ").replace("-", " ")
            raise InvalidCron(f"{expression!r}: the {which} is invalid; {_REMEDY}") from None
        if first is None:
            raise InvalidCron(f"{expression!r} has no time within fifty years; correct day and month")

    def after(self, moment: datetime) -> datetime | None:
        """Returns the first time after a moment, in UTC; None when there is none within fifty years."""
        return next(self._following(moment), None)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """Returns the latest time after one moment and not after another, in UTC; None when there is none."""
        window = _FIRST_WINDOW
        while True:
            start = max(after, until - window)
            found = None
            for time in self._following(start):
                if time > until:
                    break
                found = time
            if found is not None or start == after:
                return found
            window *= _WIDER

    def _following(self, moment: datetime) -> Iterator[datetime]:
        last = moment.astimezone(UTC)
        try:
            for local in CronSim(self._expression, moment.astimezone(self._zone)):
                time = local.astimezone(UTC)
                if time > last:
                    last = time
                    yield time
        except OverflowError:  # the year 9999 ends
            return


def schedule_errors(schedule: AlertSchedule) -> list[tuple[PlanError, str]]:
    """Lists the errors of expression and time zone, each with a reason."""
    at, spec = FieldPath.of(schedule), schedule.spec
    try:
        CronTimes(spec.schedule, spec.time_zone)
    except InvalidTimeZone as error:
        return [((at / "timeZone").error(str(error)), "TimeZoneInvalid")]
    except InvalidCron as error:
        return [((at / "schedule").error(str(error)), "ScheduleInvalid")]
    return []


def named_zone(name: str) -> ZoneInfo:
    """Returns a time zone.

    Raises:
        InvalidTimeZone: there is no such time zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidTimeZone(
            f"there is no time zone {name!r}; write an IANA name such as Europe/Berlin, or UTC"
        ) from None
