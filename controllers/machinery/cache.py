"""Caches the objects of the cluster as they were last seen, in plain dictionaries on the main loop.

Only the main loop touches it; the watch thread hands events over. Objects come from three sides, the watch, the relist
and the answers to our own writes, and not always in the order of their making, so an older version never replaces a
newer one. An object that does not parse is kept as an `UnreadableObject`, so that its status can report the errors.

Decision: finished Alerts, Investigations and ChatMessages, of which there may be 100,000, are kept as JSON without
managed fields, and parsed each time that one is asked for: they rest, so that is hardly ever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import Alert, ChatMessage, Investigation
from tarsy.resources.v1alpha1.common import ConditionType

_R = TypeVar("_R", bound=AnyResource)


@dataclass(frozen=True, slots=True)
class Key:
    """Names an object of the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Version:
    """Identifies an object and one state of it."""

    uid: str
    generation: int
    resource_version: str

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Version":
        """Reads the version of an object as the API gave it."""
        meta = raw["metadata"]
        return cls(meta.get("uid", ""), meta.get("generation", 0), meta.get("resourceVersion", ""))

    def older_than(self, other: "Version") -> bool:
        """Checks whether it was made earlier: resourceVersions grow (KEP-5504); only numbers are compared."""
        ours, theirs = self.resource_version, other.resource_version
        return ours.isdigit() and theirs.isdigit() and int(ours) < int(theirs)

    def same_as(self, other: "Version") -> bool:
        """Checks whether it is the same state of the same object; unknown without a resourceVersion."""
        return self == other and self.resource_version != ""


PASSIVE = (Alert.KIND, Investigation.KIND, ChatMessage.KIND)
"""Kinds that nothing is planned from; they finish."""

GONE_KEPT = 10_000
"""Uids of deleted objects that are remembered, the latest ones: a request of this process takes seconds at most."""


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """Holds an object that does not fit its kind, and the errors."""

    raw: Mapping[str, Any]
    error: InvalidResource


@dataclass(slots=True)
class _Write:
    """Counts the open writes of an object, and keeps the callables that wait for their end."""

    depth: int = 0
    waiting: list[Callable[[], None]] = field(default_factory=list)


class Cache:
    """Caches objects of this project's kinds, and the labels of namespaces. Implements `tarsy.plan.catalog.Catalog`."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], AnyResource]] = {}
        self._finished: dict[Key, bytes] = {}
        self._unreadable: dict[Key, UnreadableObject] = {}
        self._versions: dict[str, dict[tuple[str, str], Version]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._gone: dict[str, int] = {}
        self._deletions = 0
        self._written: set[Key] = set()
        self._writes: dict[Key, _Write] = {}

    def put(self, raw: Mapping[str, Any], *, watched: bool = False, instead_of: Version | None = None) -> Key:
        """Stores an object as the API gave it, unless a newer version is stored.

        The answer to a request of this process may come after the watch told that the object is deleted. It is not
        stored then: nothing would remove it before the next relist.

        Args:
            raw: the object.
            watched: the watch or a relist tells of it, so it is there, whatever was told before.
            instead_of: the version here that this one is known to follow, whatever the numbers say (after etcd was
                restored from a backup they begin anew).
        """
        meta = raw["metadata"]
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        version, here = Version.of(raw), self.version(key)
        if watched:
            self._gone.pop(version.uid, None)
        elif version.uid in self._gone:
            return key
        if here is not None and here != instead_of and (version.older_than(here) or version.same_as(here)):
            return key
        self._versions.setdefault(key.kind, {})[key.namespace, key.name] = version
        self._forget(key)
        if key.kind in PASSIVE and _is_finished(raw):
            lean = {**raw, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}
            self._finished[key] = orjson.dumps(lean)
            return key
        found = _parsed(raw)
        if isinstance(found, UnreadableObject):
            self._unreadable[key] = found
        else:
            self._objects.setdefault(key.kind, {})[key.namespace, key.name] = found
        return key

    def put_written(self, raw: Mapping[str, Any]) -> None:
        """Stores an object whose status this process has just written, as the API answered."""
        key = self.put(raw)
        if self.version(key) == Version.of(raw):
            self._written.add(key)

    @contextmanager
    def writing(self, key: Key) -> Iterator[None]:
        """Holds `after_write` of an object back until the block, and all that are open beside it, have ended."""
        write = self._writes.setdefault(key, _Write())
        write.depth += 1
        try:
            yield
        finally:
            write.depth -= 1
            if not write.depth:
                del self._writes[key]
                for then in write.waiting:
                    then()

    def after_write(self, key: Key, then: Callable[[], None]) -> None:
        """Calls `then` when this process is not writing the object: now, or as soon as it has written it."""
        write = self._writes.get(key)
        if write is None:
            then()
        else:
            write.waiting.append(then)

    def is_written(self, key: Key) -> bool:
        """Checks whether the stored version of an object is a status that this process wrote."""
        return key in self._written

    def drop(self, key: Key, uid: str) -> None:
        """Removes an object that is gone; another of the same name stays."""
        self._deletions += 1
        self._gone[uid] = self._deletions
        if len(self._gone) > GONE_KEPT:
            del self._gone[next(iter(self._gone))]
        here = self.version(key)
        if here is None or here.uid != uid:
            return
        del self._versions[key.kind][key.namespace, key.name]
        self._forget(key)

    @property
    def deletions(self) -> int:
        """Number of deletions that were told so far; see `gone_since`."""
        return self._deletions

    def gone_since(self, uid: str, deletions: int) -> bool:
        """Checks whether the deletion of an object was told after there had been so many."""
        return self._gone.get(uid, 0) > deletions

    def version(self, key: Key) -> Version | None:
        """Returns the stored version of an object, readable or not."""
        return self._versions.get(key.kind, {}).get((key.namespace, key.name))

    def find(self, key: Key) -> AnyResource | UnreadableObject | None:
        """Returns the object, its errors, or None."""
        if (document := self._finished.get(key)) is not None:
            return _parsed(orjson.loads(document))
        return self._objects.get(key.kind, {}).get((key.namespace, key.name)) or self._unreadable.get(key)

    def finished(self, key: Key) -> bytes | None:
        """Returns the JSON of an Alert, Investigation or ChatMessage that has finished; None for all others."""
        return self._finished.get(key)

    def all_keys(self) -> list[Key]:
        """Lists the keys of all objects."""
        return [key for kind in self._versions for key in self.keys_of(kind)]

    def keys_of(self, kind: str) -> list[Key]:
        """Lists the keys of a kind's objects, readable or not."""
        return [Key(kind, namespace, name) for namespace, name in self._versions.get(kind, {})]

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Stores the labels of a namespace; None removes it."""
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = {"kubernetes.io/metadata.name": name, **labels}

    @property
    def namespaces(self) -> list[str]:
        """Lists the names of the known namespaces."""
        return sorted(self._labels)

    def get(self, kind: type[_R], namespace: str, name: str) -> _R | None:
        """Returns the object of a kind, or None.

        Args:
            kind: its class.
            namespace: of the object.
            name: of the object.
        """
        found = self.find(Key(kind.KIND, namespace, name))
        return found if isinstance(found, kind) else None

    def list(self, kind: type[_R], namespace: str) -> Sequence[_R]:
        """Lists the objects of a kind in a namespace, without those that have finished."""
        objects = self._objects.get(kind.KIND, {})
        return [obj for (space, _), obj in objects.items() if space == namespace and isinstance(obj, kind)]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Returns the labels of a namespace; only its name when it is not known."""
        return self._labels.get(namespace, {"kubernetes.io/metadata.name": namespace})

    def is_invalid(self, kind: type[AnyResource], namespace: str, name: str) -> bool:
        """Checks for an object that does not fit its kind, so that `get` returns None.

        Args:
            kind: its class.
            namespace: of the object.
            name: of the object.
        """
        return Key(kind.KIND, namespace, name) in self._unreadable

    def _forget(self, key: Key) -> None:
        self._written.discard(key)
        self._finished.pop(key, None)
        self._unreadable.pop(key, None)
        self._objects.get(key.kind, {}).pop((key.namespace, key.name), None)


def _is_finished(raw: Mapping[str, Any]) -> bool:
    """Checks for the condition Finished=True; a status of any other form has none."""
    status = raw.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return isinstance(conditions, Sequence) and any(
        isinstance(one, Mapping) and one.get("type") == ConditionType.FINISHED and one.get("status") == "True"
        for one in conditions
    )


def _parsed(raw: Mapping[str, Any]) -> AnyResource | UnreadableObject:
    try:
        return parse_object(raw)
    except InvalidResource as error:
        return UnreadableObject(raw, error)
