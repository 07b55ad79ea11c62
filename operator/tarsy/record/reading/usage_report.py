"""Defines sums of usage, quality of findings by day, and the depth of the queue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo

UsageDimension = Literal["model", "provider", "chain", "alertType", "namespace", "author"]
UsageBy = Literal[UsageDimension, "day"]
"""Dimension by which usage is grouped."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Unfinished runs: waiting for a worker, in progress, without a living worker, and parked."""

    pending: int
    running: int
    orphaned: int
    parked: int = 0


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Usage of model calls, summed for one name.

    `findings` counts investigations with a finding, not answers to questions. `cost_usd` is the sum of known costs,
    None when no cost is known. `interrupted` calls were lost with their worker: they are billed, and count among the
    calls of unknown usage and cost.
    """

    name: str
    investigations: int
    findings: int
    calls: int
    interrupted: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    calls_of_unknown_usage: int
    cost_usd: Decimal | None
    calls_of_unknown_cost: int


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Usage of a group on one day. `cost_usd` is None if calls were made and no cost is known."""

    cost_usd: Decimal | None
    tokens: int


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """Usage by group, and day by day.

    Attributes:
        groups: sums, the most expensive first; `omitted` groups beyond the limit are only in the total.
        series: by name of the first groups, the usage of each day; "" is the sum of all others.
        total: sum of all groups; an investigation counts once.
    """

    groups: tuple[UsageSum, ...]
    omitted: int
    series: dict[str, tuple[DayUsage, ...]]
    total: UsageSum


@dataclass(frozen=True, slots=True)
class FindingCount:
    """Number of findings of a day (index) with an outcome of their incident, a verdict of people and a confidence.

    `confidence` is known of those with a verdict.
    """

    day: int
    outcome: str | None
    verdict: str | None
    confidence: str | None
    findings: int


@dataclass(frozen=True, slots=True)
class MeasuredSuite:
    """Result of a finished EvalRun."""

    namespace: str
    suite: str
    run: str
    chain: str
    finished_at: datetime
    verdict: str
    samples: int
    passed: int


def calendar_days(now: datetime, zone: ZoneInfo, days: int) -> tuple[datetime, ...]:
    """Returns the starts of the last days of a time zone, that of `now` last.

    Args:
        now: with a time zone.
        zone: in which days begin and end. Where clocks change, a day has 23 or 25 hours.
        days: number of days, at least 1.
    """
    today = now.astimezone(zone).date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    return tuple(datetime(date.year, date.month, date.day, tzinfo=zone) for date in dates)
