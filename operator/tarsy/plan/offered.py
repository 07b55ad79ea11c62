"""Reads the tools that an MCPServer offers from its status.

Decision: known means that the server answered since its spec last changed (condition Verified of this generation) and
that its status lists all names. A server that was never asked is taken at its word, so a chain may come before it.
"""

from __future__ import annotations

from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.mcp_server import MCPServer


def offered_tools(server: MCPServer) -> frozenset[str] | None:
    """The names of all tools that the server offers; None while that is not known."""
    status = server.status
    verified = condition(status.conditions, ConditionType.VERIFIED)
    if verified is None or verified.status == "Unknown" or verified.observed_generation != server.metadata.generation:
        return None
    return frozenset(status.tools) if status.tool_count == len(status.tools) else None
