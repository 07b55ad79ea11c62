"""Implements the tools about objects, events and logs, and composes the server.

Errors become results that the model can act on.

A request keeps to the namespaces that its caller names (`reach`), whatever its arguments say. Of what is in no
namespace it shows nodes, volumes and storage classes without what they tell of other namespaces, and of namespaces its
own. A pod's log comes from the API; only where the API has no kubelet to ask does it come from the pod's annotations. A
refused permission is never answered from them: whoever may not read logs does not read them here either.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field

from tarsy.kubernetes_tools.classes import ClassedText, classed_list
from tarsy.kubernetes_tools.cluster import ClusterError, ClusterReader, describe_failure
from tarsy.kubernetes_tools.failures import told
from tarsy.kubernetes_tools.kinds import Refused, checked, find_kind
from tarsy.kubernetes_tools.node_tools import node_tools
from tarsy.kubernetes_tools.paging import read_list, read_page
from tarsy.kubernetes_tools.reach import ENFORCED, NamespaceReach, reach_of
from tarsy.kubernetes_tools.render import render_events, render_list, render_object, seen_from_outside
from tarsy.kubernetes_tools.workload_tools import ReachOf, Tool, workload_tools

LOGS = "sample.tarsy.dev/logs"
PREVIOUS_LOGS = "sample.tarsy.dev/previous-logs"
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
INSTRUCTIONS = (
    "Read-only access to a Kubernetes cluster. Begin with list_resources and list_events of the namespace the alert "
    "names; get_logs with previous=true shows why a container that restarts ended. get_usage, get_rollout_history, "
    "get_endpoints, get_owners, get_quota_use, get_gitops and describe_node each answer one question that would take "
    "several lists."
)

KindName = Annotated[str, Field(description="A kind or resource: Pod, deployments, cm, ...")]
_Namespace = Annotated[str, Field(description="The namespace.")]
PageToken = Annotated[str | None, Field(description="The token that the answer before named; never another.")]
Lines = Annotated[int, Field(ge=1, le=5000, description="How many lines of the log's end.")]


def tool_server(cluster: ClusterReader, *, owner: str | None = None) -> MCPServer:
    """Creates the MCP server `kubernetes` for a cluster; closing it closes the cluster.

    Args:
        cluster: what is read.
        owner: the namespace of the MCPServers that it is for; requests must name their namespaces then.
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer) -> AsyncIterator[None]:
        async with cluster:
            yield

    server = MCPServer("kubernetes", instructions=INSTRUCTIONS, lifespan=lifespan, log_level="WARNING")
    tool = server.tool(annotations=READ_ONLY, meta=ENFORCED, structured_output=False)

    def reach(context: Context) -> NamespaceReach:
        return reach_of(context.request_context.meta, owner=owner)

    tools = _ObjectTools(cluster, reach)
    objects: tuple[Tool, ...] = (tools.list_resources, tools.get_resource, tools.list_events, tools.get_logs)
    for function in (*objects, *workload_tools(cluster, reach), *node_tools(cluster, reach)):
        tool(function)
    return server


class _ObjectTools:
    """Reads a cluster for the tools about objects, events and logs."""

    def __init__(self, cluster: ClusterReader, reach: ReachOf) -> None:
        self._cluster = cluster
        self._reach = reach

    async def list_resources(
        self,
        context: Context,
        kind: KindName,
        namespace: str | None = None,
        label_selector: str | None = None,
        page: PageToken = None,
    ) -> CallToolResult:
        """Lists objects of a kind, one line each with its state; of all namespaces in reach when none is given."""
        with told():
            found, within = find_kind(kind), self._reach(context)
            where = within.checked(checked("namespace", namespace)) if namespace and found.namespaced else None
            if found.namespaced and where is None and within.namespaces is not None:
                where = within.only
                if where is None:
                    raise Refused(f"give `namespace`: this investigation reaches {within}")
            if found.name == "Namespace" and within.namespaces is not None:
                items = [await _namespace(self._cluster, name) for name in sorted(within.namespaces)]
                return classed_list(found.name, render_list(found.name, items, with_namespace=False)).answer
            parameters = {"labelSelector": label_selector or None, "continue": page or None}
            part = await read_page(
                self._cluster, found.path(where), parameters, doing=describe_failure("list", found.plural, where)
            )
            text = render_list(found.name, part.items, with_namespace=found.namespaced and where is None)
            remedy = f"narrow by namespace or label_selector, or go on with page={part.rest!r}"
            shown = classed_list(found.name, text).limited("narrow it by namespace or label_selector")
            return (shown + part.left_out(remedy)).answer

    async def get_resource(
        self, context: Context, kind: KindName, name: str, namespace: str | None = None
    ) -> CallToolResult:
        """Shows one object as JSON, with its status."""
        with told():
            found, within = find_kind(kind), self._reach(context)
            namespace = namespace or within.only
            if found.namespaced and not namespace:
                raise Refused(f"a {found.name} is in a namespace: give `namespace`")
            where = within.checked(checked("namespace", namespace)) if namespace and found.namespaced else None
            if found.name == "Namespace":
                within.checked(checked("name", name))
            path = found.path(where, checked("name", name))
            item = await self._cluster.get(path, {}, doing=describe_failure("get", found.plural, where, name))
            if not found.namespaced and not within.includes(_claimed_in(item)):
                item = dict(seen_from_outside(found.name, item))
            return render_object(item).limited("the rest of this object is not shown").answer

    async def list_events(
        self, context: Context, namespace: _Namespace, involved_name: str | None = None
    ) -> CallToolResult:
        """Lists the events of a namespace, or of one object in it, the latest last."""
        with told():
            where = self._reach(context).checked(checked("namespace", namespace))
            about = f"involvedObject.name={checked('involved_name', involved_name)}" if involved_name else None
            path = find_kind("Event").path(where)
            # The API lists events by name, not by time: the latest are known only after all were read.
            read = await read_list(
                self._cluster, path, {"fieldSelector": about}, doing=describe_failure("list", "events", where)
            )
            shown = render_events(read.items).limited("narrow it by involved_name", tail=True)
            return (shown + read.left_out("they may be later than these: narrow by involved_name")).answer

    async def get_logs(
        self,
        context: Context,
        namespace: _Namespace,
        pod: str,
        container: str | None = None,
        previous: bool = False,
        tail_lines: Lines = 200,
    ) -> str:
        """Shows the end of a container's log; with previous=true that of the container before the last restart."""
        with told():
            where, name = self._reach(context).checked(checked("namespace", namespace)), checked("pod", pod)
            path = find_kind("Pod").path(where, name)
            parameters = {
                "container": checked("container", container) if container else None,
                "previous": "true" if previous else None,
                "tailLines": str(tail_lines),
            }
            try:
                text = await self._cluster.read(
                    f"{path}/log", parameters, doing=describe_failure("get", "pods/log", where, name)
                )
            except ClusterError as error:
                if error.status in (0, 401, 403):
                    raise
                text = await _annotated(
                    self._cluster, path, previous, error, doing=describe_failure("get", "pods", where, name)
                )
            lines = text.splitlines()[-tail_lines:]
            log = ClassedText("\n".join(lines) or "the log is empty")
            return log.limited("ask for fewer lines with tail_lines", tail=True).text


async def _namespace(cluster: ClusterReader, name: str) -> dict[str, Any]:
    return await cluster.get(
        find_kind("Namespace").path(None, name), {}, doing=describe_failure("get", "namespaces", None, name)
    )


def _claimed_in(item: Mapping[str, Any]) -> str | None:
    """The namespace whose claim a volume is bound to; None for anything else."""
    return ((item.get("spec") or {}).get("claimRef") or {}).get("namespace")


async def _annotated(cluster: ClusterReader, path: str, previous: bool, error: ClusterError, *, doing: str) -> str:
    """The log in the pod's annotations. Raises the log's own error when there is none."""
    pod = await cluster.get(path, {}, doing=doing)
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    text = notes.get(PREVIOUS_LOGS if previous else LOGS)
    if text is None:
        raise error
    return str(text)
