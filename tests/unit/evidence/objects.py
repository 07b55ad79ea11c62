"""Builds Kubernetes objects of a small shop: what a test does not name is well."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tarsy.evidence.snapshot import Snapshot
from tarsy.evidence.topology import Topology

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
NAMESPACE = "shop"
Obj = dict[str, Any]


def ago(**since: float) -> str:
    """A time before NOW, as the API writes it."""
    return (NOW - timedelta(**since)).strftime("%Y-%m-%dT%H:%M:%SZ")


def made(kind: str, name: str, *, namespace: str = NAMESPACE, owner: Obj | None = None, **fields: Any) -> Obj:
    """An object; `owner` is its controller."""
    metadata: Obj = {
        "name": name,
        "uid": f"uid-{kind}-{namespace}-{name}".lower(),
        "creationTimestamp": ago(days=3),
        **fields.pop("metadata", {}),
    }
    if namespace:
        metadata["namespace"] = namespace
    if owner is not None:
        of = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata["ownerReferences"] = [{**of, "controller": True}]
    return {"kind": kind, "metadata": metadata, **fields}


def container(name: str = "app", **fields: Any) -> Obj:
    return {
        "name": name,
        "image": "registry.example/checkout:1.4",
        "ports": [{"containerPort": 8080, "name": "http"}],
        **fields,
    }


def template(*containers: Obj, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"labels": labels or {"app": "checkout"}},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def workload(
    kind: str = "Deployment", name: str = "checkout", *, of: Obj | None = None, replicas: int = 1, **more: Any
) -> Obj:
    """A workload with as many pods as it should have."""
    spec = {"replicas": replicas, "template": of or template(), **more.pop("spec", {})}
    status = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, **more.pop("status", {})}
    return made(kind, name, spec=spec, status=status, **more)


def status_of(name: str = "app", **fields: Any) -> Obj:
    return {"name": name, "ready": False, "restartCount": 0, "state": {}, **fields}


def waiting(reason: str, message: str = "", name: str = "app", **fields: Any) -> Obj:
    return status_of(name, state={"waiting": {"reason": reason, "message": message}}, **fields)


def ended(code: int, reason: str = "Error", *, minutes: float = 1, message: str = "") -> Obj:
    found = {"exitCode": code, "reason": reason, "finishedAt": ago(minutes=minutes)}
    return {"terminated": {**found, "message": message} if message else found}


def pod(
    name: str = "checkout-1",
    *states: Obj,
    ready: bool | None = None,
    of: Obj | None = None,
    node: str = "node-1",
    init: Sequence[Obj] = (),
    conditions: Sequence[Obj] = (),
    status: Obj | None = None,
    **more: Any,
) -> Obj:
    """A pod: ready, or with container states not ready."""
    source = of or template()
    is_ready = not states and not init if ready is None else ready
    running = [status_of(ready=True, state={"running": {"startedAt": ago(days=1)}})]
    found = {
        "phase": "Running" if is_ready else "Pending",
        "conditions": [
            {"type": "Ready", "status": str(is_ready), "lastTransitionTime": ago(minutes=20)},
            *conditions,
        ],
        "containerStatuses": list(states) or (running if is_ready else []),
        "initContainerStatuses": list(init),
        **(status or {}),
    }
    spec = {**source["spec"], **({"nodeName": node} if node else {})}
    metadata = {"labels": source["metadata"]["labels"], **more.pop("metadata", {})}
    return made("Pod", name, spec=spec, status=found, metadata=metadata, **more)


def unscheduled(message: str = "", name: str = "checkout-1", **more: Any) -> Obj:
    one = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod(name, ready=False, node="", conditions=[one] if message else [], **more)


def event(about: Obj, reason: str, message: str, *, minutes: float = 2, name: str = "") -> Obj:
    metadata = about["metadata"]
    involved = {"kind": about["kind"], "name": metadata["name"], "namespace": metadata.get("namespace", "")}
    named = name or f"{metadata['name']}.{reason}.{minutes:g}.{abs(hash(message)) % 10_000}"
    return made(
        "Event", named, involvedObject=involved, reason=reason, message=message, lastTimestamp=ago(minutes=minutes)
    )


def condition(kind: str, status: str, reason: str = "", message: str = "", *, minutes: float = 20) -> Obj:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": ago(minutes=minutes),
    }


def node(name: str = "node-1", *conditions: Obj, **spec: Any) -> Obj:
    found = [condition("Ready", "True"), *conditions]
    kinds = {one["type"]: one for one in found}
    return made("Node", name, namespace="", spec=spec, status={"conditions": list(kinds.values())})


def service(name: str = "checkout", *, selector: dict[str, str] | None = None, port: Any = 8080, **spec: Any) -> Obj:
    ports = [{"name": "http", "port": 80, "targetPort": port}]
    return made("Service", name, spec={"selector": selector or {"app": "checkout"}, "ports": ports, **spec})


LISTED = frozenset(
    (kind, "")
    for kind in (
        "Pod", "ConfigMap", "Service", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "StorageClass",
        "IngressClass", "PersistentVolumeClaim",
    )
)  # fmt: skip


def snapshot(*objects: Obj, listed: frozenset[tuple[str, str]] = LISTED) -> Snapshot:
    return Snapshot(NOW, objects, listed)


def topology(*objects: Obj) -> Topology:
    return Topology(snapshot(*objects))
