"""Renders a node: its conditions and pressure, what its pods request of it, and what it uses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tarsy.kubernetes_tools.classes import ClassedText, Part, classed_lines
from tarsy.kubernetes_tools.quantities import format_bytes, format_cpu, format_share, parse_quantity
from tarsy.kubernetes_tools.render import render_list

MOST_PODS = 120
_WRITE = {"cpu": format_cpu, "memory": format_bytes, "ephemeral-storage": format_bytes}


def render_node(
    node: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    *,
    measured: Mapping[str, Any] | None,
    hidden: str | None,
    notes: Iterable[str] = (),
) -> ClassedText:
    """Renders a node with its pods.

    Args:
        node: the Node.
        pods: the pods on it that the caller may see.
        measured: its NodeMetrics, if there are any.
        hidden: a sentence about pods that are not among `pods`; None if all are.
        notes: sentences about what could not be read.
    """
    meta, spec, status = node.get("metadata") or {}, node.get("spec") or {}, node.get("status") or {}
    pods = list(pods)
    info = status.get("nodeInfo") or {}
    lines = [
        f"Node {meta.get('name')} created={meta.get('creationTimestamp')} kubelet={info.get('kubeletVersion')} "
        f"runtime={info.get('containerRuntimeVersion')} kernel={info.get('kernelVersion')}",
        f"schedulable={'no (cordoned)' if spec.get('unschedulable') else 'yes'}",
    ]
    lines += [f"taint {t.get('key')}={t.get('value', '')}:{t.get('effect')}" for t in spec.get("taints") or ()]
    conditions = [_condition(condition) for condition in status.get("conditions") or ()]
    head, lines = lines, []
    lines += _resources(status, pods, measured, whole=hidden is None)
    lines.append(f"{len(pods)} pods here that you can see" if hidden else f"{len(pods)} pods here")
    lines.append(render_list("Pod", pods[:MOST_PODS], with_namespace=True) if pods else "")
    if len(pods) > MOST_PODS:
        lines.append(f"[{len(pods) - MOST_PODS} more pods are left out]")
    if hidden:
        lines.append(f"[{hidden}]")
    return classed_lines(
        [
            *([(line, True)] for line in head),
            *conditions,
            *([(line, True)] for line in (*lines, *notes) if line),
        ]
    )


def _condition(condition: Mapping[str, Any]) -> Sequence[Part]:
    kind, value = condition.get("type"), condition.get("status")
    # Ready is good when True, all others (pressure, network unavailable) when False.
    well = value == ("True" if kind == "Ready" else "False")
    told = (
        f"condition {kind}={value}{'' if well else ' !'} since={condition.get('lastTransitionTime')} "
        f"heartbeat={condition.get('lastHeartbeatTime')} {condition.get('reason', '')}:"
    )
    return (told, True), (f" {condition.get('message', '')}", False)


def _resources(
    status: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], measured: Mapping[str, Any] | None, *, whole: bool
) -> list[str]:
    allocatable, used = status.get("allocatable") or {}, (measured or {}).get("usage") or {}
    running = [p for p in pods if (p.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    lines = []
    for name, write in _WRITE.items():
        total = parse_quantity(allocatable[name]) if name in allocatable else None
        if total is None:
            continue
        requested = sum(_requested(pod, name) for pod in running)
        line = f"{name} allocatable={write(total)} requested={write(requested)} ({format_share(requested, total)})"
        line += "" if whole else " by the pods below"
        now = parse_quantity(used[name]) if name in used else None
        lines.append(line if now is None else f"{line} used={write(now)} ({format_share(now, total)})")
    if measured is None:
        lines.append("[the metrics API has no figures of this node]")
    most = allocatable.get("pods")
    return [*lines, f"pods allocatable={most}"] if most else lines


def _requested(pod: Mapping[str, Any], resource: str) -> float:
    containers = (pod.get("spec") or {}).get("containers") or ()
    found = (((c.get("resources") or {}).get("requests") or {}).get(resource) for c in containers)
    return sum(parse_quantity(value) or 0.0 for value in found if value is not None)
