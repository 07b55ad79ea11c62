"""Defines rules about pods that get no node."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tarsy.evidence.fields import mappings, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Rule, Signal, rule
from tarsy.evidence.workloads import condition

_NODES = re.compile(r"^0/(\d+) nodes are available")
_COUNTED = re.compile(r"(\d+) ([^,.]+)")


def _refused(facts: Facts, found: re.Pattern[str], text: str) -> Iterator[Signal]:
    """Yields a signal for each pod that the scheduler refuses with words that match.

    The scheduler counts the nodes for each reason. It is certain of a reason only where that is true of all nodes: a
    pod that fits one node but for its taint is not refused for the labels of the others.
    """
    for key, pod in facts.unscheduled_pods:
        scheduled = condition(pod, "PodScheduled")
        message = one_line(string(scheduled, "message")) if scheduled.get("status") == "False" else ""
        if not found.search(message):
            message = facts.message(key, found, "FailedScheduling")
        if message:
            certainty, share = _share(message.partition(" preemption:")[0], found)
            yield Signal((key,), f"{key} is not scheduled: {text}{share}.", message, certainty)


def _share(message: str, reason: re.Pattern[str]) -> tuple[Certainty, str]:
    """Returns how sure a reason is, and the share of the nodes that it is true of in words."""
    nodes = _NODES.search(message)
    if nodes is None:
        return Certainty.CERTAIN, ""
    counted = [int(one[1]) for one in _COUNTED.finditer(message[nodes.end() :]) if reason.search(one[0])]
    if not counted or max(counted) >= int(nodes[1]):
        return Certainty.CERTAIN, ""
    return Certainty.LIKELY, f" (true of {max(counted)} of {nodes[1]} nodes)"


@rule("scheduling-taint", "Nodes have taints that the pod does not tolerate", "tolerations", "taints")
def taint(facts: Facts) -> Iterator[Signal]:
    """Finds pods that tolerate no taint of the nodes."""
    pattern = re.compile(r"had (?:untolerated )?taint|untolerated taint", re.IGNORECASE)
    for signal in _refused(facts, pattern, "nodes have taints that it does not tolerate"):
        tainted = (key for key, node in facts.snapshot.items("Node") if mappings(node, "spec", "taints"))
        yield replace(signal, objects=(*signal.objects, *tainted))


def _refusal(name: str, about: str, pattern: str, text: str, *fields: str) -> Rule:
    """Makes a rule of the scheduler's words.

    Args:
        name: of the rule.
        about: the fault, in words.
        pattern: of the scheduler's words, of any case.
        text: why the pod is not scheduled.
        fields: names of fields whose change brings the fault about.
    """
    return Rule(name, about, partial(_refused, found=re.compile(pattern, re.IGNORECASE), text=text), fields)


RULES = (
    _refusal(
        "scheduling-resources",
        "No node has enough free CPU, memory or other resources",
        r"Insufficient [\w./-]+|Too many pods",
        "no node has the resources that it requests",
        "resources",
    ),
    _refusal(
        "scheduling-node-selector",
        "No node has the labels that the pod asks for",
        r"didn't match (?:Pod's )?node (?:affinity/selector|selector)|didn't match node affinity",
        "no node has the labels of its nodeSelector or node affinity",
        "nodeSelector",
        "affinity",
    ),
    taint,
    _refusal(
        "scheduling-unschedulable-nodes", "Nodes are cordoned", r"node\(s\) were unschedulable", "nodes are cordoned"
    ),
    _refusal(
        "scheduling-pod-affinity",
        "Affinity or anti-affinity between pods fits no node",
        r"pod (?:anti-)?affinity|pod affinity/anti-affinity",
        "its affinity or anti-affinity to other pods fits no node",
        "affinity",
    ),
    _refusal(
        "scheduling-topology-spread",
        "Topology spread constraints fit no node",
        r"topology spread constraints",
        "its topologySpreadConstraints fit no node",
        "topologySpreadConstraints",
    ),
    _refusal(
        "scheduling-host-port",
        "Host ports of the pod are taken on every node",
        r"free ports for the requested pod ports",
        "its hostPort is taken on every node",
        "ports",
        "hostNetwork",
    ),
    _refusal(
        "scheduling-volume-affinity",
        "The volume of the pod is in a zone or on a node where the pod may not run",
        r"volume node affinity conflict",
        "its volume is where it may not run",
    ),
    _refusal(
        "scheduling-unbound-claim",
        "A PersistentVolumeClaim of the pod is not bound",
        r"unbound immediate PersistentVolumeClaims"
        r"|persistentvolumeclaim \"[^\"]+\" (?:not found|bound to non-existent)",
        "a PersistentVolumeClaim that it mounts is not bound or does not exist",
    ),
)
