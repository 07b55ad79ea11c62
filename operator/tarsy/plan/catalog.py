"""Looks up configuration objects by kind, namespace and name.

Decision: a protocol of three lookups, so that the controller's cache and the files of `tarsy plan` serve the same
pure code; kinds are asked for by their class, so every lookup is typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from tarsy.resources.meta import AnyResource

_R = TypeVar("_R", bound=AnyResource)


class Catalog(Protocol):
    """The known configuration of the cluster at one moment; answers come from memory."""

    def get(self, kind: type[_R], namespace: str, name: str) -> _R | None:
        """Returns the object; None if no valid object has that name.

        Args:
            kind: class of the object.
            namespace: namespace of the object.
            name: name of the object.
        """
        ...

    def list(self, kind: type[_R], namespace: str) -> Sequence[_R]:
        """The objects of a kind in a namespace, in any order."""
        ...

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none when it is not known."""
        ...

    def is_invalid(self, kind: type[AnyResource], namespace: str, name: str) -> bool:
        """Returns whether an object of that name exists and is not valid, so that `get` returns None.

        Args:
            kind: class of the object.
            namespace: namespace of the object.
            name: name of the object.
        """
        ...


class ResourceCatalog:
    """A catalog of given objects."""

    def __init__(
        self, resources: Iterable[AnyResource] = (), namespaces: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Takes the objects (the later of two with one name counts) and the labels of namespaces by name."""
        self._objects: dict[tuple[type[AnyResource], str], dict[str, AnyResource]] = {}
        for resource in resources:
            same = self._objects.setdefault((type(resource), resource.metadata.namespace), {})
            same[resource.metadata.name] = resource
        # The API server labels every namespace with its name; selectors are written against that.
        self._labels = {
            name: {"kubernetes.io/metadata.name": name, **labels} for name, labels in (namespaces or {}).items()
        }

    def get(self, kind: type[_R], namespace: str, name: str) -> _R | None:
        """Returns the object; None if no valid object has that name.

        Args:
            kind: class of the object.
            namespace: namespace of the object.
            name: name of the object.
        """
        found = self._objects.get((kind, namespace), {}).get(name)
        return found if isinstance(found, kind) else None

    def list(self, kind: type[_R], namespace: str) -> Sequence[_R]:
        """The objects of a kind in a namespace, by name."""
        objects = self._objects.get((kind, namespace), {})
        return [obj for _, obj in sorted(objects.items()) if isinstance(obj, kind)]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; only its name when nothing was given."""
        return self._labels.get(namespace, {"kubernetes.io/metadata.name": namespace})

    def is_invalid(self, kind: type[AnyResource], namespace: str, name: str) -> bool:
        """Returns False for any `kind`, `namespace` and `name`: the catalog contains only valid objects."""
        return False
