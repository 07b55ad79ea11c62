"""What is in the cluster, as the watch last saw it: a plain dictionary on the main loop.

Only the main loop touches it; the watch thread hands events over. An object that does not parse is kept as
`InvalidResource`, so its status can say what is wrong with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse

R = TypeVar("R", bound=AnyResource)


@dataclass(frozen=True, slots=True)
class Key:
    """An object's name in the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object of ours that does not fit its kind: raw, and why."""

    raw: Mapping[str, Any]
    error: InvalidResource


class Cache:
    """Objects of this project's kinds, and the labels of namespaces. Implements `tarsy.plan.catalog.Catalog`."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], AnyResource]] = {}
        self._unreadable: dict[Key, Unreadable] = {}
        self._labels: dict[str, Mapping[str, str]] = {}

    def put(self, raw: Mapping[str, Any]) -> Key:
        """Takes an object as the API gave it."""
        meta = raw["metadata"]
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        objects = self._objects.setdefault(key.kind, {})
        try:
            objects[key.namespace, key.name] = parse(raw)
            self._unreadable.pop(key, None)
        except InvalidResource as error:
            objects.pop((key.namespace, key.name), None)
            self._unreadable[key] = Unreadable(raw, error)
        return key

    def drop(self, key: Key) -> str | None:
        """Forgets an object; the uid it had."""
        self._unreadable.pop(key, None)
        gone = self._objects.get(key.kind, {}).pop((key.namespace, key.name), None)
        return gone.metadata.uid if gone else None

    def find(self, key: Key) -> AnyResource | Unreadable | None:
        """The object, what is wrong with it, or None."""
        return self._objects.get(key.kind, {}).get((key.namespace, key.name)) or self._unreadable.get(key)

    def all_keys(self) -> list[Key]:
        """The keys of all objects."""
        kinds = {*self._objects, *(key.kind for key in self._unreadable)}
        return [key for kind in kinds for key in self.keys_of(kind)]

    def keys_of(self, kind: str) -> list[Key]:
        """The keys of a kind's objects."""
        readable = [Key(kind, namespace, name) for namespace, name in self._objects.get(kind, {})]
        return readable + [key for key in self._unreadable if key.kind == kind]

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Takes the labels of a namespace (None: it is gone)."""
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = {"kubernetes.io/metadata.name": name, **labels}

    def get(self, kind: type[R], namespace: str, name: str) -> R | None:
        """The object of a kind, or None."""
        found = self._objects.get(kind.KIND, {}).get((namespace, name))
        return found if isinstance(found, kind) else None

    def list(self, kind: type[R], namespace: str) -> Sequence[R]:
        """The objects of a kind in a namespace."""
        objects = self._objects.get(kind.KIND, {})
        return [obj for (space, _), obj in objects.items() if space == namespace and isinstance(obj, kind)]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; only its name when it is not known."""
        return self._labels.get(namespace, {"kubernetes.io/metadata.name": namespace})
