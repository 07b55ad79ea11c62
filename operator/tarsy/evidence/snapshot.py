"""Holds the objects that were read of a cluster, and what could not be read.

A snapshot is what its reader may see, at one time. Rules and ranking never ask for more, so an object that the reader
may not see appears in no result and in no count.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from tarsy.evidence.fields import Object, labels, mapping, string


class ObjectKey(NamedTuple):
    """Names an object; `namespace` is empty for cluster-scoped kinds.

    A tuple, because keys are hashed and sorted hundreds of thousands of times.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Gap:
    """A kind that could not be read, or not in full.

    Attributes:
        kind: the kind.
        namespace: where; empty: the cluster.
        reason: one sentence, for people and models.
    """

    kind: str
    namespace: str
    reason: str


@dataclass(frozen=True)
class Snapshot:
    """Objects of a cluster by kind, namespace, name and uid.

    Attributes:
        read_at: when the objects were read, by the clock of the API server.
        objects: each with `kind` and `metadata.name`; others are ignored. Of two with one key, the last counts.
        listed: kinds and namespaces (empty: all) that were listed in full, so that an absent object does not exist.
        gaps: what is missing, for people and models.
    """

    read_at: datetime
    objects: Sequence[Object]
    listed: frozenset[tuple[str, str]] = frozenset()
    gaps: Sequence[Gap] = ()
    _by_key: dict[ObjectKey, Object] = field(init=False, repr=False, default_factory=dict)
    _by_uid: dict[str, ObjectKey] = field(init=False, repr=False, default_factory=dict)
    _by_place: dict[tuple[str, str], list[ObjectKey]] = field(init=False, repr=False)
    _by_name: dict[tuple[str, str], list[ObjectKey]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for found in self.objects:
            key = key_of(found)
            if not key.kind or not key.name:
                continue
            self._by_key[key] = found
            if uid := string(found, "metadata", "uid"):
                self._by_uid[uid] = key
        places: dict[tuple[str, str], list[ObjectKey]] = defaultdict(list)
        names: dict[tuple[str, str], list[ObjectKey]] = defaultdict(list)
        for key in sorted(self._by_key):
            names[key.kind, key.name].append(key)
            places[key.kind, key.namespace].append(key)
            if key.namespace:
                places[key.kind, ""].append(key)
        object.__setattr__(self, "_by_place", places)
        object.__setattr__(self, "_by_name", names)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Returns an object by kind, `namespace` (empty: cluster-scoped) and name; None if it was not read."""
        return self._by_key.get(ObjectKey(kind, namespace, name))

    def at(self, key: ObjectKey) -> Object:
        """Returns the object of a key; an empty one if it was not read."""
        return self._by_key.get(key, {})

    def find_uid(self, uid: str) -> ObjectKey | None:
        """Returns the key of the object with a uid."""
        return self._by_uid.get(uid)

    def keys(self, kind: str, namespace: str = "") -> Sequence[ObjectKey]:
        """Returns the keys of a kind by name; of all namespaces when `namespace` is empty."""
        return self._by_place.get((kind, namespace), [])

    def named(self, kind: str, namespace: str, name: str) -> Sequence[ObjectKey]:
        """Returns the keys of a kind and name; of all namespaces when `namespace` is empty."""
        return [key for key in self._by_name.get((kind, name), []) if namespace in ("", key.namespace)]

    def items(self, kind: str, namespace: str = "") -> Iterable[tuple[ObjectKey, Object]]:
        """Yields the objects of a kind with their keys, by name."""
        return ((key, self._by_key[key]) for key in self.keys(kind, namespace))

    def all_keys(self) -> Iterable[ObjectKey]:
        """Yields the keys of all objects."""
        return iter(self._by_key)

    def complete(self, kind: str, namespace: str) -> bool:
        """Returns whether a kind of a namespace was listed in full: an object that is absent does not exist."""
        return (kind, namespace) in self.listed or (kind, "") in self.listed


def key_of(obj: Object) -> ObjectKey:
    """Returns the key of an object."""
    metadata = mapping(obj, "metadata")
    return ObjectKey(string(obj, "kind"), string(metadata, "namespace"), string(metadata, "name"))


def selects(selector: Object, chosen: Mapping[str, str]) -> bool:
    """Returns whether a label selector (`matchLabels`, `matchExpressions`) selects labels; an empty one selects all."""
    wanted = labels(selector, "matchLabels")
    if any(chosen.get(key) != text for key, text in wanted.items()):
        return False
    expressions = selector.get("matchExpressions")
    return all(_matches(one, chosen) for one in expressions) if isinstance(expressions, list) else True


def _matches(expression: object, chosen: Mapping[str, str]) -> bool:
    if not isinstance(expression, Mapping):
        return False
    key, values = string(expression, "key"), expression.get("values")
    among = chosen.get(key) in values if isinstance(values, list) else False
    match string(expression, "operator"):
        case "In":
            return among
        case "NotIn":
            return not among
        case "Exists":
            return key in chosen
        case "DoesNotExist":
            return key not in chosen
    return False
