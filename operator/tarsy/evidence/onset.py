"""Finds when a target began to fail.

The time of an alert less its `for:` is the best that monitoring knows. Without it, the first failing condition counts:
of a pod that is not ready, of a container's end, of a controller that cannot create pods, of the target itself (a Job
that failed, a Certificate that is not ready). Pod times are those of the kubelet's clock; the skew says how far that
may be from the API server's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tarsy.evidence.fields import Object, mappings, moment, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.workloads import condition, container_states, is_over, is_ready

LEAST_SKEW = timedelta(seconds=2)
"""Times of the Kubernetes API are whole seconds, so that a second's order is not known."""


@dataclass(frozen=True, slots=True)
class Onset:
    """When a target began to fail.

    Attributes:
        at: the time.
        told_by: what says so, in words.
        skew: how far the clock that says so may be from the API server's.
    """

    at: datetime
    told_by: str
    skew: timedelta = LEAST_SKEW


def find_onset(snapshot: Snapshot, group: Iterable[ObjectKey], alerted_at: datetime | None = None) -> Onset | None:
    """Returns when a target began to fail; None if nothing says so.

    Args:
        snapshot: the objects.
        group: the target with its owners and what they own.
        alerted_at: when the alert began to be true, if monitoring says so.
    """
    if alerted_at is not None:
        return Onset(alerted_at, "the alert", LEAST_SKEW)
    first: Onset | None = None
    for key in sorted(group):
        obj = snapshot.at(key)
        skew = LEAST_SKEW
        if key.kind == "Pod":
            found = None if is_over(obj) or is_ready(obj) else _of_pod(key, obj)
            skew = max(skew, clock_skew(snapshot, string(obj, "spec", "nodeName")))
        else:
            found = _of_conditions(key, obj)
        if found is not None and (first is None or found[0] < first.at):
            first = Onset(found[0], found[1], skew)
    return first


_BAD = {
    ("ReplicaFailure", "True"), ("Available", "False"), ("Failed", "True"), ("Ready", "False"), ("Ready", "Unknown"),
    ("ScalingActive", "False"), ("AbleToScale", "False"),
}  # fmt: skip


def _of_conditions(key: ObjectKey, obj: Object) -> tuple[datetime, str] | None:
    """Returns the earliest transition of a condition that says that an object fails."""
    found = [
        (at, f"condition {string(one, 'type')} of {key}")
        for one in mappings(obj, "status", "conditions")
        if (string(one, "type"), string(one, "status")) in _BAD
        and (at := moment(one, "lastTransitionTime")) is not None
    ]
    return min(found, default=None)


def _of_pod(key: ObjectKey, pod: Object) -> tuple[datetime, str] | None:
    """Returns the earliest time at which a pod that is not ready is known to have failed."""
    found: list[tuple[datetime, str]] = []
    for state in container_states(pod):
        if (at := moment(state.ended, "finishedAt")) is not None:
            found.append((at, f"the end of container {state.name} of {key}"))
    for kind in ("Ready", "PodScheduled"):
        one = condition(pod, kind)
        if one.get("status") == "False" and (at := moment(one, "lastTransitionTime")) is not None:
            found.append((at, f"condition {kind} of {key}"))
    return min(found, default=None)


def clock_skew(snapshot: Snapshot, node: str) -> timedelta:
    """Returns how far the clock of a node is from the API server's.

    The kubelet writes a heartbeat with its own time, and the API server dates that write in `managedFields`.
    """
    obj = snapshot.get("Node", "", node) or {}
    beats = [at for one in mappings(obj, "status", "conditions") if (at := moment(one, "lastHeartbeatTime"))]
    written = [
        at
        for entry in mappings(obj, "metadata", "managedFields")
        if string(entry, "subresource") == "status" and (at := moment(entry, "time"))
    ]
    return abs(max(beats) - max(written)) if beats and written else timedelta(0)
