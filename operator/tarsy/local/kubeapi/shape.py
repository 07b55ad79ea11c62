"""How fields merge: which lists are sets, which are maps by key, what is replaced whole.

A custom resource says it in its schema. The built-in kinds say it in Go types that are not here; `BuiltinShape` knows
their lists by field name instead, which is unambiguous but for `ports` (decided by what the items have).
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

ListType = Literal["atomic", "set", "map"]


class Shape(Protocol):
    """The type of one place in an object."""

    @property
    def list_type(self) -> ListType: ...

    @property
    def atomic_map(self) -> bool: ...

    def keys(self, items: list[Any]) -> tuple[str, ...]:
        """What identifies an item of a list of type `map`."""
        ...

    def field(self, name: str) -> Shape:
        """The type of a field."""
        ...

    def item(self) -> Shape:
        """The type of a list's items."""
        ...

    def default(self, key: str) -> Any:
        """What a missing key of an item counts as."""
        ...


class SchemaShape:
    """The type of a place that a structural schema describes."""

    def __init__(self, schema: dict[str, Any], *, root: bool = False) -> None:
        self._schema = schema
        self._root = root

    @property
    def list_type(self) -> ListType:
        found: ListType = self._schema.get("x-kubernetes-list-type") or "atomic"
        return found

    @property
    def atomic_map(self) -> bool:
        return self._schema.get("x-kubernetes-map-type") == "atomic"

    def keys(self, items: list[Any]) -> tuple[str, ...]:
        return tuple(self._schema.get("x-kubernetes-list-map-keys") or ())

    def field(self, name: str) -> Shape:
        if self._root and name == "metadata":
            return BuiltinShape("metadata")
        part = (self._schema.get("properties") or {}).get(name) or self._schema.get("additionalProperties")
        return SchemaShape(part if isinstance(part, dict) else {})

    def item(self) -> Shape:
        part = self._schema.get("items")
        return SchemaShape(part if isinstance(part, dict) else {})

    def default(self, key: str) -> Any:
        items = self._schema.get("items") or {}
        return ((items.get("properties") or {}).get(key) or {}).get("default")


# From the patchMergeKey and listMapKey tags of k8s.io/api; names that mean the same everywhere.
_BY_KEY: dict[str, tuple[str, ...]] = {
    "containers": ("name",), "initContainers": ("name",), "ephemeralContainers": ("name",), "volumes": ("name",),
    "env": ("name",), "volumeMounts": ("mountPath",), "volumeDevices": ("devicePath",), "imagePullSecrets": ("name",),
    "hostAliases": ("ip",), "ownerReferences": ("uid",), "conditions": ("type",), "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"), "addresses": ("type",), "podIPs": ("ip",),
    "resourceClaims": ("name",), "webhooks": ("name",), "validations": ("expression",),
}  # fmt: skip
_SETS = frozenset(("finalizers", "podCIDRs"))
_ATOMIC_MAPS = frozenset(("selector", "labelSelector", "nodeSelector", "roleRef", "secretRef", "configMapKeyRef",
                          "secretKeyRef", "fieldRef", "resourceFieldRef", "objectReference"))  # fmt: skip


class BuiltinShape:
    """The type of a place in a built-in kind, guessed from the field's name."""

    def __init__(self, name: str = "", owner: str = "") -> None:
        self._name = name
        self._owner = owner

    @property
    def list_type(self) -> ListType:
        if self._name in _SETS:
            return "set"
        return "map" if self._name in _BY_KEY or self._name == "ports" else "atomic"

    @property
    def atomic_map(self) -> bool:
        return self._name in _ATOMIC_MAPS and not (self._name == "selector" and self._owner == "template")

    def keys(self, items: list[Any]) -> tuple[str, ...]:
        if self._name == "ports":
            in_container = any(isinstance(item, dict) and "containerPort" in item for item in items)
            return ("containerPort", "protocol") if in_container else ("port", "protocol")
        return _BY_KEY.get(self._name, ())

    def field(self, name: str) -> Shape:
        return BuiltinShape(name, self._name)

    def item(self) -> Shape:
        return BuiltinShape("", self._name)

    def default(self, key: str) -> Any:
        return "TCP" if key == "protocol" else None
