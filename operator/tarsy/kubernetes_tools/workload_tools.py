"""Implements the tools about workloads in a namespace: usage, rollouts, endpoints, owners, quota use, deliveries."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from tarsy.kubernetes_tools.classes import ClassedText, vouched
from tarsy.kubernetes_tools.cluster import ClusterError, ClusterReader, describe_failure
from tarsy.kubernetes_tools.failures import told
from tarsy.kubernetes_tools.gitops import deliveries
from tarsy.kubernetes_tools.kinds import GITOPS_KINDS, POD_METRICS, Kind, Refused, checked, find_kind
from tarsy.kubernetes_tools.owners import controller_of, owned, render_owners
from tarsy.kubernetes_tools.paging import Page, read_list
from tarsy.kubernetes_tools.quotas import render_quotas
from tarsy.kubernetes_tools.reach import NamespaceReach
from tarsy.kubernetes_tools.rollouts import render_history, revisions
from tarsy.kubernetes_tools.services import render_endpoints
from tarsy.kubernetes_tools.usage import container_usage, render_usage

MOST_OWNERS = 6
NARROW = "narrow it by label_selector"
_CHILDREN = {
    "Deployment": ("ReplicaSet",),
    "ReplicaSet": ("Pod",),
    "StatefulSet": ("Pod",),
    "DaemonSet": ("Pod",),
    "Job": ("Pod",),
    "CronJob": ("Job",),
    "Service": ("EndpointSlice",),
}

Tool = Callable[..., Awaitable[str | CallToolResult]]
ReachOf = Callable[[Context], NamespaceReach]
_Namespace = Annotated[str, Field(description="The namespace.")]
_KindName = Annotated[str, Field(description="A kind or resource: Pod, deployments, cm, ...")]
_Workload = Annotated[Literal["Deployment", "StatefulSet", "DaemonSet"], Field(description="Kind of the workload.")]
_Revision = Annotated[int | None, Field(description="Number of a revision. Default: the newest and the one before.")]


def workload_tools(cluster: ClusterReader, reach: ReachOf) -> tuple[Tool, ...]:
    """Returns the tools of this module.

    Args:
        cluster: what is read.
        reach: gives the namespaces of a request; raises Refused.
    """
    tools = _WorkloadTools(cluster, reach)
    return (
        tools.get_usage,
        tools.get_rollout_history,
        tools.get_endpoints,
        tools.get_owners,
        tools.get_quota_use,
        tools.get_gitops,
    )


class _WorkloadTools:
    """Reads a cluster for the tools about workloads."""

    def __init__(self, cluster: ClusterReader, reach: ReachOf) -> None:
        self._cluster = cluster
        self._reach = reach

    def _within(self, context: Context, namespace: str) -> str:
        return self._reach(context).checked(checked("namespace", namespace))

    async def _listed(self, kind: Kind, where: str | None, selector: str | None = None) -> Page:
        parameters = {"labelSelector": selector or None}
        return await read_list(
            self._cluster, kind.path(where), parameters, doing=describe_failure("list", kind.plural, where)
        )

    async def _one(self, kind: Kind, where: str | None, name: str) -> dict[str, Any]:
        path = kind.path(where, checked("name", name))
        return await self._cluster.get(path, {}, doing=describe_failure("get", kind.plural, where, name))

    async def get_usage(
        self, context: Context, namespace: _Namespace, label_selector: str | None = None
    ) -> CallToolResult:
        """Shows CPU and memory that each container uses now, with its requests and limits, nearest to a limit first."""
        with told():
            where = self._within(context, namespace)
            pods = await self._listed(find_kind("Pod"), where, label_selector)
            measured = await read_list(
                self._cluster,
                POD_METRICS.path(where),
                {"labelSelector": label_selector or None},
                doing=describe_failure("list", "pods.metrics.k8s.io (the metrics API)", where),
            )
            when = max((str(item.get("timestamp")) for item in measured.items), default=None)
            text = render_usage(container_usage(pods.items, measured.items), when)
            return (vouched(text).limited(NARROW) + pods.left_out(NARROW)).answer

    async def get_rollout_history(
        self,
        context: Context,
        namespace: _Namespace,
        kind: _Workload,
        name: str,
        from_revision: _Revision = None,
        to_revision: _Revision = None,
    ) -> CallToolResult:
        """Lists the revisions of a workload with times and images, and what changed from one revision to another."""
        with told():
            where, found = self._within(context, namespace), find_kind(kind)
            workload = await self._one(found, where, name)
            source = find_kind("ReplicaSet" if kind == "Deployment" else "ControllerRevision")
            labels = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels")
            items = await self._listed(source, where, _selector(labels))
            past = revisions(items.items, str((workload.get("metadata") or {}).get("uid")))
            text = render_history(f"{kind} {name}", past, from_revision, to_revision)
            shown = text.limited("compare two revisions by from_revision and to_revision")
            return (shown + items.left_out("the oldest or newest may be among them")).answer

    async def get_endpoints(self, context: Context, namespace: _Namespace, service: str) -> CallToolResult:
        """Shows the endpoints behind a Service and their readiness; says why there are none."""
        with told():
            where = self._within(context, namespace)
            found = await self._one(find_kind("Service"), where, service)
            slices = await self._listed(find_kind("EndpointSlice"), where, f"kubernetes.io/service-name={service}")
            selector = _selector((found.get("spec") or {}).get("selector"))
            pods = await self._listed(find_kind("Pod"), where, selector) if selector else Page([])
            shown = vouched(render_endpoints(found, slices.items, pods.items))
            return shown.limited("the rest is not shown").answer

    async def get_owners(self, context: Context, kind: _KindName, name: str, namespace: _Namespace) -> str:
        """Shows who owns an object up to the top, which tool manages it, who wrote it last, and what it owns."""
        with told():
            where, found = self._within(context, namespace), find_kind(kind)
            if not found.namespaced:
                raise Refused(f"a {found.name} is in no namespace and has no owner here")
            first = await self._one(found, where, name)
            chain, end = [(found.name, first)], None
            while (owner := controller_of(chain[-1][1])) is not None:
                called = f"{owner.get('kind')}/{owner.get('name')} ({owner.get('apiVersion')})"
                above = _readable(owner)
                if above is None or len(chain) == MOST_OWNERS:
                    end = f"owned by {called}, which this server does not read"
                    break
                try:
                    chain.append((above.name, await self._one(above, where, str(owner.get("name")))))
                except ClusterError as error:
                    end = f"owned by {called}: {error}"
                    break
            children = []
            for below in _CHILDREN.get(found.name, ()):
                items = await self._listed(find_kind(below), where)
                mine = owned(items.items, str((first.get("metadata") or {}).get("uid")))
                children += [(below, str((item.get("metadata") or {}).get("name"))) for item in mine]
            return ClassedText(render_owners(chain, end, children)).limited("the rest is not shown").text

    async def get_quota_use(self, context: Context, namespace: _Namespace) -> CallToolResult:
        """Shows how much of the namespace's quotas is used, the scarcest first, and the limits of single objects."""
        with told():
            where = self._within(context, namespace)
            quotas = await self._listed(find_kind("ResourceQuota"), where)
            ranges = await self._listed(find_kind("LimitRange"), where)
            return vouched(render_quotas(quotas.items, ranges.items)).limited("the rest is not shown").answer

    async def get_gitops(self, context: Context, namespace: str | None = None) -> str:
        """Shows what Argo CD and Flux deliver into a namespace: source, revision, sync, health, last deployments."""
        with told():
            asked = self._reach(context)
            if namespace:
                asked = NamespaceReach(frozenset([asked.checked(checked("namespace", namespace))]))
            texts: list[str] = []
            missing: list[str] = []
            for kind in GITOPS_KINDS:
                try:
                    read = await self._listed(kind, None)
                except ClusterError as error:
                    if error.status not in (403, 404):
                        raise
                    word = "not installed" if error.status == 404 else "not readable by this server's account"
                    missing.append(f"{kind.name} ({kind.api.split('/')[1]}): {word}")
                    continue
                texts += deliveries(kind.name, read.items, asked)
                if read.rest is not None:
                    missing.append(f"{kind.name}: only the first {len(read.items)} were looked at")
            text = "\n".join(texts) or f"nothing that this server can read delivers into {asked}"
            return ClassedText(text).limited("give `namespace`").text + "".join(f"\n[{line}]" for line in missing)


def _selector(labels: Mapping[str, Any] | None) -> str | None:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or None


def _readable(owner: Mapping[str, Any]) -> Kind | None:
    try:
        kind = find_kind(str(owner.get("kind")))
    except Refused:
        return None
    group = kind.api.removeprefix("apis/").removeprefix("api/")
    return kind if str(owner.get("apiVersion")) == group and kind.namespaced else None
