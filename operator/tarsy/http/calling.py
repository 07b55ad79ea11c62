"""Authorizes an operation of the route table, for the frontends of the API and for the tools of the MCP endpoint."""

from collections.abc import Mapping
from typing import Any

from multidict import MultiDict
from pydantic import BaseModel

from tarsy.http.authentication.identity import Caller
from tarsy.http.reading import read_path, read_query, read_value
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.services import Services


async def authorize(
    route: Route, caller: Caller, path: Mapping[str, str], query: BaseModel | None, services: Services
) -> None:
    """Demands the permission of a route in every namespace that the request names, before anything is looked up.

    Args:
        route: the route.
        caller: who asks.
        path: the parameters of the path.
        query: the query parameters.
        services: the dependencies of handlers.

    Raises:
        Forbidden: the caller may not.
    """
    if route.permission is None:
        return
    name = path.get("name", "") if _is_about_the_name(route) else ""
    for namespace in _namespaces(path, query):
        await services.access.demand(caller, route.permission, namespace, name)


async def call_route(
    ask: CheckedRequest,
    route: Route,
    path: Mapping[str, str],
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
) -> BaseModel:
    """Calls the handler of a route as its frontends do: authorized and validated.

    Args:
        ask: a request of the same caller.
        route: a route that returns a model.
        path: the parameters of its path.
        query: the query parameters, by their names in the API; None and empty values are left out.
        body: the body, by the names of the API.

    Raises:
        HttpError: what the route refuses.
    """
    found = read_path(path)
    given: MultiDict[str] = MultiDict()
    for name, value in (query or {}).items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if one is not None:
                given.add(name, str(one))
    checked = read_query(route.query, given)
    await authorize(route, ask.caller, found, checked, ask.services)
    namespace = found.get("namespace", "")
    answer = await route.handler(
        CheckedRequest(
            request=ask.request,
            path=found,
            caller=ask.caller,
            namespace_uid=await ask.services.namespaces.uid(namespace) if namespace else "",
            services=ask.services,
            checked_query=checked,
            checked_body=None if route.body is None else read_value(route.body, dict(body or {})),
        )
    )
    if not isinstance(answer, BaseModel):
        raise TypeError(f"{route.operation} does not return a model")
    return answer


def _namespaces(path: Mapping[str, str], query: object) -> tuple[str, ...]:
    """Returns the namespaces in which the permission is required; "" is cluster-wide."""
    if "namespace" in path:
        return (path["namespace"],)
    asked = getattr(query, "namespace", None) or ()
    return ((asked,) if isinstance(asked, str) else tuple(asked)) or ("",)


def _is_about_the_name(route: Route) -> bool:
    """Returns whether `{name}` names the resource of the permission, so that `resourceNames` of a role apply."""
    before = route.path.partition("/{name}")[0].rpartition("/")[2]
    return "{name}" in route.path and route.permission is not None and route.permission.resource == before
