"""Lists chains, MCP servers and LLM providers.

Decision: one handler serves the three routes; they differ in the kind and its view.
"""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, Field

from tarsy.http.route import CheckedRequest, Handler, Route
from tarsy.http.routes.objects import library_objects, list_permission, paginate, sort_key, valid_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.configuration import (
    ChainList,
    ChainView,
    LlmProviderList,
    LlmProviderView,
    McpServerList,
    McpServerView,
)
from tarsy.resources.v1alpha1 import Chain, LLMProvider, MCPServer

_S = TypeVar("_S", Chain, MCPServer, LLMProvider)


class ConfigurationQuery(ListQuery):
    """Namespaces, and page of the list."""

    with_library: bool = Field(
        default=False,
        description="Also return library objects that the namespace may use, if the caller may list those of the "
        "library.",
    )


def _listing(kind: type[_S], view: Callable[[_S], BaseModel], answer: type[BaseModel]) -> Handler:
    async def list_configuration(ask: CheckedRequest) -> BaseModel:
        query = ask.query(ConfigurationQuery)
        question = f"{kind.PLURAL}/{query.namespace}/{query.with_library}"
        everything = {sort_key(one): one for one in await valid_objects(ask, kind, query.namespace)}
        for home in query.namespace if query.with_library else ():
            everything |= {sort_key(one): one for one in await library_objects(ask, kind, home)}
        found, token = paginate(question, query, list(everything.values()), sort_key, 2)
        return answer.model_validate({"items": tuple(map(view, found)), "continue": token})

    return list_configuration


ROUTES = (
    Route(
        method="GET",
        path="/chains",
        operation="listChains",
        summary="List chains and the alert types that they handle",
        handler=_listing(Chain, ChainView.of, ChainList),
        permission=list_permission(Chain),
        query=ConfigurationQuery,
        response=ChainList,
    ),
    Route(
        method="GET",
        path="/mcpservers",
        operation="listMcpServers",
        summary="List MCP servers and their tools",
        handler=_listing(MCPServer, McpServerView.of, McpServerList),
        permission=list_permission(MCPServer),
        query=ConfigurationQuery,
        response=McpServerList,
    ),
    Route(
        method="GET",
        path="/llmproviders",
        operation="listLlmProviders",
        summary="List LLM providers and their models",
        handler=_listing(LLMProvider, LlmProviderView.of, LlmProviderList),
        permission=list_permission(LLMProvider),
        query=ConfigurationQuery,
        response=LlmProviderList,
    ),
)
