"""One look at a tool server: does it answer, and what does it list?

Opened as an execution would open it (its values resolved anew, its list of tools read) and closed at once, so what is
found is what a run would find. A server of the stateless protocol gets two requests and no session; one of the
handshake era gets a session that ends with the look. What is said of a failure is in our own words where the server is
reached by HTTP: a status must not become a way to read what stands behind addresses (DESIGN section 7).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tarsy.mcp.connection import Policy
from tarsy.mcp.errors import McpError
from tarsy.mcp.session import McpSession
from tarsy.mcp.tool_catalog import Offer, digests_of, offer
from tarsy.plan.model import ServerPlan, StdioTransport


@dataclass(frozen=True, slots=True)
class Look:
    """What was found: the server's tools (with their digests), or why there are none.

    `offer` is what an agent whose own toolPolicy is All would be offered.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    offer: Offer = field(default_factory=Offer)
    reason: str | None = None
    failure: str = ""


async def look(server: ServerPlan, policy: Policy, seconds: float) -> Look:
    """Looks at a server once, and leaves nothing behind.

    Args:
        server: The server, as an agent would use it.
        policy: What it may be.
        seconds: How long it may take to start and to list its tools.
    """
    session = McpSession(server, policy)
    try:
        await session.started(seconds)
        return Look(digests_of(session.tools), offer(server, session.tools))
    except McpError as error:
        told = error.sentence if isinstance(server.transport, StdioTransport) else error.ours
        return Look(reason=error.code, failure=told)
    finally:
        await session.close()
