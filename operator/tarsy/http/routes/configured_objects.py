"""Lists all configuration objects with their health, and their activity in recorded runs.

Decision: objects are read for each request; kinds that the caller may not list are left out, and the response names the
others. What objects did is told of runs that the caller may list, so a library object shows each reader their own part.
"""

from typing import Literal

from pydantic import BaseModel, Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Forbidden
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import list_permission, may_list, paginate, raw_objects
from tarsy.http.routes.parameters import ListQuery, Namespaces
from tarsy.http.views.configured_objects import (
    ConfigurationItem,
    ConfigurationList,
    configuration_items,
)
from tarsy.http.views.object_health import ActivityView, ObjectRunList, ObjectRunView
from tarsy.resources.health import CONFIGURATION_KINDS, RANKS
from tarsy.resources.schema import LabelName, ObjectName
from tarsy.resources.v1alpha1 import KINDS, MCPServer
from tarsy.store.history.object_health import ObjectHealth

MAX_OBJECTS = 1_000
MAX_HOURS = 168
_ORDER = {kind.KIND: number for number, kind in enumerate(CONFIGURATION_KINDS)}
_RUNS = Permission("list", "investigations", group=PRODUCT_GROUP)
PlannedKind = Literal["Chain", "Agent", "MCPServer", "LLMProvider", "Skill", "InvestigationDefaults"]


class ConfigurationObjectsQuery(ListQuery):
    """Namespaces, and page of the list."""

    limit: int = Field(default=MAX_OBJECTS, ge=1, le=MAX_OBJECTS, description="Maximum number of objects.")


class ActivityQuery(Query):
    """Namespaces of the runs, and the period."""

    namespace: Namespaces = ()
    hours: int = Field(default=24, ge=1, le=MAX_HOURS, description="Length of the period in hours, ending now.")


class ObjectRunsQuery(Query):
    """Namespaces of the runs, and the object."""

    namespace: Namespaces = ()
    kind: PlannedKind = Field(description="Kind of the object.")
    of_namespace: LabelName = Field(description="Namespace of the object.")
    of_name: ObjectName = Field(description="Name of the object.")
    limit: int = Field(default=10, ge=1, le=100, description="Maximum number of runs.")


async def list_configuration_objects(ask: CheckedRequest) -> ConfigurationList:
    """Returns objects, those with problems first."""
    query = ask.query(ConfigurationObjectsQuery)
    kinds = [kind for kind in CONFIGURATION_KINDS if await may_list(ask, kind, query.namespace)]
    raws = [raw for kind in kinds for raw in await raw_objects(ask, kind, query.namespace)]
    names = tuple(kind.KIND for kind in kinds)
    items = sorted(configuration_items(raws, names, ask.services.library_namespace), key=place_of)
    question = f"configuration/{query.namespace}/{names}"
    shown, token = paginate(question, query, items, place_of, 4)
    return ConfigurationList(items=tuple(shown), kinds=names, next=token)


async def get_activity(ask: CheckedRequest) -> ActivityView:
    """Returns what objects did in the last hours."""
    query = ask.query(ActivityQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    found = await ObjectHealth(ask.services.pool).activity(query.hours, uids)
    return ActivityView.of(query.hours, found)


async def list_object_runs(ask: CheckedRequest) -> BaseModel:
    """Returns the latest runs that were planned from an object.

    Raises:
        Forbidden: the caller may not list the kind in the namespace of the object.
    """
    query = ask.query(ObjectRunsQuery)
    if not await may_list(ask, KINDS[query.kind], (query.of_namespace,)):
        plural = KINDS[query.kind].PLURAL
        raise Forbidden(f"{ask.caller.username} may not list {plural} in the namespace {query.of_namespace}")
    uids = await ask.services.namespaces.uids(query.namespace)
    reads = ObjectHealth(ask.services.pool)
    found = await reads.runs(query.kind, query.of_namespace, query.of_name, query.limit, uids)
    return ObjectRunList(items=tuple(map(ObjectRunView.of, found)))


def place_of(item: ConfigurationItem) -> tuple[str, ...]:
    return f"{RANKS[item.health]}{_ORDER[item.kind]}", item.namespace, item.kind, item.name


ROUTES = (
    Route(
        method="GET",
        path="/configuration",
        operation="listConfiguration",
        summary="List all configuration objects with their health, what they use and what uses them",
        handler=list_configuration_objects,
        permission=list_permission(MCPServer),
        query=ConfigurationObjectsQuery,
        response=ConfigurationList,
    ),
    Route(
        method="GET",
        path="/configuration/activity",
        operation="getConfigurationActivity",
        summary="Get the activity of configuration objects in recorded runs, by hour",
        handler=get_activity,
        permission=_RUNS,
        query=ActivityQuery,
        response=ActivityView,
    ),
    Route(
        method="GET",
        path="/configuration/runs",
        operation="listConfigurationRuns",
        summary="List the latest investigations that were planned from a configuration object",
        handler=list_object_runs,
        permission=_RUNS,
        query=ObjectRunsQuery,
        response=ObjectRunList,
    ),
)
