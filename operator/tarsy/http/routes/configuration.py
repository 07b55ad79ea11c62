"""Chains, tool servers and models: what there is to investigate with.

Decision: three routes of one making. What differs is the kind and its view.
"""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, Field

from tarsy.http.route import Ask, Handler, Route
from tarsy.http.routes.objects import listing, named, objects, of_library, page
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

S = TypeVar("S", Chain, MCPServer, LLMProvider)


class ConfigurationQuery(ListQuery):
    """Where from."""

    with_library: bool = Field(
        default=False,
        description="Also those of the library that the namespace may name, where one may list the library's.",
    )


def _listing(kind: type[S], view: Callable[[S], BaseModel], answer: type[BaseModel]) -> Handler:
    async def list_objects(ask: Ask) -> BaseModel:
        query = ask.query(ConfigurationQuery)
        question = f"{kind.PLURAL}/{query.namespace}/{query.with_library}"
        everything = {named(one): one for one in await objects(ask, kind, query.namespace)}
        for home in query.namespace if query.with_library else ():
            everything |= {named(one): one for one in await of_library(ask, kind, home)}
        found, token = page(question, query, list(everything.values()), named, 2)
        return answer.model_validate({"items": tuple(map(view, found)), "continue": token})

    return list_objects


ROUTES = (
    Route(
        method="GET",
        path="/chains",
        operation="listChains",
        summary="Chains, with the alert types they are for",
        handler=_listing(Chain, ChainView.of, ChainList),
        permission=listing(Chain),
        query=ConfigurationQuery,
        response=ChainList,
    ),
    Route(
        method="GET",
        path="/mcpservers",
        operation="listMcpServers",
        summary="Servers of tools, with their tools",
        handler=_listing(MCPServer, McpServerView.of, McpServerList),
        permission=listing(MCPServer),
        query=ConfigurationQuery,
        response=McpServerList,
    ),
    Route(
        method="GET",
        path="/llmproviders",
        operation="listLlmProviders",
        summary="Models of providers",
        handler=_listing(LLMProvider, LlmProviderView.of, LlmProviderList),
        permission=listing(LLMProvider),
        query=ConfigurationQuery,
        response=LlmProviderList,
    ),
)
