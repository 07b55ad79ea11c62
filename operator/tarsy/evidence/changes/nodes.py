"""Reconstructs changes of Nodes: transitions of conditions, taints, cordons."""

from collections.abc import Iterator
from datetime import timedelta

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.changes.managers import writes
from tarsy.evidence.fields import Object, mapping, mappings, moment, one_line, string
from tarsy.evidence.onset import clock_skew
from tarsy.evidence.snapshot import ObjectKey, Snapshot

_CORDON, _TAINTS = "spec.unschedulable", "spec.taints"
_GOOD = {"Ready": "True"}
"""Status of a healthy condition, where that is not False."""


def node_changes(snapshot: Snapshot) -> Iterator[Change]:
    """Yields the changes of Nodes that their conditions, taints and managers tell of."""
    for key, node in snapshot.items("Node"):
        yield from _conditions(key, node, clock_skew(snapshot, key.name))
        yield from _taints(key, node)
        yield from _by_people(key, node)
        created = moment(node, "metadata", "creationTimestamp")
        if created is not None:
            yield Change(created, ChangeType.NODE, key, "joined the cluster")


def _by_people(key: ObjectKey, node: Object) -> Iterator[Change]:
    """Yields cordons, and taints without a time, which `kubectl taint` and other clients set."""
    dated = any(moment(one, "timeAdded") for one in mappings(node, "spec", "taints"))
    for write in writes(node):
        if mapping(node, "spec").get("unschedulable") is True and _CORDON in write.fields:
            yield Change(write.at, ChangeType.NODE, key, "cordoned", write.manager, (_CORDON,))
        elif _TAINTS in write.fields and not dated and not write.created:
            yield Change(write.at, ChangeType.NODE, key, f"changed: {_TAINTS}", write.manager, (_TAINTS,))


def _conditions(key: ObjectKey, node: Object, skew: timedelta) -> Iterator[Change]:
    for one in mappings(node, "status", "conditions"):
        at = moment(one, "lastTransitionTime")
        kind, status = string(one, "type"), string(one, "status")
        if at is None or at == moment(node, "metadata", "creationTimestamp"):
            continue
        healthy = status == _GOOD.get(kind, "False")
        told = "recovered" if healthy else one_line(string(one, "message"))
        told = f"condition {kind} became {status}: {told}"
        yield Change(at, ChangeType.NODE, key, told, "kubelet", skew=skew)


def _taints(key: ObjectKey, node: Object) -> Iterator[Change]:
    for one in mappings(node, "spec", "taints"):
        at = moment(one, "timeAdded")
        if at is not None:
            name, effect = string(one, "key"), string(one, "effect")
            yield Change(at, ChangeType.NODE, key, f"tainted with {name}:{effect}", fields=(_TAINTS,))
