"""Implements the tool about a node: pressure, pods, requests, usage."""

from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from tarsy.kubernetes_tools.cluster import ClusterError, ClusterReader, describe_failure
from tarsy.kubernetes_tools.failures import told
from tarsy.kubernetes_tools.kinds import NODE_METRICS, checked, find_kind
from tarsy.kubernetes_tools.nodes import render_node
from tarsy.kubernetes_tools.paging import read_list
from tarsy.kubernetes_tools.workload_tools import ReachOf, Tool

_Node = Annotated[str, Field(description="Name of the node.")]


def node_tools(cluster: ClusterReader, reach: ReachOf) -> tuple[Tool, ...]:
    """Returns the tools of this module; arguments as for `workload_tools`."""

    async def describe_node(context: Context, name: _Node) -> CallToolResult:
        """Shows a node's conditions, pressure, taints, requested and used resources, and the pods on it in reach."""
        with told():
            within, node = reach(context), checked("name", name)
            kind = find_kind("Node")
            found = await cluster.get(kind.path(None, node), {}, doing=describe_failure("get", "nodes", None, node))
            try:
                measured = await cluster.get(
                    NODE_METRICS.path(None, node),
                    {},
                    doing=describe_failure("get", "nodes.metrics.k8s.io (the metrics API)", None, node),
                )
            except ClusterError as error:
                if error.status not in (403, 404, 503):
                    raise
                measured = None
            pods = []
            notes = []
            for where in (None,) if within.namespaces is None else sorted(within.namespaces):
                read = await read_list(
                    cluster,
                    find_kind("Pod").path(where),
                    {"fieldSelector": f"spec.nodeName={node}"},
                    doing=describe_failure("list", "pods", where),
                )
                pods += read.items
                if read.rest is not None:
                    notes.append(read.left_out("the rest is not shown").strip())
            hidden = None if within.namespaces is None else f"pods outside of {within} are not shown or counted"
            shown = render_node(found, pods, measured=measured, hidden=hidden, notes=notes)
            return shown.limited("the rest is not shown").answer

    return (describe_node,)
