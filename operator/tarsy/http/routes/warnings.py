"""Lists conditions of configuration objects that report a problem.

Decision: the objects are read for each request; nothing is cached. Kinds that the caller may not list are left out, and
the response names the kinds that were checked.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import list_permission, may_list, paginate, raw_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.configuration import WarningList, WarningView
from tarsy.resources.health import problems
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import Agent, AlertRoute, Chain, InvestigationDefaults, LLMProvider, MCPServer, Skill
from tarsy.resources.v1alpha1.common import ConditionType

_KINDS: tuple[type[AnyResource], ...] = (
    Agent,
    AlertRoute,
    Chain,
    InvestigationDefaults,
    LLMProvider,
    MCPServer,
    Skill,
)


async def list_warnings(ask: CheckedRequest) -> WarningList:
    """Lists warnings by namespace, kind and name."""
    query = ask.query(ListQuery)
    kinds = [kind for kind in _KINDS if await may_list(ask, kind, query.namespace)]
    found = [
        warning for kind in kinds for raw in await raw_objects(ask, kind, query.namespace) for warning in warnings(raw)
    ]
    question = f"warnings/{query.namespace}"
    shown, token = paginate(question, query, found, lambda one: (one.namespace, one.kind, one.name, one.type), 4)
    return WarningList(items=tuple(shown), kinds=tuple(kind.KIND for kind in kinds), next=token)


def warnings(raw: Mapping[str, Any]) -> Iterable[WarningView]:
    """Yields the warnings of one object."""
    where = {"kind": raw["kind"], "namespace": raw["metadata"].get("namespace", ""), "name": raw["metadata"]["name"]}
    try:
        resource = parse_object(raw)
    except InvalidResource as error:
        yield WarningView(**where, type=ConditionType.READY, reason="Invalid", message=str(error))
        return
    for one in problems(resource.status.conditions):
        yield WarningView(**where, type=one.type, reason=one.reason, message=one.message)


ROUTES = (
    Route(
        method="GET",
        path="/warnings",
        operation="listWarnings",
        summary="List conditions that prevent the use of configuration objects",
        handler=list_warnings,
        permission=list_permission(MCPServer),
        query=ListQuery,
        response=WarningList,
    ),
)
