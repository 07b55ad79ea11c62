"""Finds the edges between the objects of a snapshot: owners, references, selectors, routes, nodes.

An edge points from the object that affects to the object that is affected: a ConfigMap to the Deployment that mounts
it, a Node to its pods.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from tarsy.evidence.fields import Object, labels, mapping, mappings, string, value
from tarsy.evidence.selection import Selection
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.workloads import TEMPLATE_PATHS, containers, references, template_of

_ADOPTED = {"Deployment": "ReplicaSet", "ReplicaSet": "Pod", "StatefulSet": "Pod", "DaemonSet": "Pod"}
_LIMITS = ("ResourceQuota", "LimitRange")
_SCALERS = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ScaledObject")
_HOST = re.compile(r"(?<![\w.-])([a-z][a-z0-9-]{0,62})(?:\.([a-z0-9-]{1,63}))?(?:\.svc[a-z.]*)?(?=[:/]|$)")
_OF_TEMPLATE = re.compile(r"(.+)-[0-9]+")
_GITOPS = {
    "argocd.argoproj.io/instance": ("Application", None),
    "app.kubernetes.io/instance": ("Application", None),
    "kustomize.toolkit.fluxcd.io/name": ("Kustomization", "kustomize.toolkit.fluxcd.io/namespace"),
    "helm.toolkit.fluxcd.io/name": ("HelmRelease", "helm.toolkit.fluxcd.io/namespace"),
}


class Relation(StrEnum):
    """Lists the ways in which an object affects another."""

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


class Edge(NamedTuple):
    """One object affects another."""

    source: ObjectKey
    target: ObjectKey
    relation: Relation


def find_edges(snapshot: Snapshot, pods: Selection) -> Iterator[Edge]:
    """Yields the edges between the objects of a snapshot; one may come twice.

    Args:
        snapshot: the objects.
        pods: its pods, by label.
    """
    claimed = _claim_templates(snapshot)
    for key in snapshot.all_keys():
        obj = snapshot.at(key)
        yield from _owners(key, obj, snapshot)
        if key.kind == "PersistentVolumeClaim" and (owner := claimed.get((key.namespace, _template(key.name)))):
            yield Edge(owner, key, Relation.OWNS)
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


def _template(claim: str) -> str:
    """Returns the name of a claim without its ordinal; empty: it has none."""
    found = _OF_TEMPLATE.fullmatch(claim)
    return found[1] if found else ""


def _claim_templates(snapshot: Snapshot) -> Mapping[tuple[str, str], ObjectKey]:
    """Returns StatefulSets by namespace and name, without the ordinal, of the claims that they make from templates."""
    return {
        (key.namespace, f"{string(template, 'metadata', 'name')}-{key.name}"): key
        for key, obj in snapshot.items("StatefulSet")
        for template in mappings(obj, "spec", "volumeClaimTemplates")
    }


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
