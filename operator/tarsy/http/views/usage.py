"""Models of the usage report.

Decision: calls of unknown usage or cost are counted beside the sum of the known ones; a sum is never estimated.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import dollars
from tarsy.record.usage_report import UsageBy, UsageSum


class UsageItem(View):
    """Usage of the calls of one group."""

    name: str = Field(description="Value that the calls are grouped by, such as the name of the model.")
    investigations: int
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


def total(sums: Sequence[UsageSum]) -> UsageSum:
    """Adds up sums. An investigation that used several models counts once for each."""
    known = [one.cost_usd for one in sums if one.cost_usd is not None]
    counts = {
        name: sum(getattr(one, name) for one in sums)
        for name in UsageSum.__dataclass_fields__
        if name not in ("name", "cost_usd")
    }
    return UsageSum(name="total", cost_usd=sum(known, Decimal(0)) if known else None, **counts)
