"""Finds which objects can affect which: the scope of a target, and its blast radius.

An edge points from the object that affects to the object that is affected: a ConfigMap to the Deployment that mounts
it, a Node to its pods. The target of an alert stands for itself, its owners and all that they own, because an alert
names a pod where the Deployment changed. Each relation has a weight; the reach of an object is the product of the
weights on its best path, at most `MAX_STEPS` long. Cycles (owners that own each other) end there too.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tarsy.evidence.fields import Object, labels, mapping, mappings, string, value
from tarsy.evidence.selection import Selection
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot
from tarsy.evidence.workloads import TEMPLATE_PATHS, containers, references, template_of

MAX_STEPS = 3
"""Longest path of edges from the target, besides owners."""

NAMESPACE_REACH = 0.1
"""Reach of an object of the same namespace that no path leads to."""


class Relation(StrEnum):
    """How an object affects another."""

    OWNS = "owns"
    CONFIGURES = "configures"
    SELECTS = "selects"
    RESTRICTS = "restricts"
    SCALES = "scales"
    RUNS = "runs"
    LIMITS = "limits"
    ROUTES = "routes"
    STORES = "stores"
    SERVES = "serves"
    DEPLOYS = "deploys"
    PROTECTS = "protects"
    AUTHORIZES = "authorizes"


WEIGHTS: Mapping[Relation, float] = {
    Relation.OWNS: 1.0,
    Relation.CONFIGURES: 0.9,
    Relation.DEPLOYS: 0.9,
    Relation.SELECTS: 0.8,
    Relation.RESTRICTS: 0.8,
    Relation.SCALES: 0.8,
    Relation.STORES: 0.8,
    Relation.RUNS: 0.7,
    Relation.LIMITS: 0.7,
    Relation.SERVES: 0.6,
    Relation.ROUTES: 0.6,
    Relation.AUTHORIZES: 0.6,
    Relation.PROTECTS: 0.4,
}
"""Weight of a relation: how likely a change of the one object is to be felt by the other."""

_ADOPTED = {"Deployment": "ReplicaSet", "ReplicaSet": "Pod", "StatefulSet": "Pod", "DaemonSet": "Pod"}
_LIMITS = ("ResourceQuota", "LimitRange")
_SCALERS = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ScaledObject")
_HOST = re.compile(r"(?<![\w.-])([a-z][a-z0-9-]{0,62})(?:\.([a-z0-9-]{1,63}))?(?:\.svc[a-z.]*)?(?=[:/]|$)")
_GITOPS = {
    "argocd.argoproj.io/instance": ("Application", None),
    "app.kubernetes.io/instance": ("Application", None),
    "kustomize.toolkit.fluxcd.io/name": ("Kustomization", "kustomize.toolkit.fluxcd.io/namespace"),
    "helm.toolkit.fluxcd.io/name": ("HelmRelease", "helm.toolkit.fluxcd.io/namespace"),
}


class Edge(NamedTuple):
    """One object affects another."""

    source: ObjectKey
    target: ObjectKey
    relation: Relation


@dataclass(frozen=True, slots=True)
class Reach:
    """How strongly an object reaches a target.

    Attributes:
        weight: from 0 to 1.
        path: the edges, from the object to the target's group; empty: it is of the group, or only of the namespace.
    """

    weight: float
    path: tuple[Edge, ...] = ()


class Topology:
    """The edges between the objects of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._into: dict[ObjectKey, list[Edge]] = defaultdict(list)
        self._out: dict[ObjectKey, list[Edge]] = defaultdict(list)
        self.selection = Selection(snapshot)
        for edge in sorted(set(_edges(snapshot, self.selection))):
            self._into[edge.target].append(edge)
            self._out[edge.source].append(edge)

    @property
    def gaps(self) -> Sequence[Gap]:
        """What could not be read, or not be followed."""
        return [*self.snapshot.gaps, *self.selection.gaps]

    def into(self, key: ObjectKey) -> Sequence[Edge]:
        """Returns the edges of objects that affect an object."""
        return self._into.get(key, [])

    def out_of(self, key: ObjectKey) -> Sequence[Edge]:
        """Returns the edges to objects that an object affects."""
        return self._out.get(key, [])

    def group(self, target: ObjectKey) -> frozenset[ObjectKey]:
        """Returns a target with its owners, and everything that these own."""
        top, seen = target, {target}
        while (owner := next((e.source for e in self.into(top) if e.relation is Relation.OWNS), None)) is not None:
            if owner in seen:
                break  # owners that own each other
            top = owner
            seen.add(owner)
        waiting = [top]
        while waiting:
            for edge in self.out_of(waiting.pop()):
                if edge.relation is Relation.OWNS and edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return frozenset(seen)

    def scope(self, target: ObjectKey) -> Mapping[ObjectKey, Reach]:
        """Returns the objects that can affect a target, with their reach; the target's group first.

        A pod without a node is affected by every node: by its labels, its taints and its free resources.
        """
        found = dict(self._walk(target, self.into, lambda edge: edge.source))
        waiting = (self.snapshot.at(key) for key in self.group(target) if key.kind == "Pod")
        if any(not string(pod, "spec", "nodeName") for pod in waiting):
            for node in self.snapshot.keys("Node"):
                found.setdefault(node, Reach(WEIGHTS[Relation.RUNS]))
        return found

    def blast_radius(self, target: ObjectKey) -> Mapping[ObjectKey, Reach]:
        """Returns the objects that a target can affect, with its reach to each; the target's group first."""
        return self._walk(target, self.out_of, lambda edge: edge.target)

    def _walk(
        self,
        target: ObjectKey,
        edges: Callable[[ObjectKey], Sequence[Edge]],
        end: Callable[[Edge], ObjectKey],
    ) -> Mapping[ObjectKey, Reach]:
        found = {key: Reach(1.0) for key in sorted(self.group(target))}
        border = dict(found)
        for _ in range(MAX_STEPS):
            after: dict[ObjectKey, Reach] = {}
            for key, reach in border.items():
                for edge in edges(key):
                    weight, other = reach.weight * WEIGHTS[edge.relation], end(edge)
                    best = after.get(other) or found.get(other)
                    if best is None or weight > best.weight:
                        after[other] = Reach(weight, (edge, *reach.path))
            found.update(after)
            border = after
        return found


def _edges(snapshot: Snapshot, pods: Selection) -> Iterator[Edge]:
    for key in snapshot.all_keys():
        obj = snapshot.at(key)
        yield from _owners(key, obj, snapshot)
        yield from _gitops(key, obj, snapshot)
        if key.kind in TEMPLATE_PATHS:
            yield from _of_pods(key, obj, snapshot)
            yield from _orphans(key, obj, snapshot, pods)
        elif key.kind in _LIMITS:
            yield from _limited(key, snapshot, pods)
        elif key.kind in _SCALERS:
            field = "targetRef" if key.kind == "VerticalPodAutoscaler" else "scaleTargetRef"
            yield from _named(key, mapping(obj, "spec", field), snapshot)
        else:
            yield from _of_kind(key, obj, pods)


def _owners(key: ObjectKey, obj: Object, snapshot: Snapshot) -> Iterator[Edge]:
    for owner in mappings(obj, "metadata", "ownerReferences"):
        found = snapshot.find_uid(string(owner, "uid"))
        if found is not None and found != key:
            yield Edge(found, key, Relation.OWNS)


def _orphans(key: ObjectKey, obj: Object, snapshot: Snapshot, pods: Selection) -> Iterator[Edge]:
    """Yields the objects without an owner that a controller selects: it adopts them."""
    kind = _ADOPTED.get(key.kind)
    selector = mapping(obj, "spec", "selector")
    if kind is None or not selector:
        return
    for other in pods.chosen(selector, key.namespace):
        if other.kind == kind and not mappings(snapshot.at(other), "metadata", "ownerReferences"):
            yield Edge(key, other, Relation.OWNS)


def _gitops(key: ObjectKey, obj: Object, snapshot: Snapshot) -> Iterator[Edge]:
    marks = labels(obj, "metadata", "labels")
    for label, (kind, namespace_label) in _GITOPS.items():
        if not (name := marks.get(label)):
            continue
        namespace = marks.get(namespace_label, key.namespace) if namespace_label else ""
        yield from (
            Edge(other, key, Relation.DEPLOYS) for other in snapshot.named(kind, namespace, name) if other != key
        )


def _of_pods(key: ObjectKey, obj: Object, snapshot: Snapshot) -> Iterator[Edge]:
    template = template_of(key, obj) or {}
    for reference in references(template):
        relation = {
            "PersistentVolumeClaim": Relation.STORES,
            "ServiceAccount": Relation.AUTHORIZES,
        }.get(reference.kind, Relation.CONFIGURES)
        yield Edge(ObjectKey(reference.kind, key.namespace, reference.name), key, relation)
    node = string(template, "spec", "nodeName")
    if key.kind == "Pod" and node:
        yield Edge(ObjectKey("Node", "", node), key, Relation.RUNS)
    for service in _called(template, key.namespace, snapshot):
        yield Edge(service, key, Relation.SERVES)


def _called(template: Object, namespace: str, snapshot: Snapshot) -> Iterator[ObjectKey]:
    """Yields the Services that literal environment values name as a host (`http://cart:80`, `db.data.svc:5432`)."""
    for container in containers(template):
        for variable in mappings(container, "env"):
            for found in _HOST.finditer(string(variable, "value")[:2048]):
                key = ObjectKey("Service", found[2] or namespace, found[1])
                if snapshot.at(key):
                    yield key


def _of_kind(key: ObjectKey, obj: Object, pods: Selection) -> Iterator[Edge]:
    spec = mapping(obj, "spec")
    match key.kind:
        case "Service":
            if selector := labels(spec, "selector"):
                for other in pods.chosen({"matchLabels": selector}, key.namespace):
                    yield Edge(key, other, Relation.SELECTS)
                    yield Edge(other, key, Relation.SERVES)
        case "NetworkPolicy":
            for other in pods.chosen(mapping(spec, "podSelector"), key.namespace):
                yield Edge(key, other, Relation.RESTRICTS)
        case "PodDisruptionBudget":
            for other in pods.chosen(mapping(spec, "selector"), key.namespace):
                yield Edge(key, other, Relation.PROTECTS)
        case "Ingress" | "HTTPRoute":
            for service in _backends(obj):
                yield Edge(key, ObjectKey("Service", key.namespace, service), Relation.ROUTES)
        case "PersistentVolumeClaim":
            if volume := string(spec, "volumeName"):
                yield Edge(ObjectKey("PersistentVolume", "", volume), key, Relation.STORES)
            if storage_class := string(spec, "storageClassName"):
                yield Edge(ObjectKey("StorageClass", "", storage_class), key, Relation.STORES)
        case "RoleBinding":
            for subject in mappings(obj, "subjects"):
                account = ObjectKey(string(subject, "kind"), string(subject, "namespace"), string(subject, "name"))
                if account.kind == "ServiceAccount":
                    yield Edge(key, account, Relation.AUTHORIZES)
            role = ObjectKey("Role", key.namespace, string(obj, "roleRef", "name"))
            if string(obj, "roleRef", "kind") == "Role":
                yield Edge(role, key, Relation.AUTHORIZES)


def _named(key: ObjectKey, reference: Object, snapshot: Snapshot) -> Iterator[Edge]:
    other = ObjectKey(string(reference, "kind") or "Deployment", key.namespace, string(reference, "name"))
    if snapshot.at(other):
        yield Edge(key, other, Relation.SCALES)


def _limited(key: ObjectKey, snapshot: Snapshot, pods: Selection) -> Iterator[Edge]:
    """Yields the pods and workloads of a namespace that have no owner: a quota or limit range concerns each."""
    for other in pods.chosen({}, key.namespace):
        if not mappings(snapshot.at(other), "metadata", "ownerReferences"):
            yield Edge(key, other, Relation.LIMITS)
    for kind in ("Job", "CronJob"):
        for other, obj in snapshot.items(kind, key.namespace):
            if not mappings(obj, "metadata", "ownerReferences"):
                yield Edge(key, other, Relation.LIMITS)


def _backends(route: Object) -> Iterable[str]:
    """Yields the names of the Services that an Ingress or HTTPRoute sends requests to."""
    if name := string(route, "spec", "defaultBackend", "service", "name"):
        yield name
    for rule in mappings(route, "spec", "rules"):
        for path in mappings(rule, "http", "paths"):
            if name := string(path, "backend", "service", "name"):
                yield name
        for backend in mappings(rule, "backendRefs"):
            if value(backend, "kind") in (None, "Service") and (name := string(backend, "name")):
                yield name
