"""Reads the snapshot of a namespace through a function that its caller gives, with the caller's rights.

A kind that may not be read, or has too many objects, is a gap in the result and never an error. Secrets are never
read; of ConfigMaps and ServiceAccounts only the metadata is. Kinds that a cluster need not have (Argo CD, Flux,
cert-manager, Gateway API) leave no gap where they are not served.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from tarsy.evidence.fields import Object, mapping, mappings, one_line, string
from tarsy.evidence.snapshot import Gap, Snapshot

MOST = 10_000
"""Maximum objects of a kind; the rest is a gap."""

PAGE = 500
"""Objects a request."""

LIST_SECONDS = 30.0
"""Maximum time for all objects of a kind."""

METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type of a list of which only the metadata is wanted."""

READ_SECONDS = 90.0
"""Maximum time for all kinds."""

MOST_IN_ALL = 50_000
"""Maximum objects of all kinds; the rest is a gap."""

_AT_ONCE = 6
_ON_LOOP = 500
_Error = TypeVar("_Error", bound=Exception)
_CONTROLLED = ("Pod", "ReplicaSet", "ControllerRevision", "Job")


class CannotRead(Exception):
    """The API server refused a list or was not reached; `status` is that of HTTP, 0 if there was no answer.

    `gap` is the sentence for the result, where the status alone does not explain the refusal.
    """

    def __init__(self, status: int, message: str, gap: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.gap = gap


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
    get: List,
    namespace: str,
    read_at: datetime,
    kinds: Sequence[ReadKind] = KINDS,
    *,
    most: int = MOST,
    most_in_all: int = MOST_IN_ALL,
    seconds: float = READ_SECONDS,
) -> Snapshot:
    """Reads the objects of a namespace, and the cluster-scoped ones that concern it.

    Args:
        get: gets a list, with the rights of the one that the evidence is for.
        namespace: its name.
        read_at: the time now.
        kinds: the kinds to read.
        most: maximum objects of a kind.
        most_in_all: maximum objects of all kinds.
        seconds: maximum time for all kinds; those that are not complete then are gaps.

    Raises:
        CannotRead: the API server was not reached, or does not accept the credentials.
    """
    places = asyncio.Semaphore(_AT_ONCE)
    room = _Room(most_in_all, asyncio.get_running_loop().time() + seconds, seconds)

    async def read(kind: ReadKind) -> "_Listing":
        async with places:
            return await _listing(get, kind, namespace, most, room)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read(kind)) for kind in kinds]
    except* CannotRead as errors:
        raise _first(errors) from None
    found = [task.result() for task in tasks]
    objects = [obj for one in found for obj in one.objects]
    build = partial(
        Snapshot,
        read_at,
        objects,
        frozenset((one.kind.kind, namespace if one.kind.namespaced else "") for one in found if one.complete),
        [Gap(one.kind.kind, namespace if one.kind.namespaced else "", one.gap) for one in found if one.gap],
    )
    return await asyncio.to_thread(build) if len(objects) > _ON_LOOP else build()


async def allowed_kinds(kinds: Iterable[ReadKind], ask: Callable[[ReadKind], Awaitable[bool]]) -> tuple[ReadKind, ...]:
    """Returns the kinds for which a question is answered with yes; asks about several at once.

    Args:
        kinds: the kinds to ask about.
        ask: asks about one. Its first error is raised, and no other question is asked then.
    """
    places = asyncio.Semaphore(_AT_ONCE)

    async def answer(kind: ReadKind) -> bool:
        async with places:
            return await ask(kind)

    try:
        async with asyncio.TaskGroup() as group:
            asked = [(kind, group.create_task(answer(kind))) for kind in kinds]
    except* Exception as errors:
        raise _first(errors) from None
    return tuple(kind for kind, task in asked if task.result())


def _first(errors: BaseExceptionGroup[_Error]) -> _Error:
    """Returns an error of a group of them, which may have groups in it."""
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


@dataclass(slots=True)
class _Room:
    """Holds the limits that all lists of a snapshot share: remaining objects, and the time at which reading ends."""

    left: int
    until: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Listing:
    kind: ReadKind
    objects: Sequence[Object]
    complete: bool
    gap: str = ""


async def _listing(get: List, kind: ReadKind, namespace: str, most: int, room: _Room) -> _Listing:
    objects: list[Object] = []
    page = ""
    alone = asyncio.get_running_loop().time() + LIST_SECONDS
    try:
        async with asyncio.timeout_at(min(alone, room.until)):
            while True:
                query = {"limit": str(min(PAGE, most)), **({"continue": page} if page else {})}
                answer = await get(kind.target(namespace), query, kind.metadata_only)
                found = mappings(answer, "items")
                page = string(mapping(answer, "metadata"), "continue")
                kept = found[: min(most - len(objects), room.left)]
                objects += [_kept(one, kind) for one in kept]
                room.left -= len(kept)
                if len(kept) < len(found) or (page and (len(objects) == most or not room.left)):
                    return _Listing(kind, objects, False, f"only the first {len(objects):,} were read")
                if not page:
                    return _Listing(kind, objects, True)
    except TimeoutError:
        limit = LIST_SECONDS if alone < room.until else room.seconds
        return _Listing(kind, objects, False, f"the list was not complete after {limit:g} s")
    except CannotRead as error:
        if error.status in (0, 401):
            raise
        if error.status == 404 and kind.optional:
            return _Listing(kind, (), True)
        if kind.optional and error.status == 403:
            return _Listing(kind, (), False)
        told = {403: "may not be listed", 404: "not served by this cluster"}
        reason = error.gap or told.get(error.status) or one_line(str(error), "the API server refused")
        return _Listing(kind, objects, False, reason)


def _kept(obj: Object, kind: ReadKind) -> Object:
    """Returns an object with its kind, which lists leave out.

    Field managers of a pod or revision that a controller owns tell nothing, and are half of its memory.
    """
    metadata = mapping(obj, "metadata")
    owned = any(one.get("controller") is True for one in mappings(metadata, "ownerReferences"))
    if kind.kind in _CONTROLLED and owned:
        rest = {key: value for key, value in metadata.items() if key != "managedFields"}
        return {**obj, "metadata": rest, "kind": kind.kind}
    return {**obj, "kind": kind.kind}
