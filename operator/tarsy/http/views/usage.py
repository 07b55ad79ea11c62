"""Models of the usage report.

Decision: calls of unknown usage or cost are counted beside the sum of the known ones; a sum is never estimated.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import dollars
from tarsy.record.reading.usage_report import DailyUsage, UsageBy, UsageDimension, UsageSum


class UsageItem(View):
    """Usage of the calls of one group."""

    name: str = Field(description="Value that the calls are grouped by, such as the name of the model.")
    investigations: int
    findings: int = Field(
        description="Investigations among them that have a finding. One that asked no model is not counted."
    )
    calls: int
    interrupted: int = Field(
        description="Calls that were lost with their worker. They are billed, but their usage is unknown."
    )
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    calls_of_unknown_usage: int
    cost_usd: float | None = Field(alias="costUSD", description="Known cost in US dollars. Null if no cost is known.")
    calls_of_unknown_cost: int

    @classmethod
    def of(cls, found: UsageSum) -> Self:
        """Converts a sum of the record."""
        values = {name: getattr(found, name) for name in UsageSum.__dataclass_fields__}
        return cls(**{**values, "cost_usd": dollars(found.cost_usd)})


class UsageView(View):
    """Usage of models over a number of days."""

    by: UsageBy
    days: int
    items: tuple[UsageItem, ...] = Field(description="Groups, the most expensive first. Days in chronological order.")
    omitted: int = Field(description="Number of groups beyond the limit. The total includes them.")
    total: UsageItem

    @classmethod
    def of(cls, by: UsageBy, days: int, sums: Sequence[UsageSum], limit: int) -> Self:
        """Builds a report.

        Args:
            by: the field that calls are grouped by.
            days: the number of days back from now.
            sums: one for each group, the most expensive first.
            limit: maximum number of groups to return.
        """
        shown = sorted(sums, key=lambda one: one.name)[-limit:] if by == "day" else sums[:limit]
        return cls(
            by=by,
            days=days,
            items=tuple(UsageItem.of(one) for one in shown),
            omitted=len(sums) - len(shown),
            total=UsageItem.of(total(sums)),
        )


class UsageDay(View):
    """A day of a report."""

    date: date
    starts: datetime = Field(description="Time at which the day begins in the time zone of the report.")

    @classmethod
    def all(cls, starts: Sequence[datetime]) -> tuple[Self, ...]:
        """Converts the starts of days in their time zone."""
        return tuple(cls(date=one.date(), starts=one) for one in starts)


class UsageSeries(View):
    """Usage of a group on each day of the report, in the order of `days`."""

    name: str | None = Field(description="Name of the group. Null: all groups that have no series of their own.")
    cost_usd: tuple[float | None, ...] = Field(
        alias="costUSD", description="Known cost in US dollars. Null if calls were made and no cost is known."
    )
    tokens: tuple[int, ...] = Field(description="Input and output tokens.")


class DailyUsageView(View):
    """Usage of models over whole days, by group and by day."""

    by: UsageDimension
    time_zone: str
    days: tuple[UsageDay, ...] = Field(description="Days in chronological order; the last one has not ended.")
    total: UsageItem = Field(description="Sum of all groups. An investigation of several groups counts once.")
    items: tuple[UsageItem, ...] = Field(description="Groups, the most expensive first.")
    omitted: int = Field(description="Number of groups beyond the limit. The total includes them.")
    series: tuple[UsageSeries, ...] = Field(description="Series of the first groups, and that of all others last.")

    @classmethod
    def of(cls, by: UsageDimension, time_zone: str, starts: Sequence[datetime], found: DailyUsage) -> Self:
        """Builds a report.

        Args:
            by: the field that calls are grouped by.
            time_zone: name of the time zone of the days.
            starts: starts of the days in the zone, the oldest first.
            found: the sums of the record.
        """
        return cls(
            by=by,
            time_zone=time_zone,
            days=UsageDay.all(starts),
            total=UsageItem.of(found.total),
            items=tuple(map(UsageItem.of, found.groups)),
            omitted=found.omitted,
            series=tuple(
                UsageSeries(
                    name=name or None,
                    cost_usd=tuple(dollars(day.cost_usd) for day in days),
                    tokens=tuple(day.tokens for day in days),
                )
                for name, days in found.series.items()
            ),
        )


def total(sums: Sequence[UsageSum]) -> UsageSum:
    """Adds up sums. An investigation that used several models counts once for each."""
    known = [one.cost_usd for one in sums if one.cost_usd is not None]
    counts = {
        name: sum(getattr(one, name) for one in sums)
        for name in UsageSum.__dataclass_fields__
        if name not in ("name", "cost_usd")
    }
    return UsageSum(name="total", cost_usd=sum(known, Decimal(0)) if known else None, **counts)
