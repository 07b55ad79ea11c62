"""Reconstructs what changed from the objects as they are now, without any history.

Works from the first minute after installing, and knows less than a history: of each manager only the last write, of
Events only the last hour, of a deleted object nothing. What is told here is marked `reconstructed`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, partial

from tarsy.evidence.changes.change import TYPES, Change, ChangeType
from tarsy.evidence.changes.gitops import gitops_changes
from tarsy.evidence.changes.managers import NEAR, writes
from tarsy.evidence.changes.nodes import node_changes
from tarsy.evidence.changes.rollouts import rollouts
from tarsy.evidence.events import event_message, event_reporter, event_time, involved_object
from tarsy.evidence.fields import integer, mappings, moment, string
from tarsy.evidence.onset import clock_skew
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.workloads import TEMPLATE_PATHS, container_states

_WRITTEN = frozenset(TYPES) - {"Node", "PersistentVolume"}
"""Kinds whose last writes are changes; objects that a controller owns are written for other changes."""

_TEMPLATE = ("spec.template", "spec.jobTemplate")
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler", "kubelet", "cloud-controller-manager")
_EVENTS = {
    "ScalingReplicaSet": ChangeType.ROLLOUT,
    "SuccessfulRescale": ChangeType.SCALE,
    "NodeNotReady": ChangeType.NODE,
    "NodeNotSchedulable": ChangeType.NODE,
    "NodeSchedulable": ChangeType.NODE,
    "Rebooted": ChangeType.NODE,
    "Evicted": ChangeType.DELETE,
    "Preempted": ChangeType.DELETE,
    "TaintManagerEviction": ChangeType.DELETE,
    "ResizeFailed": ChangeType.STORAGE,
    "VolumeResizeSuccessful": ChangeType.STORAGE,
}
_FIELDS_SHOWN = 5


def reconstruct(snapshot: Snapshot, since: datetime) -> Sequence[Change]:
    """Returns the changes since a time that the objects of a snapshot tell of, the oldest first.

    Args:
        snapshot: the objects.
        since: changes before are left out.
    """
    rolled_out = list(rollouts(snapshot))
    found = [
        *rolled_out,
        *_written(snapshot, rolled_out),
        *_deleted(snapshot),
        *node_changes(snapshot),
        *gitops_changes(snapshot),
        *_told_by_events(snapshot),
        *_restarts(snapshot),
    ]
    unique = {(one.at, one.type, one.object, one.summary): one for one in found if since <= one.at}
    return sorted(unique.values(), key=lambda one: (one.at, one.object, one.summary))


def _written(snapshot: Snapshot, rolled_out: Sequence[Change]) -> Iterator[Change]:
    revisions: dict[ObjectKey, list[datetime]] = defaultdict(list)
    for change in rolled_out:
        revisions[change.object].append(change.at)
    for kind in sorted(_WRITTEN):
        for key, obj in snapshot.items(kind):
            if any(owner.get("controller") is True for owner in mappings(obj, "metadata", "ownerReferences")):
                continue
            for write in writes(obj):
                if write.manager in _CONTROLLERS and not write.created:
                    continue
                if any(abs(write.at - at) <= NEAR for at in revisions[key]):
                    continue  # the rollout says what was written
                fields = tuple(one for one in write.fields if not one.startswith(_TEMPLATE))
                if fields or write.created:
                    yield Change(
                        write.at, _type(kind, fields), key, _summary(write.created, fields), write.manager, fields
                    )


def _type(kind: str, fields: Sequence[str]) -> ChangeType:
    if kind in TEMPLATE_PATHS and fields and all(one.startswith("spec.replicas") for one in fields):
        return ChangeType.SCALE
    return TYPES.get(kind, ChangeType.CONFIG)


def _summary(created: bool, fields: Sequence[str]) -> str:
    if created:
        return "created"
    shown = ", ".join(fields[:_FIELDS_SHOWN])
    more = f" and {len(fields) - _FIELDS_SHOWN} more" if len(fields) > _FIELDS_SHOWN else ""
    return f"changed: {shown}{more}" if len(fields) == 1 else f"changed, one or more of: {shown}{more}"


def _deleted(snapshot: Snapshot) -> Iterator[Change]:
    for key in snapshot.all_keys():
        at = moment(snapshot.at(key), "metadata", "deletionTimestamp")
        if at is not None:
            yield Change(at, ChangeType.DELETE, key, "is being deleted")


def _told_by_events(snapshot: Snapshot) -> Iterator[Change]:
    for _, event in snapshot.items("Event"):
        kind = _EVENTS.get(string(event, "reason"))
        about = involved_object(event)
        if kind is None or about is None:
            continue
        at = event_time(event)
        if at is not None:
            summary = event_message(event) or string(event, "reason")
            yield Change(at, kind, about, summary, event_reporter(event))


def _restarts(snapshot: Snapshot) -> Iterator[Change]:
    skews = cache(partial(clock_skew, snapshot))
    for key, pod in snapshot.items("Pod"):
        for state in container_states(pod):
            at = moment(state.ended, "finishedAt")
            if at is None or not state.restarts:
                continue
            code, reason = integer(state.ended, "exitCode"), string(state.ended, "reason")
            told = f"container {state.name} ended with exit code {code} ({reason or 'no reason'})"
            told = f"{told}, {state.restarts} restarts in all"
            skew = skews(string(pod, "spec", "nodeName"))
            yield Change(at, ChangeType.RESTART, key, told, "kubelet", skew=skew)
