"""Reports the usage and cost of models.

Decision: it is computed from the record for each request.
"""

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.parameters import Namespaces
from tarsy.http.views.usage import UsageView
from tarsy.record.usage_report import UsageBy

MAX_DAYS = 366
MAX_NAMES = 1000
_DAY = 86_400
_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)


class UsageQuery(Query):
    """Grouping and period of the report."""

    namespace: Namespaces = ()
    by: UsageBy = Field(default="model", description="Field to group by. Days are UTC days.")
    days: int = Field(default=30, ge=1, le=MAX_DAYS, description="Length of the period in days, ending now.")
    replays: bool = Field(default=False, description="Whether model calls of replays count too.")
    limit: int = Field(
        default=100, ge=1, le=MAX_NAMES, description="Maximum number of groups. The total includes all of them."
    )


async def get_usage(ask: CheckedRequest) -> UsageView:
    """Returns the usage of models."""
    query = ask.query(UsageQuery)
    uids = [await ask.services.namespaces.uid(name) for name in query.namespace] or None
    sums = await ask.services.reads.usage(query.days * _DAY, query.by, uids, replays=query.replays)
    return UsageView.of(query.by, query.days, sums, query.limit)


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
)
