"""Chains, tool servers and models: what there is to investigate with.

Decision: three routes of one making. What differs is the kind and its view.
"""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from tarsy.http.route import Ask, Handler, Route
from tarsy.http.routes.objects import listing, named, objects, page
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.configuration import (
    ChainList,
    ChainView,
    LlmProviderList,
    LlmProviderView,
    McpServerList,
    McpServerView,
)
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import Chain, LLMProvider, MCPServer

R = TypeVar("R", bound=AnyResource)


def _listing(kind: type[R], view: Callable[[R], BaseModel], answer: type[BaseModel]) -> Handler:
    async def list_objects(ask: Ask) -> BaseModel:
        query = ask.query(ListQuery)
        question = f"{kind.PLURAL}/{query.namespace}"
        found, token = page(question, query, await objects(ask, kind, query.namespace), named, 2)
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
        query=ListQuery,
        response=ChainList,
    ),
    Route(
        method="GET",
        path="/mcpservers",
        operation="listMcpServers",
        summary="Servers of tools, with their tools",
        handler=_listing(MCPServer, McpServerView.of, McpServerList),
        permission=listing(MCPServer),
        query=ListQuery,
        response=McpServerList,
    ),
    Route(
        method="GET",
        path="/llmproviders",
        operation="listLlmProviders",
        summary="Models of providers",
        handler=_listing(LLMProvider, LlmProviderView.of, LlmProviderList),
        permission=listing(LLMProvider),
        query=ListQuery,
        response=LlmProviderList,
    ),
)
