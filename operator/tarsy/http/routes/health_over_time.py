"""Lists configuration objects with their health over time, and the recorded changes of their conditions.

Decision: `objects` and `transitions` are resources of the record, so that a role grants them; of both, callers see only
the kinds that they may list. Objects are read for each request, and what they were by their uid, so that a later object
of the same name begins anew.
"""

from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.configured_objects import MAX_HOURS, MAX_OBJECTS, place_of
from tarsy.http.routes.objects import may_list, paginate, raw_objects
from tarsy.http.routes.parameters import Limit, ListQuery, Namespaces, Token
from tarsy.http.views.configured_objects import ConfigurationItem, configuration_items
from tarsy.http.views.health_over_time import ObjectHealthList, Period, TransitionList, TransitionView, object_health
from tarsy.resources.health import CONFIGURATION_KINDS
from tarsy.resources.meta import Condition
from tarsy.resources.schema import ObjectName
from tarsy.store.history.condition_transitions import ConditionTransitions

DAY_HOURS = 24
_HOUR, _LONG = timedelta(hours=1), timedelta(hours=6)
ConfigurationKind = Literal[
    "Chain",
    "Agent",
    "MCPServer",
    "LLMProvider",
    "Skill",
    "InvestigationDefaults",
    "AlertRoute",
    "AlertSchedule",
    "InvestigationQuota",
    "EvalSuite",
]


class NamespaceObjectsQuery(Query):
    """Objects, period, and page of the list."""

    kind: ConfigurationKind | None = Field(default=None, description="Only objects of this kind.")
    name: ObjectName | None = Field(default=None, description="Only objects of this name.")
    hours: int = Field(
        default=DAY_HOURS,
        ge=1,
        le=MAX_HOURS,
        description="Length of the period in hours, ending now: in cells of an hour up to a day, of six hours beyond.",
    )
    limit: int = Field(default=MAX_OBJECTS, ge=1, le=MAX_OBJECTS, description="Maximum number of objects.")
    token: Token | None = Field(default=None, alias="continue")


class ObjectsQuery(NamespaceObjectsQuery):
    """Namespaces, objects, period, and page of the list."""

    namespace: Namespaces = ()


class NamespaceTransitionsQuery(Query):
    """Objects, and page of the list."""

    kind: ConfigurationKind | None = Field(default=None, description="Only of objects of this kind.")
    name: ObjectName | None = Field(default=None, description="Only of objects of this name.")
    limit: Limit = 100
    token: Token | None = Field(default=None, alias="continue")


class TransitionsQuery(NamespaceTransitionsQuery):
    """Namespaces, objects, and page of the list."""

    namespace: Namespaces = ()


async def list_objects(ask: CheckedRequest) -> ObjectHealthList:
    """Returns the objects of namespaces, or of all, with their health over time."""
    query = ask.query(ObjectsQuery)
    return await _objects(ask, query, query.namespace)


async def list_namespace_objects(ask: CheckedRequest) -> ObjectHealthList:
    """Returns the objects of the namespace in the path with their health over time."""
    return await _objects(ask, ask.query(NamespaceObjectsQuery), (ask.namespace,))


async def list_transitions(ask: CheckedRequest) -> TransitionList:
    """Returns the changes of namespaces, or of all."""
    query = ask.query(TransitionsQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    return await _transitions(ask, query, query.namespace, uids)


async def list_namespace_transitions(ask: CheckedRequest) -> TransitionList:
    """Returns the changes of the namespace in the path."""
    return await _transitions(ask, ask.query(NamespaceTransitionsQuery), (ask.namespace,), [ask.namespace_uid])


def period_of(hours: int, now: datetime) -> Period:
    """Returns the last hours in cells; those beyond a day are rounded up to whole cells.

    Args:
        hours: length of the period.
        now: its end.
    """
    cell = _HOUR if hours <= DAY_HOURS else _LONG
    return Period(now, cell, -(-timedelta(hours=hours) // cell))


async def _objects(ask: CheckedRequest, query: NamespaceObjectsQuery, namespaces: tuple[str, ...]) -> ObjectHealthList:
    kinds = await _kinds(ask, query.kind, namespaces)
    raws = [
        raw
        for kind in CONFIGURATION_KINDS
        if kind.KIND in kinds
        for raw in await raw_objects(ask, kind, namespaces)
        if query.name in (None, raw["metadata"]["name"])
    ]
    items = configuration_items(raws, kinds, ask.services.library_namespace)
    question = f"objects/{namespaces}/{kinds}/{query.name}/{query.hours}"
    wanted = ListQuery.model_construct(limit=query.limit, token=query.token)
    shown, token = paginate(question, wanted, items, place_of, 4)
    period = period_of(query.hours, datetime.now(UTC))
    uids = [one.uid for one in shown if one.uid]
    recorded = await ConditionTransitions(ask.services.pool).of_objects(uids, period.since) if uids else {}
    return ObjectHealthList(
        since=period.since,
        until=period.until,
        cell_minutes=int(period.cell.total_seconds()) // 60,
        items=tuple(object_health(_now(one), _conditions(one), recorded.get(one.uid, ()), period) for one in shown),
        kinds=tuple(kinds),
        next=token,
    )


def _now(item: ConfigurationItem) -> dict[str, object]:
    names = ("kind", "namespace", "name", "uid", "health", "reason", "message", "since")
    return {name: getattr(item, name) for name in names}


def _conditions(item: ConfigurationItem) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=one.type, status=one.status, reason=one.reason, message=one.message, last_transition_time=one.since
        )
        for one in item.conditions
    )


async def _transitions(
    ask: CheckedRequest, query: NamespaceTransitionsQuery, namespaces: tuple[str, ...], uids: list[str] | None
) -> TransitionList:
    kinds = await _kinds(ask, query.kind, namespaces)
    question, before = f"transitions/{namespaces}/{kinds}/{query.name}", None
    if query.token is not None:
        at, number = paging.decode_continue(question, query.token, 2)
        before = paging.moment(at), paging.number(number)
    found = await ConditionTransitions(ask.services.pool).page(
        kinds, query.limit + 1, namespace_uids=uids, name=query.name, before=before
    )
    shown = found[: query.limit]
    more = len(found) > len(shown)
    token = paging.encode_continue(question, (shown[-1].at.isoformat(), str(shown[-1].id))) if more else None
    return TransitionList(items=tuple(map(TransitionView.of, shown)), next=token)


async def _kinds(ask: CheckedRequest, kind: str | None, namespaces: tuple[str, ...]) -> list[str]:
    """Returns the kinds that are asked for and that the caller may list."""
    wanted = [one for one in CONFIGURATION_KINDS if kind in (None, one.KIND)]
    return [one.KIND for one in wanted if await may_list(ask, one, namespaces)]


_OBJECTS, _TRANSITIONS = Permission("list", "objects"), Permission("list", "transitions")
ROUTES = (
    Route(
        method="GET",
        path="/objects",
        operation="listObjects",
        summary="List configuration objects with their health over time",
        handler=list_objects,
        permission=_OBJECTS,
        query=ObjectsQuery,
        response=ObjectHealthList,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/objects",
        operation="listNamespaceObjects",
        summary="List the configuration objects of a namespace with their health over time",
        handler=list_namespace_objects,
        permission=_OBJECTS,
        query=NamespaceObjectsQuery,
        response=ObjectHealthList,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/transitions",
        operation="listTransitions",
        summary="List changes of conditions of configuration objects",
        handler=list_transitions,
        permission=_TRANSITIONS,
        query=TransitionsQuery,
        response=TransitionList,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/transitions",
        operation="listNamespaceTransitions",
        summary="List changes of conditions of the configuration objects of a namespace",
        handler=list_namespace_transitions,
        permission=_TRANSITIONS,
        query=NamespaceTransitionsQuery,
        response=TransitionList,
        aggregated=True,
    ),
)
