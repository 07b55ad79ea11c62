"""What models used and cost, and how the queue stands.

Decision: both are read out of the record at the moment of asking. The queue is that of the whole installation, so it is
for those who may list investigations everywhere.
"""

from pydantic import Field

from tarsy.http.route import PRODUCT_GROUP, Ask, Permission, Query, Route
from tarsy.http.routes.parameters import Namespaces
from tarsy.http.views.usage import QueueView, UsageView
from tarsy.store.reads import UsageBy
from tarsy.store.trace import Trace

MAX_DAYS = 366
MAX_NAMES = 1000
MAX_WORKERS = 500
_DAY = 86_400
_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)


class UsageQuery(Query):
    """What is summed up, and of which time."""

    namespace: Namespaces = ()
    by: UsageBy = Field(default="model", description="What is summed up under one name; days are those of UTC.")
    days: int = Field(default=30, ge=1, le=MAX_DAYS, description="Back from now.")
    limit: int = Field(default=100, ge=1, le=MAX_NAMES, description="Names at most; the total has all.")


async def get_usage(ask: Ask) -> UsageView:
    """What models used."""
    query = ask.query(UsageQuery)
    uids = [await ask.services.namespaces.uid(name) for name in query.namespace] or None
    sums = await ask.services.reads.usage(query.days * _DAY, query.by, uids)
    return UsageView.of(query.by, query.days, sums, query.limit)


async def get_queue(ask: Ask) -> QueueView:
    """What waits, what runs, and who works."""
    depth = await ask.services.reads.queue_depth()
    return QueueView.of(depth, await Trace(ask.services.pool).workers(MAX_WORKERS))


ROUTES = (
    Route(
        method="GET",
        path="/usage",
        operation="getUsage",
        summary="What models used and cost",
        handler=get_usage,
        permission=_LIST,
        query=UsageQuery,
        response=UsageView,
    ),
    Route(
        method="GET",
        path="/queue",
        operation="getQueue",
        summary="The queue and its workers",
        handler=get_queue,
        permission=_LIST,
        response=QueueView,
    ),
)
