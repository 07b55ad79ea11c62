"""Reads Events: what they are about, when they were last seen, and which are recent enough to count."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tarsy.evidence.fields import Object, mapping, moment, one_line, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot

RECENT = timedelta(hours=1)
"""An Event older than that tells nothing of the present; the API server keeps them for an hour by default."""

_CLUSTER_SCOPED = ("Node", "PersistentVolume", "Namespace", "StorageClass")


def involved_object(event: Object) -> ObjectKey | None:
    """Returns the object that an Event is about; None if it names none."""
    about = mapping(event, "involvedObject")
    kind, name = string(about, "kind"), string(about, "name")
    namespace = "" if kind in _CLUSTER_SCOPED else string(about, "namespace")
    return ObjectKey(kind, namespace, name) if kind and name else None


def event_time(event: Object) -> datetime | None:
    """Returns when an Event was last seen, whichever field its reporter used."""
    for path in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("metadata", "creationTimestamp")):
        if (at := moment(event, *path)) is not None:
            return at
    return None


def event_message(event: Object) -> str:
    """Returns the message of an Event in one line."""
    return one_line(string(event, "message"))


def event_reporter(event: Object) -> str:
    """Returns the component that reported an Event."""
    return string(event, "reportingComponent") or string(event, "source", "component")


def recent_events(snapshot: Snapshot) -> Mapping[ObjectKey, Sequence[Object]]:
    """Returns the recent Events by the object that they are about, the latest first."""
    found: dict[ObjectKey, list[tuple[datetime, Object]]] = defaultdict(list)
    for _, event in snapshot.items("Event"):
        about, at = involved_object(event), event_time(event)
        if about is not None and at is not None and snapshot.read_at - at <= RECENT:
            found[about].append((at, event))
    return {
        key: [event for _, event in sorted(events, key=lambda one: one[0], reverse=True)]
        for key, events in found.items()
    }
