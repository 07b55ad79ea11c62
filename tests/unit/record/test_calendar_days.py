"""Tests the starts of days in a time zone."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tarsy.record.reading.usage_report import calendar_days

NOW = datetime(2026, 3, 29, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "dates"),
    [
        ("UTC", ["2026-03-28", "2026-03-29"]),
        ("Europe/Berlin", ["2026-03-29", "2026-03-30"]),
        ("America/New_York", ["2026-03-28", "2026-03-29"]),
        ("Pacific/Kiritimati", ["2026-03-29", "2026-03-30"]),
    ],
)
def test_the_last_day_is_that_of_now_in_the_zone(zone: str, dates: list[str]) -> None:
    assert [str(one.date()) for one in calendar_days(NOW, ZoneInfo(zone), 2)] == dates


def test_days_begin_at_midnight_where_clocks_change() -> None:
    found = [one.astimezone(UTC) for one in calendar_days(NOW, ZoneInfo("Europe/Berlin"), 3)]
    assert found == [
        datetime(2026, 3, 27, 23, tzinfo=UTC),
        datetime(2026, 3, 28, 23, tzinfo=UTC),
        NOW.replace(minute=0),
    ]
    assert [later - earlier for earlier, later in pairwise(found)] == [
        timedelta(hours=24),
        timedelta(hours=23),
    ]


def test_the_number_of_days_is_that_which_is_asked_for() -> None:
    assert [len(calendar_days(NOW, ZoneInfo("UTC"), days)) for days in (1, 366)] == [1, 366]
