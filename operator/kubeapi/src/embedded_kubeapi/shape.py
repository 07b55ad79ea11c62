"""Determines how fields merge: which lists are sets, which are maps by key, which are replaced as a whole.

A custom resource says it in its schema. Of the built-in kinds `schema/models.py` knows which model a field holds, and
the tables here know how lists of that model merge (patchMergeKey, listMapKey and structType in k8s.io/api).
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from embedded_kubeapi.schema.models import META, Type, model

ListType = Literal["atomic", "set", "map"]


class Shape(Protocol):
    """The merge rules of a place in an object."""

    @property
    def list_type(self) -> ListType: ...

    @property
    def atomic_map(self) -> bool: ...

    @property
    def counts(self) -> bool:
        """Whether a container is a field of its own for the writer that brings it, as what is in it is."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Fields that identify an item of a list of type `map`."""
        ...

    def field(self, name: str) -> Shape:
        """The type of a field."""
        ...

    def item(self) -> Shape:
        """The type of a list's items."""
        ...

    def default(self, key: str) -> Any:
        """Value of a missing key of an item."""
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

    @property
    def counts(self) -> bool:
        return True

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._schema.get("x-kubernetes-list-map-keys") or ())

    def field(self, name: str) -> Shape:
        if self._root and name == "metadata":
            return ModelShape(Type("model", model=META))
        part = (self._schema.get("properties") or {}).get(name) or self._schema.get("additionalProperties")
        return SchemaShape(part if isinstance(part, dict) else {})

    def item(self) -> Shape:
        part = self._schema.get("items")
        return SchemaShape(part if isinstance(part, dict) else {})

    def default(self, key: str) -> Any:
        items = self._schema.get("items") or {}
        return ((items.get("properties") or {}).get(key) or {}).get("default")


_NAME = ("name",)
# By what the items are; the first key is the one that strategic merge knows.
_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("V1Container", "V1EphemeralContainer", "V1Volume", "V1EnvVar", "V1PodResourceClaim",
                     "CoreV1ResourceClaim", "V1PodResourceClaimStatus", "V1MutatingWebhook", "V1ValidatingWebhook",
                     "V1MatchCondition", "V1Variable", "V1CSINodeDriver"), _NAME),
    "V1VolumeMount": ("mountPath",), "V1VolumeDevice": ("devicePath",), "V1HostAlias": ("ip",), "V1PodIP": ("ip",),
    "V1HostIP": ("ip",), "V1ContainerPort": ("containerPort", "protocol"), "V1ServicePort": ("port", "protocol"),
    "V1OwnerReference": ("uid",), "V1NodeAddress": ("type",),
    "V1TopologySpreadConstraint": ("topologyKey", "whenUnsatisfiable"),
}  # fmt: skip
_KEYS_OF_FIELD = {"imagePullSecrets": _NAME, "secrets": _NAME}
_SETS = frozenset(("finalizers", "podCIDRs", "volumeLifecycleModes"))
_ATOMIC_MODELS = frozenset(("V1LabelSelector", "V1SecretKeySelector", "V1ConfigMapKeySelector", "V1ObjectFieldSelector",
                            "V1ResourceFieldSelector", "V1LocalObjectReference", "V1ObjectReference", "V1RoleRef",
                            "V1SecretReference", "V1TypedLocalObjectReference", "V1NodeSelector",
                            "V1NodeSelectorTerm", "V1ScopeSelector", "V1ParamKind", "V1ParamRef"))  # fmt: skip
_ATOMIC_MAPS = frozenset(("nodeSelector", "selector"))
_ANY = Type("any")


class ModelShape:
    """The type of a place in a built-in kind; `name` is the field's."""

    def __init__(self, kind: Type, name: str = "") -> None:
        self._kind = kind
        self._name = name

    @property
    def list_type(self) -> ListType:
        if self._kind.kind != "list":
            return "atomic"
        if self._name in _SETS:
            return "set"
        return "map" if self.keys else "atomic"

    @property
    def atomic_map(self) -> bool:
        if self._kind.kind == "map":
            return self._name in _ATOMIC_MAPS
        return self._kind.kind == "model" and self._kind.model in _ATOMIC_MODELS

    @property
    def counts(self) -> bool:
        return self._kind.kind == "map"  # what a model holds is there from the start, if only empty

    @property
    def keys(self) -> tuple[str, ...]:
        of = self._kind.of
        if self._kind.kind != "list" or of is None or not of.model:
            return ()
        if of.model.endswith("Condition") and of.model != "V1MatchCondition":
            return ("type",)
        return _KEYS.get(of.model, _KEYS_OF_FIELD.get(self._name, ()))

    def field(self, name: str) -> Shape:
        match self._kind.kind:
            case "model":
                return ModelShape(model(self._kind.model).fields.get(name, _ANY), name)
            case "map":
                return ModelShape(self._kind.of or _ANY)
            case _:
                return ModelShape(_ANY)

    def item(self) -> Shape:
        return ModelShape(self._kind.of or _ANY)

    def default(self, key: str) -> Any:
        return "TCP" if key == "protocol" else None


def builtin_shape(name: str | None) -> Shape:
    """The shape of a kind by its model's name; without one, only its metadata is known."""
    return ModelShape(Type("model", model=name)) if name else SchemaShape({}, root=True)
