"""Reads the snapshot of a namespace through a function that its caller gives, with the caller's rights.

A kind that may not be read, or has too many objects, is a gap in the result and never an error. Secrets are never
read; of ConfigMaps and ServiceAccounts only the metadata is. Kinds that a cluster need not have (Argo CD, Flux,
cert-manager, Gateway API) leave no gap where they are not served.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tarsy.evidence.fields import Object, mapping, mappings, string
from tarsy.evidence.snapshot import Gap, Snapshot

MOST = 10_000
"""Maximum objects of a kind; the rest is a gap."""

PAGE = 500
"""Objects a request."""

LIST_SECONDS = 30.0
"""Maximum time for all objects of a kind."""

METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type of a list of which only the metadata is wanted."""

_AT_ONCE = 6


class CannotRead(Exception):
    """The API server refused a list or was not reached; `status` is that of HTTP, 0 if there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ReadKind:
    """A kind of object that evidence is computed from.

    Attributes:
        kind: its name.
        group: path of its group and version, as `/apis/apps/v1`.
        plural: name of the resource.
        namespaced: whether objects are in a namespace.
        metadata_only: only the metadata is read.
        optional: not every cluster serves it.
    """

    kind: str
    group: str
    plural: str
    namespaced: bool = True
    metadata_only: bool = False
    optional: bool = False

    @property
    def api_group(self) -> str:
        """Name of the API group; empty: the core group."""
        parts = self.group.split("/")
        return parts[2] if parts[1] == "apis" else ""

    def target(self, namespace: str) -> str:
        """Returns the path of the list in a namespace."""
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.group}{place}/{self.plural}"


_CORE, _APPS, _BATCH, _NET = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/networking.k8s.io/v1"
KINDS: tuple[ReadKind, ...] = (
    ReadKind("Pod", _CORE, "pods"),
    ReadKind("Event", _CORE, "events"),
    ReadKind("ConfigMap", _CORE, "configmaps", metadata_only=True),
    ReadKind("ServiceAccount", _CORE, "serviceaccounts", metadata_only=True),
    ReadKind("Service", _CORE, "services"),
    ReadKind("PersistentVolumeClaim", _CORE, "persistentvolumeclaims"),
    ReadKind("ResourceQuota", _CORE, "resourcequotas"),
    ReadKind("LimitRange", _CORE, "limitranges"),
    ReadKind("Deployment", _APPS, "deployments"),
    ReadKind("ReplicaSet", _APPS, "replicasets"),
    ReadKind("StatefulSet", _APPS, "statefulsets"),
    ReadKind("DaemonSet", _APPS, "daemonsets"),
    ReadKind("ControllerRevision", _APPS, "controllerrevisions"),
    ReadKind("Job", _BATCH, "jobs"),
    ReadKind("CronJob", _BATCH, "cronjobs"),
    ReadKind("Ingress", _NET, "ingresses"),
    ReadKind("NetworkPolicy", _NET, "networkpolicies"),
    ReadKind("HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ReadKind("PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets"),
    ReadKind("Node", _CORE, "nodes", namespaced=False),
    ReadKind("StorageClass", "/apis/storage.k8s.io/v1", "storageclasses", namespaced=False),
    ReadKind("IngressClass", _NET, "ingressclasses", namespaced=False),
    ReadKind("HTTPRoute", "/apis/gateway.networking.k8s.io/v1", "httproutes", optional=True),
    ReadKind("Certificate", "/apis/cert-manager.io/v1", "certificates", optional=True),
    ReadKind("Application", "/apis/argoproj.io/v1alpha1", "applications", optional=True),
    ReadKind("Kustomization", "/apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations", optional=True),
    ReadKind("HelmRelease", "/apis/helm.toolkit.fluxcd.io/v2", "helmreleases", optional=True),
)
"""The kinds that are read of a namespace."""

List = Callable[[str, Mapping[str, str], bool], Awaitable[Mapping[str, Any]]]
"""Gets a list: path, query, whether only metadata is wanted. Raises CannotRead."""


async def read_snapshot(
    get: List, namespace: str, read_at: datetime, kinds: Sequence[ReadKind] = KINDS, *, most: int = MOST
) -> Snapshot:
    """Reads the objects of a namespace, and the cluster-scoped ones that concern it.

    Args:
        get: gets a list, with the rights of the one that the evidence is for.
        namespace: its name.
        read_at: the time now.
        kinds: the kinds to read.
        most: maximum objects of a kind.

    Raises:
        CannotRead: the API server was not reached, or does not accept the credentials.
    """
    places = asyncio.Semaphore(_AT_ONCE)

    async def read(kind: ReadKind) -> "_Listing":
        async with places:
            return await _listing(get, kind, namespace, most)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read(kind)) for kind in kinds]
    except* CannotRead as errors:
        raise _first(errors) from None
    found = [task.result() for task in tasks]
    return Snapshot(
        read_at,
        [obj for one in found for obj in one.objects],
        frozenset((one.kind.kind, namespace if one.kind.namespaced else "") for one in found if one.complete),
        [Gap(one.kind.kind, namespace if one.kind.namespaced else "", one.gap) for one in found if one.gap],
    )


def _first(errors: BaseExceptionGroup[CannotRead]) -> CannotRead:
    found = errors.exceptions[0]
    return found if isinstance(found, CannotRead) else _first(found)


@dataclass(frozen=True, slots=True)
class _Listing:
    kind: ReadKind
    objects: Sequence[Object]
    complete: bool
    gap: str = ""


async def _listing(get: List, kind: ReadKind, namespace: str, most: int) -> _Listing:
    objects: list[Object] = []
    page = ""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            while True:
                query = {"limit": str(min(PAGE, most)), **({"continue": page} if page else {})}
                answer = await get(kind.target(namespace), query, kind.metadata_only)
                objects += [{**one, "kind": kind.kind} for one in mappings(answer, "items")]
                page = string(mapping(answer, "metadata"), "continue")
                if len(objects) > most or (page and len(objects) == most):
                    return _Listing(kind, objects[:most], False, f"only the first {most:,} were read")
                if not page:
                    return _Listing(kind, objects, True)
    except TimeoutError:
        return _Listing(kind, objects, False, f"the list was not complete after {LIST_SECONDS:g} s")
    except CannotRead as error:
        if error.status in (0, 401):
            raise
        if error.status == 404 and kind.optional:
            return _Listing(kind, (), True)
        if kind.optional and error.status == 403:
            return _Listing(kind, (), False)
        told = {403: "may not be listed", 404: "not served by this cluster"}
        return _Listing(kind, objects, False, told.get(error.status, str(error)))
