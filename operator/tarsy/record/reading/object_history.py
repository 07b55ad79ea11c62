"""Defines the recorded versions of Kubernetes objects, and the windows in which they were not watched.

A version contains no secret: values of ConfigMaps, environment variables and annotations are keyed digests, and all
other text is masked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

PatchStep = Mapping[str, Any]
"""A step of a JSON Patch (RFC 6902), with the value before it as `old`."""


class VersionAction(StrEnum):
    """Lists the events of an object's history."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


class WatchState(StrEnum):
    """Whether the objects of a kind in a namespace are watched."""

    WATCHING = "Watching"
    FORBIDDEN = "Forbidden"
    NOT_SERVED = "NotServed"
    UNAVAILABLE = "Unavailable"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class ObjectIdentity:
    """Names an object and the namespace that it is in, by their uids."""

    namespace_uid: str
    namespace: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A recorded change of an object.

    Attributes:
        object: the object.
        seq: number of the version, from 1.
        action: what happened.
        type: type of the change, such as Rollout.
        changed_at: when it happened; the latest possible time if `not_before` is set.
        not_before: the earliest possible time of a change that was found after a window without a watch; else None.
        last_at: the time of the last of `count` changes.
        count: changes of an autoscaler, or restarts, that this version stands for.
        manager: the field manager; empty: unknown.
        fields: paths that changed, with names instead of list indexes; empty: only in masked text.
        patch: the change.
    """

    object: ObjectIdentity
    seq: int
    action: VersionAction
    type: str
    changed_at: datetime
    not_before: datetime | None
    last_at: datetime
    count: int
    manager: str
    fields: Sequence[str]
    patch: Sequence[PatchStep]


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """The last recorded state of an object that exists.

    Attributes:
        object: the object.
        seq: number of its last version; 0: it has been the same since it was first seen.
        digest: keyed digest of the state.
        key_id: identifies the key of the digests.
        resource_version: of the state.
        form: the recorded form, as compressed JSON.
        changed_at: time of its last change.
        noise: type of the last version if more changes like it are added to it; else empty.
        noise_since: time of the first change of that version.
        noise_patch: patch of that version.
        seen_at: when the last version was recorded; None: there is none.
    """

    object: ObjectIdentity
    seq: int
    digest: bytes
    key_id: bytes
    resource_version: str
    form: bytes
    changed_at: datetime
    noise: str = ""
    noise_since: datetime | None = None
    noise_patch: Sequence[PatchStep] = ()
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A write to the history: the new head of an object (None: it is gone), and its new version, if it is one.

    Attributes:
        uid: of the object.
        head: the new head; None: delete it.
        version: the version; None: no change.
        snapshot: the whole form as compressed JSON, of every 20th version and of a deleted object.
        adds: the version replaces the last one, because the change is added to it.
    """

    uid: str
    head: ObjectHead | None
    version: ObjectVersion | None = None
    snapshot: bytes | None = None
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A window in which the objects of a kind in a namespace were not watched.

    Attributes:
        kind: the kind.
        since: its start; None: from the beginning.
        until: its end; None: it still lasts.
        reason: one sentence, without a full stop.
    """

    kind: str
    since: datetime | None
    until: datetime | None
    reason: str
