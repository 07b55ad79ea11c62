"""Reads configuration objects for callers who may list them, and splits them into pages.

Decision: the operator's own client reads them after the caller's right to list the kind was checked. Objects are
few and small, so a list is read whole and sorted by name: a `continue` token contains a name and never expires.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest
from tarsy.http.routes import paging
from tarsy.http.routes.parameters import ListQuery
from tarsy.plan.scope import admits
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_as, parse_valid, valid_or_none
from tarsy.resources.v1alpha1 import Agent, Chain, InvestigationDefaults, LLMProvider, MCPServer, Skill
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME

_R = TypeVar("_R", bound=AnyResource)
_S = TypeVar("_S", Agent, Chain, LLMProvider, MCPServer, Skill)
_T = TypeVar("_T")


def list_permission(kind: type[AnyResource]) -> Permission:
    """Returns the permission to list objects of a kind."""
    return Permission("list", kind.PLURAL, group=PRODUCT_GROUP)


async def may_list(ask: CheckedRequest, kind: type[AnyResource], namespaces: Sequence[str]) -> bool:
    """Returns whether the caller may list a kind.

    Args:
        ask: the request.
        kind: the kind.
        namespaces: all of them must be allowed; empty: cluster-wide.
    """
    return await may(ask, list_permission(kind), namespaces)


async def may(ask: CheckedRequest, permission: Permission, namespaces: Sequence[str]) -> bool:
    """Returns whether the caller has a permission.

    Args:
        ask: the request.
        permission: the permission.
        namespaces: it must hold in all of them; empty: cluster-wide.
    """
    for namespace in namespaces or ("",):
        if not await ask.services.access.allowed(ask.caller, permission, namespace):
            return False
    return True


async def raw_objects(ask: CheckedRequest, kind: type[AnyResource], namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """Lists the objects of a kind as raw manifests.

    Args:
        ask: the request.
        kind: the kind.
        namespaces: empty: all namespaces.
    """
    found: list[dict[str, Any]] = []
    for namespace in dict.fromkeys(namespaces) or (None,):
        found += await ask.services.kube.list(kind.KIND, namespace)
    return found


async def valid_objects(ask: CheckedRequest, kind: type[_R], namespaces: Sequence[str]) -> list[_R]:
    """Lists the valid objects of a kind; invalid ones are reported as warnings.

    Args:
        ask: the request.
        kind: the kind.
        namespaces: empty: all namespaces.
    """
    return parse_valid(kind, await raw_objects(ask, kind, namespaces))


async def valid_object(ask: CheckedRequest, kind: type[_R]) -> _R:
    """Returns the object in the path.

    Args:
        ask: the request.
        kind: the kind.

    Raises:
        NotFound: there is no such object, or it is not valid.
    """
    where = f"{kind.KIND} {ask.namespace}/{ask.name}"
    raw = await ask.services.kube.find(kind.KIND, ask.namespace, ask.name)
    if raw is None:
        raise NotFound(f"{where} does not exist")
    try:
        return parse_as(kind, raw)
    except InvalidResource:
        raise NotFound(f"{where} is not valid; see its condition Ready") from None


async def library_objects(ask: CheckedRequest, kind: type[_S], home: str) -> list[_S]:
    """Lists the library objects that objects in a namespace may use; empty if the caller may not list the library.

    Args:
        ask: the request.
        kind: the kind.
        home: the namespace.
    """
    library = ask.services.library_namespace
    if home == library or not await may_list(ask, kind, (library,)):
        return []
    found = await ask.services.kube.find("Namespace", None, home) or {"metadata": {}}
    labels = {"kubernetes.io/metadata.name": home, **(found["metadata"].get("labels") or {})}
    return [one for one in await valid_objects(ask, kind, (library,)) if admits(one, home, labels)]


def paginate(
    question: str, query: ListQuery, items: Sequence[_T], place_of: Callable[[_T], tuple[str, ...]], parts: int
) -> tuple[list[_T], str | None]:
    """Returns one page of items, and the token of the next page.

    Args:
        question: identifies the list and its filters, without limit and token.
        query: contains limit and token.
        items: all items of the list.
        place_of: the unique sort key of an item.
        parts: number of texts in a sort key.

    Raises:
        BadRequest: the token belongs to another list.
    """
    ordered = sorted(items, key=place_of)
    if query.token is not None:
        after = tuple(paging.decode_continue(question, query.token, parts))
        ordered = [item for item in ordered if place_of(item) > after]
    shown = ordered[: query.limit]
    return shown, paging.encode_continue(question, place_of(shown[-1])) if len(ordered) > len(shown) else None


def sort_key(resource: AnyResource) -> tuple[str, str]:
    """Returns namespace and name of an object, the sort key of lists."""
    return resource.metadata.namespace, resource.metadata.name


async def namespace_defaults(ask: CheckedRequest, namespace: str) -> InvestigationDefaults | None:
    """Returns the InvestigationDefaults of a namespace; None without valid ones.

    Args:
        ask: the request.
        namespace: the namespace.
    """
    raw = await ask.services.kube.find(InvestigationDefaults.KIND, namespace, DEFAULTS_NAME)
    return valid_or_none(InvestigationDefaults, raw)
