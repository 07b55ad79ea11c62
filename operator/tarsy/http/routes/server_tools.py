"""Returns the tools of an MCPServer with `spec.pin`, with their definitions as they are and as they were."""

from tarsy.http.authentication.identity import Permission
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import valid_object
from tarsy.http.views.server_tools import ServerToolsView
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.store.tool_definitions import ToolDefinitions


async def get_server_tools(ask: CheckedRequest) -> ServerToolsView:
    """Returns the pinned tools of a server.

    Raises:
        NotFound: there is no such MCPServer, or it is not valid.
    """
    server = await valid_object(ask, MCPServer)
    return ServerToolsView.of(server, await ToolDefinitions(ask.services.pool).of_server(server.metadata.uid))


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/mcpservers/{name}/tools",
        operation="getServerTools",
        summary="Get the pinned tools of an MCP server, with their definitions now and before",
        handler=get_server_tools,
        permission=Permission("get", "mcpservers", "tools"),
        response=ServerToolsView,
        aggregated=True,
    ),
)
