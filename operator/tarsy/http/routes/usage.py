"""Reports the usage and cost of models, and the quality of findings.

Decision: both are computed from the record for each request.
"""

from datetime import UTC, datetime

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import may, may_list
from tarsy.http.routes.parameters import Namespaces, TimeZone
from tarsy.http.views.quality import EvalReport, QualityView, finding_counts, outcome_counts, review_report
from tarsy.http.views.usage import DailyUsageView, UsageDay, UsageView
from tarsy.plan.cron_times import named_zone
from tarsy.record.reading.usage_report import UsageBy, UsageDimension, calendar_days
from tarsy.resources.v1alpha1 import EvalRun
from tarsy.store.reading.reports import Reports

MAX_DAYS = 366
MAX_NAMES = 1000
MAX_SERIES = 20
MAX_EVAL_RUNS = 200
_DAY = 86_400
_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)
_REVIEWS = Permission("list", "reviews")


class UsageQuery(Query):
    """Grouping and period of the report."""

    namespace: Namespaces = ()
    by: UsageBy = Field(default="model", description="Field to group by. Days are UTC days.")
    days: int = Field(default=30, ge=1, le=MAX_DAYS, description="Length of the period in days, ending now.")
    replays: bool = Field(default=False, description="Whether model calls of replays count too.")
    limit: int = Field(
        default=100, ge=1, le=MAX_NAMES, description="Maximum number of groups. The total includes all of them."
    )


class DaysQuery(Query):
    """Namespaces and whole days of a report."""

    namespace: Namespaces = ()
    days: int = Field(default=30, ge=1, le=MAX_DAYS, description="Number of days. The last one is today.")
    time_zone: TimeZone = "UTC"

    def starts(self) -> tuple[datetime, ...]:
        """Returns the starts of the days, the oldest first."""
        return calendar_days(datetime.now(UTC), named_zone(self.time_zone), self.days)


class DailyUsageQuery(DaysQuery):
    """Grouping, and days of the report."""

    by: UsageDimension = Field(default="chain", description="Field to group by.")
    replays: bool = Field(default=False, description="Whether model calls of replays count too.")
    series: int = Field(
        default=8,
        ge=1,
        le=MAX_SERIES,
        description="Maximum number of groups with usage by day. The others are summed in one more group.",
    )
    limit: int = Field(
        default=100, ge=1, le=MAX_NAMES, description="Maximum number of groups. The total includes all of them."
    )


async def get_usage(ask: CheckedRequest) -> UsageView:
    """Returns the usage of models."""
    query = ask.query(UsageQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    sums = await ask.services.reads.usage(query.days * _DAY, query.by, uids, replays=query.replays)
    return UsageView.of(query.by, query.days, sums, query.limit)


async def get_daily_usage(ask: CheckedRequest) -> DailyUsageView:
    """Returns the usage of models by group and day."""
    query = ask.query(DailyUsageQuery)
    starts, reports = query.starts(), Reports(ask.services.pool, await ask.services.namespaces.uids(query.namespace))
    found = await reports.daily_usage(query.by, starts, series=query.series, limit=query.limit, replays=query.replays)
    return DailyUsageView.of(query.by, query.time_zone, starts, found)


async def get_quality(ask: CheckedRequest) -> QualityView:
    """Returns the quality of findings by day: of what the caller may list."""
    query = ask.query(DaysQuery)
    starts, reports = query.starts(), Reports(ask.services.pool, await ask.services.namespaces.uids(query.namespace))
    found = await reports.finding_counts(starts)
    evaluations = None
    if await may_list(ask, EvalRun, query.namespace):
        measured = await reports.measured_suites(starts[0], MAX_EVAL_RUNS + 1)
        evaluations = EvalReport.of(measured, MAX_EVAL_RUNS)
    return QualityView(
        time_zone=query.time_zone,
        days=UsageDay.all(starts),
        findings=finding_counts(found, query.days),
        outcomes=outcome_counts(found, query.days),
        reviews=review_report(found, query.days) if await may(ask, _REVIEWS, query.namespace) else None,
        evaluations=evaluations,
    )


ROUTES = (
    Route(
        method="GET",
        path="/usage",
        operation="getUsage",
        summary="Get the usage and cost of models",
        handler=get_usage,
        permission=_LIST,
        query=UsageQuery,
        response=UsageView,
    ),
    Route(
        method="GET",
        path="/usage/days",
        operation="getDailyUsage",
        summary="Get the usage and cost of models by group and day",
        handler=get_daily_usage,
        permission=_LIST,
        query=DailyUsageQuery,
        response=DailyUsageView,
    ),
    Route(
        method="GET",
        path="/quality",
        operation="getQuality",
        summary="Get verdicts on findings, outcomes of incidents and results of evaluations by day",
        handler=get_quality,
        permission=_LIST,
        query=DaysQuery,
        response=QualityView,
    ),
)
