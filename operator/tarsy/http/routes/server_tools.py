"""Returns the tools of an MCPServer with `spec.pin`, with their definitions as they are and as they were."""

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.views.server_tools import ServerToolsView
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.store.tool_definitions import ToolDefinitions


async def get_server_tools(ask: CheckedRequest) -> ServerToolsView:
    """Returns the pinned tools of a server.

    Raises:
        NotFound: there is no such MCPServer, or it is not valid.
    """
    where = f"MCPServer {ask.namespace}/{ask.name}"
    raw = await ask.services.kube.find(MCPServer.KIND, ask.namespace, ask.name)
    if raw is None:
        raise NotFound(f"{where} does not exist")
    try:
        server = parse_as(MCPServer, raw)
    except InvalidResource:
        raise NotFound(f"{where} is not valid; see its condition Ready") from None
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
