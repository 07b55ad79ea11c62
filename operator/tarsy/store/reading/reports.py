"""Reads usage and quality by day, for the HTTP API.

Decision: usage by group, by day and in all is one statement over one scan of the model calls, so that the figures of a
report agree, and each investigation counts once in each of them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import asyncpg

from tarsy.record.reading.usage_report import (
    DailyUsage,
    DayUsage,
    FindingCount,
    MeasuredSuite,
    UsageDimension,
    UsageSum,
)
from tarsy.store.database import fetch_rows
from tarsy.store.queries import load

OTHERS: Final = ""
"""Name of the series of all groups that have none of their own."""


class Reports:
    """Reads reports; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: from `open_pool`.
        namespace_uids: only these namespaces; None: all.
    """

    def __init__(self, pool: asyncpg.Pool, namespace_uids: Sequence[str] | None = None) -> None:
        self._pool = pool
        self._uids = namespace_uids
        self._sql = load("reports")

    async def daily_usage(
        self, by: UsageDimension, starts: Sequence[datetime], *, series: int, limit: int, replays: bool = False
    ) -> DailyUsage:
        """Returns the usage of model calls since the first day.

        Args:
            by: dimension of the groups.
            starts: starts of the days, the oldest first.
            series: maximum number of groups with usage by day; all others are one series.
            limit: maximum number of groups.
            replays: whether calls of replays count.
        """
        values = {"by": by, "starts": list(starts), "series": series, "limit": limit, "replays": replays}
        found = await self._fetch("daily_usage", "the usage of models", namespace_uids=self._uids, **values)
        groups: list[UsageSum] = []
        omitted = 0
        by_day: dict[str, dict[int, DayUsage]] = {}
        names: dict[int, str] = {}
        for row in found:
            if row["in_list"] is not None and row["in_list"] > limit:
                omitted = row["groups"]
            elif row["in_list"] is not None:
                groups.append(_sum(row, row["name"]))
            elif row["in_series"] is not None:
                name = names.setdefault(row["in_series"], OTHERS if row["in_series"] > series else row["name"])
                tokens = row["input_tokens"] + row["output_tokens"]
                by_day.setdefault(name, {})[row["day"]] = DayUsage(row["cost_usd"], tokens)
        (total,) = (_sum(row, "total") for row in found if row["in_list"] is None and row["in_series"] is None)
        return DailyUsage(tuple(groups), omitted, {name: _filled(of, starts) for name, of in by_day.items()}, total)

    async def finding_counts(self, starts: Sequence[datetime]) -> list[FindingCount]:
        """Returns the numbers of findings that ended on each day.

        Args:
            starts: starts of the days, the oldest first.
        """
        values = {"starts": list(starts), "namespace_uids": self._uids}
        return [FindingCount(**row) for row in await self._fetch("finding_counts", "the findings", **values)]

    async def measured_suites(self, since: datetime, limit: int) -> list[MeasuredSuite]:
        """Returns the results of finished EvalRuns, the newest first.

        Args:
            since: earlier ones are left out.
            limit: maximum number of results.
        """
        values = {"since": since, "limit": limit, "namespace_uids": self._uids}
        return [MeasuredSuite(**row) for row in await self._fetch("measured_suites", "evaluations", **values)]

    async def _fetch(self, query: str, what: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))


def _sum(row: asyncpg.Record, name: str) -> UsageSum:
    return UsageSum(name=name, **{field: row[field] for field in UsageSum.__dataclass_fields__ if field != "name"})


def _filled(found: dict[int, DayUsage], starts: Iterable[datetime]) -> tuple[DayUsage, ...]:
    none = DayUsage(Decimal(0), 0)
    return tuple(found.get(day, none) for day, _ in enumerate(starts))
