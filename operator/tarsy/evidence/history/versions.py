"""Decides what an observed state of an object adds to its history: nothing, a first state, or a version.

Changes of an autoscaler and restarts of a Pod come by the hundred; those of an hour are one version with a count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tarsy.evidence.changes.change import TYPES, ChangeType
from tarsy.evidence.fields import Object, mapping, mappings, moment, string
from tarsy.evidence.history.form import pack, unpack
from tarsy.evidence.history.patch import Difference, difference
from tarsy.evidence.workloads import TEMPLATE_PATHS, container_states
from tarsy.record.reading.object_history import (
    HistoryStep,
    ObjectHead,
    ObjectIdentity,
    ObjectVersion,
    PatchStep,
    VersionAction,
)
from tarsy.record.text import clean

SNAPSHOT_EVERY = 20
"""Every version with a number that this divides has the whole form."""

NOISE_WINDOW = timedelta(hours=1)
"""Time in which changes of an autoscaler, or restarts, are one version."""

MAX_SKEW = timedelta(minutes=5)
"""A time of the API server that is further in the future than this is not believed."""

AUTOSCALER = "kube-controller-manager"
"""Manager of `spec.replicas` if a HorizontalPodAutoscaler set it."""

_EVICTED = ("Evicted", "Preempting", "Terminated")
_MANAGER_LENGTH = 128


@dataclass(frozen=True, slots=True)
class Observation:
    """A state of an object, as it was seen.

    Attributes:
        object: the object.
        seen_at: when.
        since: the time from which on all changes of the kind were seen; None: this is the first listing.
        digest: keyed digest of the state.
        key_id: identifies the key.
        resource_version: of the state.
        form: the form; None: the object is gone.
        raw: the object, for its managers and times.
        exact: whether the change was seen as it happened, not found by a listing.
        added: whether it was seen that the object came.
    """

    object: ObjectIdentity
    seen_at: datetime
    since: datetime | None
    digest: bytes
    key_id: bytes
    resource_version: str
    form: Object | None
    raw: Object
    exact: bool
    added: bool = False


def next_step(head: ObjectHead | None, seen: Observation) -> HistoryStep | None:
    """Returns what an observation adds to the history; None: nothing.

    Args:
        head: the last recorded state; None: there is none.
        seen: the observation.
    """
    if head is not None and older(seen.resource_version, head.resource_version):
        return None  # another recorder is ahead
    if seen.form is None:
        return None if head is None else _gone(head, seen)
    if head is not None and head.key_id == seen.key_id:
        return None if head.digest == seen.digest else _changed(head, seen, seen.form)
    made = _head(head.seq if head is not None else 0, seen, seen.form, seen.seen_at)
    if head is not None or not _is_new(seen):
        return HistoryStep(seen.object.uid, made)  # first seen, or digests of another key: nothing to compare with
    found = Difference([{"op": "add", "path": "", "value": seen.form}])
    if seen.object.kind == "Pod":
        return _versioned(made, seen, VersionAction.CHANGED, difference({}, seen.form), seen.form)
    created = moment(seen.raw, "metadata", "creationTimestamp")
    return _versioned(made, seen, VersionAction.CREATED, found, seen.form, at=created)


def older(version: str, known: str) -> bool:
    """Returns whether a resourceVersion is older than another one: they grow; only numbers are compared."""
    return version.isdigit() and known.isdigit() and int(version) < int(known)


def _is_new(seen: Observation) -> bool:
    """Returns whether a state that is seen for the first time came after the kind was watched."""
    if seen.since is None:
        return False
    pod = seen.object.kind == "Pod"
    if seen.added or (pod and seen.exact):
        return True
    at = _ended(seen.raw) if pod else moment(seen.raw, "metadata", "creationTimestamp")
    # The times of the API are whole seconds, by its clock.
    return not seen.exact and at is not None and at + timedelta(seconds=1) >= seen.since


def _gone(head: ObjectHead, seen: Observation) -> HistoryStep:
    if head.object.kind == "Pod":
        return HistoryStep(head.object.uid, None)
    version = ObjectVersion(
        object=head.object,
        seq=head.seq + 1,
        action=VersionAction.DELETED,
        type=ChangeType.DELETE,
        changed_at=seen.seen_at,
        not_before=None if seen.exact else seen.since,
        last_at=seen.seen_at,
        count=1,
        manager="",
        fields=(),
        patch=({"op": "remove", "path": ""},),
    )
    return HistoryStep(head.object.uid, None, version, head.form)


def _changed(head: ObjectHead, seen: Observation, form: Object) -> HistoryStep:
    found = difference(unpack(head.form), form)
    made = _head(head.seq, seen, form, head.changed_at)
    return _versioned(made, seen, VersionAction.CHANGED, found, form, before=head)


def _versioned(
    made: ObjectHead,
    seen: Observation,
    action: VersionAction,
    found: Difference,
    form: Object,
    *,
    at: datetime | None = None,
    before: ObjectHead | None = None,
) -> HistoryStep:
    kind = seen.object.kind
    manager, written = manager_of(seen.raw, found.steps)
    if kind == "Pod":
        manager, written = "kubelet", _ended(seen.raw)
    type_ = type_of(kind, action, found, form)
    at, not_before = _time(at or written, seen, before)
    noise = type_ if _is_noise(kind, type_, manager, found) else ""
    version = ObjectVersion(
        object=seen.object,
        seq=made.seq + 1,
        action=action,
        type=type_,
        changed_at=at,
        not_before=not_before,
        last_at=at,
        count=1,
        manager=manager,
        fields=tuple(found.fields),
        patch=tuple(found.steps),
    )
    adds = before is not None and _adds_to(before, noise, at)
    if adds and before is not None:
        since = before.noise_since or at
        patch = _merged(before.noise_patch, version.patch)
        fields = tuple(dict.fromkeys(_field(step) for step in patch))
        version = replace(version, seq=before.seq, changed_at=since, fields=fields, patch=patch)
        head = replace(made, seq=before.seq, changed_at=at, noise=noise, noise_since=since, seen_at=before.seen_at)
    else:
        head = replace(
            made, seq=version.seq, changed_at=at, noise=noise, noise_since=at if noise else None, seen_at=seen.seen_at
        )
    snapshot = pack(form) if version.seq % SNAPSHOT_EVERY == 0 else None
    return HistoryStep(seen.object.uid, head, version, snapshot, adds)


def _head(seq: int, seen: Observation, form: Object, changed_at: datetime) -> ObjectHead:
    return ObjectHead(seen.object, seq, seen.digest, seen.key_id, seen.resource_version, pack(form), changed_at)


def _time(written: datetime | None, seen: Observation, before: ObjectHead | None) -> tuple[datetime, datetime | None]:
    """Returns when a change happened: the latest time, and the earliest one if that is not known better."""
    earliest = before.changed_at if before is not None else None
    if written is not None and written <= seen.seen_at + MAX_SKEW and (earliest is None or written >= earliest):
        return written, None
    return seen.seen_at, None if seen.exact else seen.since


def type_of(kind: str, action: VersionAction, found: Difference, form: Object) -> ChangeType:
    """Returns the type of a change of an object.

    Args:
        kind: of the object.
        action: what happened.
        found: the difference.
        form: the form after it.
    """
    if kind == "Pod":
        return ChangeType.DELETE if string(form, "failed") in _EVICTED else ChangeType.RESTART
    if action is VersionAction.CHANGED and kind in TEMPLATE_PATHS and found.fields == ["spec.replicas"]:
        return ChangeType.SCALE
    if found.fields and all(field.startswith("metadata") for field in found.fields):
        return TYPES[kind] if TYPES.get(kind) is ChangeType.NETWORK else ChangeType.CONFIG
    return TYPES.get(kind, ChangeType.CONFIG)


def manager_of(obj: Object, patch: Sequence[PatchStep]) -> tuple[str, datetime | None]:
    """Returns the manager that wrote a path of a patch last, and when; without one, an empty name.

    A path that was removed has no manager any more: then it is the one that wrote last.
    """
    latest: tuple[datetime, bool, str] | None = None
    for entry in mappings(obj, "metadata", "managedFields"):
        at = moment(entry, "time")
        if at is None or string(entry, "subresource") not in ("", "scale"):
            continue
        owns = any(_owns(mapping(entry, "fieldsV1"), step["path"]) for step in patch)
        found = (at, owns, string(entry, "manager"))
        if latest is None or (found[1], found[0]) > (latest[1], latest[0]):
            latest = found
    return ("", None) if latest is None else (clean(latest[2])[:_MANAGER_LENGTH], latest[0])


def _owns(fields: Object, pointer: str) -> bool:
    """Returns whether fields contain a path, as far as it has no list items, which have keys of their own."""
    found: Any = fields
    for part in pointer.split("/")[1:]:
        if any(key.startswith(("k:", "v:", "i:")) for key in found):
            return True
        inner = found.get("f:" + part.replace("~1", "/").replace("~0", "~"))
        if not isinstance(inner, dict):
            return False
        if not inner:
            return True
        found = inner
    return bool(found)


def _is_noise(kind: str, type_: ChangeType, manager: str, found: Difference) -> bool:
    if type_ is ChangeType.SCALE:
        return kind in TEMPLATE_PATHS and manager == AUTOSCALER and found.fields == ["spec.replicas"]
    return type_ is ChangeType.RESTART


def _adds_to(before: ObjectHead, noise: str, at: datetime) -> bool:
    since = before.noise_since
    same = bool(noise) and before.noise == noise and before.seen_at is not None
    return same and since is not None and timedelta(0) <= at - since < NOISE_WINDOW


def _merged(first: Sequence[PatchStep], then: Sequence[PatchStep]) -> tuple[PatchStep, ...]:
    """Returns one patch for two, whose steps set values: the values before the first, and after the second."""
    steps = {step["path"]: dict(step) for step in first}
    for step in then:
        known = steps.get(step["path"])
        steps[step["path"]] = {**step, **({"op": known["op"]} if known else {}), **_before(known)}
    return tuple(steps.values())


def _before(known: PatchStep | None) -> dict[str, Any]:
    return {"old": known["old"]} if known is not None and "old" in known else {}


def _field(step: PatchStep) -> str:
    return str(step["path"]).strip("/").replace("/", ".")


def _ended(pod: Object) -> datetime | None:
    """Returns when a container of a Pod ended last."""
    return max((at for state in container_states(pod) if (at := moment(state.ended, "finishedAt"))), default=None)
