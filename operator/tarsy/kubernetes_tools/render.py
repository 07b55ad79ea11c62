"""Renders Kubernetes objects as text for a model: short lines, stable terms, limited size; pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from tarsy.evidence.authorship import trusts_event, trusts_message
from tarsy.kubernetes_tools.classes import ClassedText, Part, classed_lines, classed_object

HIDDEN = ("kubectl.kubernetes.io/last-applied-configuration", "sample.tarsy.dev/logs", "sample.tarsy.dev/previous-logs")

_OF_PODS = ("images", "volumesAttached", "volumesInUse")
_OF_VOLUMES = ("accessModes", "capacity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode")


def render_list(kind: str, items: Iterable[Mapping[str, Any]], *, with_namespace: bool) -> str:
    """Renders each object of `items` as one line: its name, then its state; `with_namespace` adds the namespace."""
    lines = []
    for item in items:
        meta = item.get("metadata") or {}
        name = f"{meta.get('namespace')}/{meta.get('name')}" if with_namespace else str(meta.get("name"))
        words = [name, *_state(kind, item), f"created={meta.get('creationTimestamp')}"]
        lines.append(" ".join(word for word in words if word))
    return "\n".join(lines) or f"no objects of kind {kind}"


def render_events(items: Iterable[Mapping[str, Any]]) -> ClassedText:
    """Renders each event as one line, the latest last."""
    found = sorted(items, key=_when)
    return classed_lines(_event(item) for item in found) if found else ClassedText("no events")


def render_object(item: Mapping[str, Any]) -> ClassedText:
    """Renders the object as JSON, without fields that only machines read."""
    meta = {key: value for key, value in (item.get("metadata") or {}).items() if key != "managedFields"}
    if notes := {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key not in HIDDEN}:
        meta["annotations"] = notes
    return classed_object({**item, "metadata": meta}, wrote=item)


def seen_from_outside(kind: str, item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object of no namespace without what it tells of namespaces that are out of reach."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    match kind:
        case "Node":  # the images and volumes of all pods that run there
            kept = {key: value for key, value in status.items() if key not in _OF_PODS}
            return {**item, "status": kept}
        case "PersistentVolume":
            meta = item.get("metadata") or {}
            return {
                "apiVersion": item.get("apiVersion"),
                "kind": item.get("kind"),
                "metadata": {key: meta[key] for key in ("name", "creationTimestamp") if key in meta},
                "spec": {key: spec[key] for key in _OF_VOLUMES if key in spec},
                "status": {"phase": status.get("phase")},
            }
        case _:
            return item


def _event(item: Mapping[str, Any]) -> Iterable[Part]:
    about = item.get("involvedObject") or {}
    count = item.get("count") or (item.get("series") or {}).get("count") or 1
    head = f"{_when(item)} {item.get('type')} {item.get('reason')} {about.get('kind')}/{about.get('name')}"
    yield f"{head} (x{count}): ", trusts_event(item)
    yield str(item.get("message", "")).strip(), trusts_message(item)


def _when(event: Mapping[str, Any]) -> str:
    for value in (
        event.get("lastTimestamp"),
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("eventTime"),
    ):
        if value:
            return str(value)
    return str((event.get("metadata") or {}).get("creationTimestamp") or "")


def _state(kind: str, item: Mapping[str, Any]) -> list[str]:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    match kind:
        case "Pod":
            return _pod(spec, status)
        case "Deployment" | "ReplicaSet" | "StatefulSet":
            return [f"ready={status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"]
        case "DaemonSet":
            return [f"ready={status.get('numberReady', 0)}/{status.get('desiredNumberScheduled', 0)}"]
        case "Job":
            return [f"succeeded={status.get('succeeded', 0)} failed={status.get('failed', 0)}"]
        case "Node":
            ready = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"]
            return [f"ready={ready[0] if ready else 'Unknown'}"]
        case "ConfigMap":
            return [f"keys={','.join(sorted(item.get('data') or {}))}"]
        case "PersistentVolume":
            size = (spec.get("capacity") or {}).get("storage")
            return [f"phase={status.get('phase')}", f"class={spec.get('storageClassName')}", f"capacity={size}"]
        case "StorageClass":
            return [f"provisioner={item.get('provisioner')}", f"binding={item.get('volumeBindingMode')}"]
        case "Service":
            return [f"type={spec.get('type')}"]
        case _:
            return [f"phase={status['phase']}"] if "phase" in status else []


def _pod(spec: Mapping[str, Any], status: Mapping[str, Any]) -> list[str]:
    """As `kubectl get pods` has it, plus how the last container ended."""
    containers = status.get("containerStatuses") or []
    word = status.get("reason") or status.get("phase") or "Unknown"
    last = ""
    for container in containers:
        state = container.get("state") or {}
        now = state.get("waiting") or state.get("terminated") or {}
        word = now.get("reason") or word
        if ended := state.get("terminated") or (container.get("lastState") or {}).get("terminated"):
            last = f"last-exit={ended.get('exitCode')} ({ended.get('reason')})"
    ready = sum(bool(container.get("ready")) for container in containers)
    restarts = sum(int(container.get("restartCount") or 0) for container in containers)
    return [f"ready={ready}/{len(spec.get('containers') or ())}", f"status={word}", f"restarts={restarts}", last]
