"""Checks the health of a tool server, and lists its tools.

The server is opened as a run would open it (values resolved again, tools listed) and closed at once, so the check finds
what a run would find. A server of the sessionless protocol gets two requests; others get a session that ends with the
check. The error of an HTTP server contains none of its own text: a status must not become a way to read what stands
behind addresses that only this process can reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tarsy.mcp.connection import Policy
from tarsy.mcp.errors import McpError
from tarsy.mcp.session import McpSession
from tarsy.mcp.tool_catalog import ListedTool, Offer, digests_of, listed_tools, offer
from tarsy.plan.model import ServerPlan, StdioTransport


@dataclass(frozen=True, slots=True)
class Look:
    """Result of a health check: digests of the tools, or reason and message of the failure.

    `offer` contains the tools for an agent with toolPolicy All.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    offer: Offer = field(default_factory=Offer)
    reason: str | None = None
    failure: str = ""
    listed: Mapping[str, ListedTool] = field(default_factory=dict)
    """Definitions of the tools, by name."""


async def look(server: ServerPlan, policy: Policy, seconds: float) -> Look:
    """Checks a server once, and closes the session.

    Args:
        server: The server, as an agent would use it.
        policy: Permissions and dependencies of the connection.
        seconds: Maximum seconds to start and to list the tools.
    """
    session = McpSession(server, policy)
    try:
        await session.started(seconds)
        return Look(
            digests_of(session.tools), offer(server, session.tools), listed=listed_tools(session.tools, session.redact)
        )
    except McpError as error:
        told = error.sentence if isinstance(server.transport, StdioTransport) else error.ours
        return Look(reason=error.code, failure=told)
    finally:
        await session.close()
