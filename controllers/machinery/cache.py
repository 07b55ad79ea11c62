"""Caches the objects of the cluster as they were last seen, in plain dictionaries on the main loop.

Only the main loop touches it; the watch thread hands events over. Objects come from three sides, the watch, the relist
and the answers to our own writes, and not always in the order of their making, so an older version never replaces a
newer one. An object that does not parse is kept as an `UnreadableObject`, so that its status can report the errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_object

_R = TypeVar("_R", bound=AnyResource)


@dataclass(frozen=True, slots=True)
class Key:
    """An object's name in the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Version:
    """Which object, and which state of it."""

    uid: str
    generation: int
    resource_version: str

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Version":
        """That of an object as the API gave it."""
        meta = raw["metadata"]
        return cls(meta.get("uid", ""), meta.get("generation", 0), meta.get("resourceVersion", ""))

    def older_than(self, other: "Version") -> bool:
        """Whether it was made before: resourceVersions grow (KEP-5504); what is no number is not compared."""
        ours, theirs = self.resource_version, other.resource_version
        return ours.isdigit() and theirs.isdigit() and int(ours) < int(theirs)


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object of ours that does not fit its kind: raw, and why."""

    raw: Mapping[str, Any]
    error: InvalidResource


class Cache:
    """Objects of this project's kinds, and the labels of namespaces. Implements `tarsy.plan.catalog.Catalog`."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], AnyResource]] = {}
        self._unreadable: dict[Key, UnreadableObject] = {}
        self._versions: dict[str, dict[tuple[str, str], Version]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}

    def put(self, raw: Mapping[str, Any], *, instead_of: Version | None = None) -> Key:
        """Takes an object as the API gave it, unless what is here is newer.

        Args:
            raw: the object.
            instead_of: the version here that this one is known to follow, whatever the numbers say (after etcd was
                restored from a backup they begin anew).
        """
        meta = raw["metadata"]
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        version, here = Version.of(raw), self.version(key)
        if here is not None and here != instead_of and version.older_than(here):
            return key
        self._versions.setdefault(key.kind, {})[key.namespace, key.name] = version
        objects = self._objects.setdefault(key.kind, {})
        try:
            objects[key.namespace, key.name] = parse_object(raw)
            self._unreadable.pop(key, None)
        except InvalidResource as error:
            objects.pop((key.namespace, key.name), None)
            self._unreadable[key] = UnreadableObject(raw, error)
        return key

    def drop(self, key: Key, uid: str) -> None:
        """Forgets an object that is gone; another of the same name stays."""
        here = self.version(key)
        if here is None or here.uid != uid:
            return
        del self._versions[key.kind][key.namespace, key.name]
        self._unreadable.pop(key, None)
        self._objects.get(key.kind, {}).pop((key.namespace, key.name), None)

    def version(self, key: Key) -> Version | None:
        """Which version of an object is here, readable or not."""
        return self._versions.get(key.kind, {}).get((key.namespace, key.name))

    def find(self, key: Key) -> AnyResource | UnreadableObject | None:
        """The object, what is wrong with it, or None."""
        return self._objects.get(key.kind, {}).get((key.namespace, key.name)) or self._unreadable.get(key)

    def all_keys(self) -> list[Key]:
        """The keys of all objects."""
        return [key for kind in self._versions for key in self.keys_of(kind)]

    def keys_of(self, kind: str) -> list[Key]:
        """The keys of a kind's objects, readable or not."""
        return [Key(kind, namespace, name) for namespace, name in self._versions.get(kind, {})]

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Takes the labels of a namespace (None: it is gone)."""
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = {"kubernetes.io/metadata.name": name, **labels}

    @property
    def namespaces(self) -> list[str]:
        """The names of the namespaces that are known."""
        return sorted(self._labels)

    def get(self, kind: type[_R], namespace: str, name: str) -> _R | None:
        """The object of a kind, or None."""
        found = self._objects.get(kind.KIND, {}).get((namespace, name))
        return found if isinstance(found, kind) else None

    def list(self, kind: type[_R], namespace: str) -> Sequence[_R]:
        """The objects of a kind in a namespace."""
        objects = self._objects.get(kind.KIND, {})
        return [obj for (space, _), obj in objects.items() if space == namespace and isinstance(obj, kind)]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; only its name when it is not known."""
        return self._labels.get(namespace, {"kubernetes.io/metadata.name": namespace})

    def is_invalid(self, kind: type[AnyResource], namespace: str, name: str) -> bool:
        """Whether there is an object of that name that does not fit its kind, so that `get` gives None."""
        return Key(kind.KIND, namespace, name) in self._unreadable
