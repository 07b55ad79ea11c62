"""Tests the times of cron expressions: against a brute force, and where clocks change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.plan.cron_times import CronTimes, InvalidCron, InvalidTimeZone

BERLIN = "Europe/Berlin"
GAP = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)
"""Evening before 02:00 becomes 03:00 in Berlin."""
TWICE = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
"""Evening before 03:00 becomes 02:00 in Berlin."""
MINUTE = timedelta(minutes=1)


def times(expression: str, zone: str, after: datetime, hours: float) -> list[str]:
    found, now = [], after
    cron = CronTimes(expression, zone)
    while (then := cron.after(now)) is not None and then <= after + timedelta(hours=hours):
        found.append(f"{then.astimezone(ZoneInfo(zone)):%d %H:%M%z}")
        now = then
    return found


def test_a_time_that_does_not_exist_fires_at_the_end_of_the_gap_once() -> None:
    assert times("30 2 * * *", BERLIN, GAP, 48) == ["29 03:00+0200", "30 02:30+0200"]
    assert times("0,30 2,3 * * *", BERLIN, GAP, 12) == ["29 03:00+0200", "29 03:30+0200"]


def test_a_time_that_comes_twice_fires_the_first_time() -> None:
    assert times("30 2 * * *", BERLIN, TWICE, 48) == ["25 02:30+0200", "26 02:30+0100"]


def test_an_hourly_expression_fires_each_hour_that_there_is() -> None:
    assert times("30 * * * *", BERLIN, GAP, 4) == ["28 23:30+0100", "29 00:30+0100", "29 01:30+0100", "29 03:30+0200"]
    assert times("30 * * * *", BERLIN, TWICE, 4) == [
        "25 00:30+0200",
        "25 01:30+0200",
        "25 02:30+0200",
        "25 02:30+0100",
    ]


def test_steps_within_the_hour_are_left_out_in_the_gap_and_come_twice() -> None:
    assert times("*/30 2 * * *", BERLIN, GAP, 12) == []
    assert times("*/30 2 * * *", BERLIN, TWICE, 12) == [
        "25 02:00+0200",
        "25 02:30+0200",
        "25 02:00+0100",
        "25 02:30+0100",
    ]


fields = st.tuples(
    st.sampled_from(["*", "*/7", "5", "0-10/5", "30,45", "59"]),
    st.sampled_from(["*", "*/5", "2", "1-3", "0,2,23"]),
    st.sampled_from(["*", "1", "25,29", "28-31"]),
    st.sampled_from(["*", "3", "10", "3,10"]),
    st.sampled_from(["*", "SUN", "1-5"]),
)
zones = st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
starts = st.sampled_from([GAP, TWICE, datetime(2026, 3, 8, 4, tzinfo=UTC), datetime(2026, 4, 4, 12, tzinfo=UTC)])


def in_field(text: str, value: int, lowest: int, highest: int) -> bool:
    for part in text.replace("SUN", "0").split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        begin, end = (lowest, highest) if span == "*" else (int(low), int(high or low))
        if value in range(begin, end + 1, int(step or 1)):
            return True
    return False


def fits(expression: tuple[str, ...], shown: datetime) -> bool:
    minute, hour, day, month, weekday = expression
    by_day = in_field(day, shown.day, 1, 31)
    by_weekday = in_field(weekday, shown.isoweekday() % 7, 0, 6)
    either = by_day and by_weekday if "*" in (day[0], weekday[0]) else by_day or by_weekday
    clock = in_field(minute, shown.minute, 0, 59) and in_field(hour, shown.hour, 0, 23)
    return clock and in_field(month, shown.month, 1, 12) and either


def brute(expression: tuple[str, ...], zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Every minute of the span, and what the rules of the module say about it."""
    fixed = zone != ZoneInfo("UTC") and not expression[0].startswith("*") and not expression[1].startswith("*")
    now = after + MINUTE
    while now <= until:
        shown = now.astimezone(zone)
        skipped: list[datetime] = []
        before = (now - MINUTE).astimezone(zone).replace(tzinfo=None)
        if fixed:
            wall = before + MINUTE
            while wall < shown.replace(tzinfo=None):  # the clock jumped over these
                skipped.append(wall)
                wall += MINUTE
        first = shown.fold == 0 or not fixed
        if (first and fits(expression, shown)) or any(fits(expression, wall) for wall in skipped):
            yield now
        now += MINUTE


@given(fields, zones, starts, st.integers(min_value=0, max_value=1500))
def test_times_are_those_of_the_brute_force(
    expression: tuple[str, ...], zone: str, start: datetime, shift: int
) -> None:
    text, after = " ".join(expression), start + shift * MINUTE
    until = after + timedelta(hours=10)
    wanted = list(brute(expression, ZoneInfo(zone), after, until))
    cron, found, now = CronTimes(text, zone), [], after
    while (then := cron.after(now)) is not None and then <= until:
        found.append(then)
        now = then
    assert found == wanted
    assert cron.latest(after, until) == (wanted[-1] if wanted else None)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_the_latest_time_is_found_however_long_ago_the_last_one_was(ago: timedelta) -> None:
    now = datetime(2026, 11, 24, 12, 0, 30, tzinfo=UTC)
    assert CronTimes("* * * * *", "UTC").latest(now - ago, now) == (
        now.replace(second=0) if now - ago < now.replace(second=0) else None
    )
    yearly = datetime(2026, 1, 1, tzinfo=UTC)
    assert CronTimes("0 0 1 1 *", "UTC").latest(now - ago, now) == (yearly if now - ago < yearly else None)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * *", "has 4 fields; write five: minute, hour"),
        ("* * * * * *", "has 6 fields"),
        ("60 * * * *", "the minute is invalid"),
        ("* 24 * * *", "the hour is invalid"),
        ("* * 0 * *", "the day of month is invalid"),
        ("* * * 13 *", "the month is invalid"),
        ("* * * * 8", "the day of week is invalid"),
        ("*/0 * * * *", "the minute is invalid"),
        ("0 0 30 2 *", "the day of month is invalid"),
        ("0 0 ١ * *", "the day of month is invalid"),
        ("@daily - - - -", "the minute is invalid"),
    ],
)
def test_a_mistake_is_told_with_its_field(expression: str, words: str) -> None:
    with pytest.raises(InvalidCron, match=r".*".join(words.split("; "))) as told:
        CronTimes(expression, "UTC")
    assert words in str(told.value)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../etc/passwd", "/etc/localtime", "Europe", "a\x00b"])
def test_an_unknown_time_zone_is_told(zone: str) -> None:
    with pytest.raises(InvalidTimeZone, match="write an IANA name"):
        CronTimes("0 9 * * *", zone)
