"""Lists waiting runs with their reasons, and the workers.

Decision: queue and workers are resources of the record, so that a role grants them. Workers belong to the installation
and require the right in all namespaces. Objects without a run are among the queue for callers who may list their kind.
"""

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import may_list
from tarsy.http.routes.parameters import MAX_LIMIT, Namespaces
from tarsy.http.routes.unstarted import oldest_unstarted
from tarsy.http.views.queue import QueueView, WorkerList
from tarsy.http.views.unstarted import UnstartedItem
from tarsy.resources.v1alpha1 import Investigation
from tarsy.store.reading.queue import Queue

MAX_WORKERS = 500
_LIST = Permission("list", "queue")


class NamespaceQueueQuery(Query):
    """Size of the list."""

    limit: int = Field(default=100, ge=1, le=MAX_LIMIT, description="Maximum number of items.")


class QueueQuery(NamespaceQueueQuery):
    """Namespaces, and size of the list."""

    namespace: Namespaces = ()


async def get_queue(ask: CheckedRequest) -> QueueView:
    """Returns the queue of namespaces, or of all."""
    query = ask.query(QueueQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    return await _queue(ask, query.limit, query.namespace, uids)


async def get_namespace_queue(ask: CheckedRequest) -> QueueView:
    """Returns the queue of the namespace in the path."""
    return await _queue(ask, ask.query(NamespaceQueueQuery).limit, (ask.namespace,), [ask.namespace_uid])


async def get_workers(ask: CheckedRequest) -> WorkerList:
    """Returns the workers."""
    return WorkerList.of(await Queue(ask.services.pool).workers(MAX_WORKERS + 1), MAX_WORKERS)


async def _queue(ask: CheckedRequest, limit: int, namespaces: tuple[str, ...], uids: list[str] | None) -> QueueView:
    queue = Queue(ask.services.pool)
    waiting, workers = await queue.waiting(limit, uids), await queue.workers(MAX_WORKERS)
    unstarted: tuple[list[UnstartedItem], int] = ([], 0)
    if await may_list(ask, Investigation, namespaces):
        unstarted = await oldest_unstarted(ask, namespaces, limit)
    return QueueView.of(await ask.services.reads.queue_depth(uids), waiting, workers, unstarted, limit)


ROUTES = (
    Route(
        method="GET",
        path="/queue",
        operation="getQueue",
        summary="Get the queue: waiting items with their reasons",
        handler=get_queue,
        permission=_LIST,
        query=QueueQuery,
        response=QueueView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/queue",
        operation="getNamespaceQueue",
        summary="Get the queue of a namespace",
        handler=get_namespace_queue,
        permission=_LIST,
        query=NamespaceQueueQuery,
        response=QueueView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/workers",
        operation="getWorkers",
        summary="Get the workers with their load, heartbeat and release",
        handler=get_workers,
        permission=Permission("list", "workers"),
        response=WorkerList,
        aggregated=True,
    ),
)
