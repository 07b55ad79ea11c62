"""Stores all objects, with one revision counter and the log of events for watches.

Every commit takes the next revision, as in etcd: objects of all kinds share one order. The log is bounded; who asks for
an older revision gets 410 and lists again, as after a compaction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from embedded_kubeapi.objects import Key, Obj

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Place = tuple[Key, str, str]  # key, namespace or "", name
Listener = Callable[["Event"], None]


@dataclass(frozen=True, slots=True)
class Event:
    """One commit. `old` is what was there before; of a deletion, `obj` is the last state at the deletion's revision."""

    revision: int
    type: EventType
    key: Key
    obj: Obj
    old: Obj | None
    encoded: dict[str, bytes] = field(
        default_factory=dict, compare=False
    )  # by apiVersion: one encoding for all watches


class Store:
    """Objects by (group, plural), namespace and name. All methods are atomic on the event loop.

    Args:
        log_size: how many events are kept for watches that resume.
    """

    def __init__(self, log_size: int = 20_000) -> None:
        self.revision = 1
        self.compacted = 0
        self._objects: defaultdict[Key, defaultdict[str, dict[str, Obj]]] = defaultdict(lambda: defaultdict(dict))
        self._dependents: defaultdict[str, dict[Place, None]] = defaultdict(dict)
        self._log: deque[Event] = deque()
        self._undelivered: deque[Event] = deque()
        self._log_size = log_size
        self._listeners: defaultdict[Key | None, dict[Listener, None]] = defaultdict(dict)

    def get(self, key: Key, namespace: str | None, name: str) -> Obj | None:
        """Returns the object, or None; `namespace` is None for cluster-scoped kinds."""
        spaces = self._objects.get(key)
        return spaces[namespace or ""].get(name) if spaces and (namespace or "") in spaces else None

    def objects(self, key: Key, namespace: str | None = None, revision: int | None = None) -> list[Obj]:
        """Returns all objects of a kind, or of a kind in one namespace, sorted by namespace and name.

        Args:
            revision: as they were then, if the log reaches back so far (`holds`); None for now.
        """
        if revision is not None and revision < self.revision:
            return self._objects_at(key, namespace, revision)
        spaces = self._objects.get(key)
        if spaces is None:
            return []
        chosen = sorted(spaces) if namespace is None else [namespace]
        return [spaces[space][name] for space in chosen if space in spaces for name in sorted(spaces[space])]

    def _objects_at(self, key: Key, namespace: str | None, revision: int) -> list[Obj]:
        found = {_place(obj): obj for obj in self.objects(key, namespace)}
        for event in reversed(self.events_since(key, revision)):
            place = _place(event.obj)
            if event.old is None:
                found.pop(place, None)
            elif namespace is None or place[0] == namespace:
                found[place] = event.old
        return [found[place] for place in sorted(found)]

    def kinds(self) -> list[Key]:
        """Returns the keys of kinds with objects."""
        return [key for key, spaces in self._objects.items() if any(spaces.values())]

    def count(self, key: Key) -> int:
        return sum(len(found) for found in self._objects[key].values()) if key in self._objects else 0

    def dependents(self, uid: str) -> list[Place]:
        """Returns the places of objects that name this uid as an owner."""
        return list(self._dependents.get(uid, ()))

    def put(self, key: Key, obj: Obj) -> Obj:
        """Commits a new or changed object with the next revision as its resourceVersion; takes ownership of it."""
        meta = obj["metadata"]
        namespace, name = meta.get("namespace") or "", meta["name"]
        self.revision += 1
        meta["resourceVersion"] = str(self.revision)
        place = (key, namespace, name)
        old = self._objects[key][namespace].get(name)
        self._index(place, old, obj)
        self._objects[key][namespace][name] = obj
        self._emit(Event(self.revision, "ADDED" if old is None else "MODIFIED", key, obj, old))
        return obj

    def remove(self, key: Key, obj: Obj) -> Obj:
        """Commits a deletion; returns the object's last state."""
        meta = obj["metadata"]
        namespace, name = meta.get("namespace") or "", meta["name"]
        self.revision += 1
        old = self._objects[key][namespace].pop(name)
        self._index((key, namespace, name), old, None)
        last = {**obj, "metadata": {**meta, "resourceVersion": str(self.revision)}}
        self._emit(Event(self.revision, "DELETED", key, last, old))
        return last

    def restore(self, key: Key, obj: Obj) -> None:
        """Restores an object from disk: no new revision, no event."""
        meta = obj["metadata"]
        namespace, name = meta.get("namespace") or "", meta["name"]
        self._index((key, namespace, name), self._objects[key][namespace].get(name), obj)
        self._objects[key][namespace][name] = obj
        self.revision = self.compacted = max(self.revision, int(meta["resourceVersion"]))

    def events_since(self, key: Key, revision: int) -> list[Event]:
        """Returns the events of a kind after a revision; call `holds` first to check that the log covers it."""
        found: list[Event] = []
        for event in reversed(self._log):
            if event.revision <= revision:
                break
            if event.key == key:
                found.append(event)
        found.reverse()
        return found

    def holds(self, revision: int) -> bool:
        """Reports whether the log has every event after this revision."""
        return revision >= self.compacted

    def compact(self, revision: int | None = None) -> None:
        """Discards the events up to a revision (None: all), as etcd does periodically."""
        upto = self.revision if revision is None else revision
        while self._log and self._log[0].revision <= upto:
            self._log.popleft()
        self.compacted = max(self.compacted, upto)

    def listen(self, key: Key | None, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with each committed event of a kind (None: all); returns a function that ends this."""
        self._listeners[key][listener] = None
        return lambda: self._listeners[key].pop(listener, None)

    def _emit(self, event: Event) -> None:
        self._log.append(event)
        if len(self._log) > self._log_size:
            self.compacted = self._log.popleft().revision
        self._undelivered.append(event)
        if len(self._undelivered) > 1:
            return  # a listener made this commit: it is told to all after the one being told
        while self._undelivered:
            current = self._undelivered[0]
            for listener in (*self._listeners[current.key], *self._listeners[None]):
                listener(current)
            self._undelivered.popleft()

    def _index(self, place: Place, old: Obj | None, new: Obj | None) -> None:
        before, after = set(_owners(old)), set(_owners(new))
        for uid in before - after:
            self._dependents[uid].pop(place, None)
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in after - before:
            self._dependents[uid][place] = None


def _place(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _owners(obj: Obj | None) -> Iterator[str]:
    for reference in (obj or {}).get("metadata", {}).get("ownerReferences") or ():
        yield reference["uid"]
