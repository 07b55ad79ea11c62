"""Turns failures into tool errors that a model can act on."""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError

from tarsy.kubernetes_tools.cluster import ClusterError
from tarsy.kubernetes_tools.kinds import Refused


@contextmanager
def told() -> Iterator[None]:
    """Raises ToolError for a refused request."""
    try:
        yield
    except (ClusterError, Refused) as error:
        raise ToolError(str(error)) from error
