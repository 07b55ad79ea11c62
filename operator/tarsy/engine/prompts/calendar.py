"""Renders tier 0 of a system message: the start time of an execution, and the kind of day.

The time is the record's, not this process's: an attempt that resumes before the first boundary writes the same words.
A holiday beats a weekend. The block tells the model that it is its only source for weekdays and holidays, because
models work both out wrongly.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from tarsy.engine.prompts.template import template

HOLIDAYS: Final[Mapping[tuple[int, int], str]] = MappingProxyType({(1, 1): "New Year's Day", (12, 25): "Christmas Day"})
"""Month and day of the days when, everywhere, few people are at work."""

# Not strftime: its names follow the locale of the machine.
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def calendar(now: datetime) -> str:
    """The calendar block for a moment.

    Args:
        now: when the execution began, as recorded, with a time zone.
    """
    now = now.astimezone(UTC)
    holiday = HOLIDAYS.get((now.month, now.day))
    if holiday:
        kind, staffing = f"GLOBAL_HOLIDAY ({holiday})", "holiday"
    elif now.weekday() >= 5:
        kind, staffing = "WEEKEND", "weekend"
    else:
        kind, staffing = "WEEKDAY", "weekday"
    return template("calendar").substitute(
        time=f"{now:%Y-%m-%d %H:%M}",
        weekday=_WEEKDAYS[now.weekday()],
        kind=kind,
        staffing=template(f"staffing_{staffing}").substitute(),
    )
