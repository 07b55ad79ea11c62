"""Defines rules about Nodes, and about pods that a Node put out."""

from collections.abc import Iterator

from tarsy.evidence.fields import mapping, mappings, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.workloads import condition

_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure")


@rule("node-not-ready", "A Node is not ready")
def not_ready(facts: Facts) -> Iterator[Signal]:
    """Finds Nodes that are not ready."""
    for key, node in facts.snapshot.items("Node"):
        ready = condition(node, "Ready")
        if ready and ready.get("status") != "True":
            message = one_line(string(ready, "message"))
            yield Signal((key,), f"{key} is not ready.", message or f"reason: {string(ready, 'reason')}")


@rule("node-pressure", "A Node runs out of memory, disk or process ids")
def pressure(facts: Facts) -> Iterator[Signal]:
    """Finds Nodes under pressure."""
    for key, node in facts.snapshot.items("Node"):
        for kind in _PRESSURE:
            one = condition(node, kind)
            if one.get("status") == "True":
                message = one_line(string(one, "message"))
                yield Signal((key,), f"{key} has {kind}.", message or f"type: {kind}, status: True")


@rule("pod-evicted", "The kubelet evicted a pod because its Node ran out of a resource")
def evicted(facts: Facts) -> Iterator[Signal]:
    """Finds evicted pods whose Node is still under pressure, or whose workload lacks a ready pod."""
    for key, pod in facts.snapshot.items("Pod"):
        if string(pod, "status", "reason") != "Evicted":
            continue
        node = facts.snapshot.get("Node", "", string(pod, "spec", "nodeName")) or {}
        pressed = any(condition(node, kind).get("status") == "True" for kind in _PRESSURE)
        workload = facts.workload(key)
        lacking = any(facts.workload(other) == workload for other, _ in facts.unready_pods)
        if pressed or lacking:
            message = one_line(string(pod, "status", "message"), "reason: Evicted")
            yield Signal((key,), f"{key} was evicted from its node.", message)


@rule("node-cordoned", "A Node is cordoned while pods wait for a node")
def cordoned(facts: Facts) -> Iterator[Signal]:
    """Finds cordoned Nodes while pods wait."""
    if not facts.unscheduled_pods:
        return
    for key, node in facts.snapshot.items("Node"):
        taints = [string(one, "key") for one in mappings(node, "spec", "taints")]
        if mapping(node, "spec").get("unschedulable") is True:
            waiting = facts.unscheduled_pods[0][0]
            quote = "node.kubernetes.io/unschedulable" if "node.kubernetes.io/unschedulable" in taints else ""
            text = f"{key} is cordoned while {waiting} waits for a node."
            yield Signal((key, waiting), text, quote or "unschedulable: true", Certainty.LIKELY)


RULES = (not_ready, pressure, evicted, cordoned)
