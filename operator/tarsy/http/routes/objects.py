"""Objects of the configuration, read for those who may list them, and given out in pages.

Decision: read as the operator, after the caller was allowed to list the kind where they asked. Objects are few and
small, so a list is read whole, sorted, and given out by name: a token holds a name, and nothing expires.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tarsy.http.route import PRODUCT_GROUP, Ask, Permission
from tarsy.http.routes import paging
from tarsy.http.routes.parameters import ListQuery
from tarsy.plan.scope import admits
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import Agent, Chain, LLMProvider, MCPServer

R = TypeVar("R", bound=AnyResource)
S = TypeVar("S", Agent, Chain, LLMProvider, MCPServer)
T = TypeVar("T")


def listing(kind: type[AnyResource]) -> Permission:
    """The right to list objects of a kind."""
    return Permission("list", kind.PLURAL, group=PRODUCT_GROUP)


async def may_list(ask: Ask, kind: type[AnyResource], namespaces: Sequence[str]) -> bool:
    """Whether the caller may list a kind in all of these namespaces (none: in all there are)."""
    for namespace in namespaces or ("",):
        if not await ask.services.access.allowed(ask.caller, listing(kind), namespace):
            return False
    return True


async def raw_objects(ask: Ask, kind: type[AnyResource], namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of a kind as the API has them, in these namespaces (none: in all)."""
    found: list[dict[str, Any]] = []
    for namespace in dict.fromkeys(namespaces) or (None,):
        found += await ask.services.kube.list(kind.KIND, namespace)
    return found


async def objects(ask: Ask, kind: type[R], namespaces: Sequence[str]) -> list[R]:
    """The objects of a kind that fit it; what is wrong with the others is told by the warnings."""
    found = []
    for raw in await raw_objects(ask, kind, namespaces):
        try:
            found.append(parse_as(kind, raw))
        except InvalidResource:
            continue
    return found


async def of_library(ask: Ask, kind: type[S], home: str) -> list[S]:
    """The objects of the library that what is in `home` may name; none where the caller may not list the library's."""
    library = ask.services.library_namespace
    if home == library or not await may_list(ask, kind, (library,)):
        return []
    found = await ask.services.kube.find("Namespace", None, home) or {"metadata": {}}
    labels = {"kubernetes.io/metadata.name": home, **(found["metadata"].get("labels") or {})}
    return [one for one in await objects(ask, kind, (library,)) if admits(one, home, labels)]


def page(
    question: str, query: ListQuery, items: Sequence[T], place_of: Callable[[T], tuple[str, ...]], parts: int
) -> tuple[list[T], str | None]:
    """The next items behind the query's token, and the token of the page after them.

    Args:
        question: what is asked, without limit and token.
        query: with limit and token.
        items: all of them.
        place_of: what they are sorted by; no two have the same.
        parts: of how many texts that consists.

    Raises:
        BadRequest: the token is of another question.
    """
    ordered = sorted(items, key=place_of)
    if query.token is not None:
        after = tuple(paging.decode(question, query.token, parts))
        ordered = [item for item in ordered if place_of(item) > after]
    shown = ordered[: query.limit]
    return shown, paging.encode(question, place_of(shown[-1])) if len(ordered) > len(shown) else None


def named(resource: AnyResource) -> tuple[str, str]:
    """Namespace and name."""
    return resource.metadata.namespace, resource.metadata.name
