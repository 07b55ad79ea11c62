"""Defines the objects that a call changes: their identity, whether they are as they were shown, who manages them.

Decision: two states are the same if uid and digest of the spec are. The resourceVersion, which every update of a status
moves, counts only for kinds that have neither a generation nor a status.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tarsy.record.approvals.approval import plain_json

MAX_OBJECTS = 16
"""Objects that one call may change, at most."""

_NOT_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})
_PLAIN = re.compile(r"^[A-Za-z0-9._:/-]{1,200}$")
_TRACKING = "argocd.argoproj.io/tracking-id"
_INSTANCE = "app.kubernetes.io/instance"
_LABELS = {
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}


@dataclass(frozen=True, slots=True)
class TargetName:
    """The identity of an object; an empty namespace means none is named."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


@dataclass(frozen=True, slots=True)
class TargetState:
    """An object as it was read; without a uid it did not exist."""

    name: TargetName
    uid: str = ""
    spec_hash: str = ""
    generation: int | None = None
    resource_version: str = ""
    managed_by: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry of `spec.targets`; what is not known is left out."""
        found = {
            "apiVersion": self.name.api_version,
            "kind": self.name.kind,
            "namespace": self.name.namespace,
            "name": self.name.name,
            "uid": self.uid,
            "generation": self.generation,
            "specHash": self.spec_hash,
            "resourceVersion": self.resource_version,
            "managedBy": self.managed_by,
        }
        return {key: value for key, value in found.items() if value not in ("", None)}

    @property
    def counts(self) -> tuple[TargetName, str, str, str, str]:
        """Returns all that must be the same when the call is sent."""
        return self.name, self.uid, self.spec_hash, self.resource_version, self.managed_by


def target_of(entry: Mapping[str, Any]) -> TargetState:
    """Reads an entry of `spec.targets`."""
    name = TargetName(entry["apiVersion"], entry["kind"], entry.get("namespace", ""), entry["name"])
    return TargetState(
        name,
        entry.get("uid", ""),
        entry.get("specHash", ""),
        entry.get("generation"),
        entry.get("resourceVersion", ""),
        entry.get("managedBy", ""),
    )


def state_of(name: TargetName, obj: Mapping[str, Any] | None) -> TargetState:
    """Returns the state of an object.

    Args:
        name: as the call names it.
        obj: as the Kubernetes API returned it; None: it does not exist.

    Raises:
        ValueError: it is no object of the Kubernetes API.
    """
    if obj is None:
        return TargetState(name)
    meta = obj.get("metadata")
    if not isinstance(meta, Mapping) or not isinstance(meta.get("uid"), str):
        raise ValueError(f"{name} has no metadata.uid")
    generation = meta.get("generation")
    versioned = "status" not in obj and generation is None
    spec = {key: value for key, value in obj.items() if key not in _NOT_SPEC}
    return TargetState(
        name,
        meta["uid"],
        f"sha256:{hashlib.sha256(plain_json(spec).encode()).hexdigest()}",
        generation if isinstance(generation, int) else None,
        str(meta.get("resourceVersion") or "") if versioned else "",
        manager_of(meta),
    )


def changed_since(shown: Sequence[TargetState], now: Sequence[TargetState]) -> str | None:
    """Says which object is not as it was shown; None: all are.

    Args:
        shown: as people were shown them.
        now: as they are, in the same order.
    """
    if [one.name for one in shown] != [one.name for one in now]:
        return "The objects that it would change are other ones"
    for before, after in zip(shown, now, strict=True):
        if before.counts == after.counts:
            continue
        if not after.uid:
            return f"{after.name} was deleted"
        if not before.uid:
            return f"{after.name} was created"
        if before.uid != after.uid:
            return f"{after.name} was deleted and created again"
        if before.managed_by != after.managed_by:
            return f"The mark of what manages {after.name} changed"
        return f"The spec of {after.name} changed"
    return None


def manager_of(meta: Mapping[str, Any]) -> str:
    """Names what applies an object from Git or a chart, with its mark; empty: nothing known does.

    An object that a controller made has its labels from a template, and is not applied itself.

    Args:
        meta: metadata of the object.
    """
    if any(isinstance(one, Mapping) and one.get("controller") for one in meta.get("ownerReferences") or ()):
        return ""
    labels, annotations = _texts(meta.get("labels")), _texts(meta.get("annotations"))
    if (tracked := annotations.get(_TRACKING)) is not None:
        return _marked("Argo CD", "annotation", _TRACKING, tracked)
    for label, manager in _LABELS.items():
        if label in labels:
            return _marked(manager, "label", label, labels[label])
    if _INSTANCE in labels and any(name.startswith("argocd-") for name in _field_managers(meta)):
        return _marked("Argo CD", "label", _INSTANCE, labels[_INSTANCE])
    if labels.get("app.kubernetes.io/managed-by") == "Helm":
        release = annotations.get("meta.helm.sh/release-name", "")
        return _marked("Helm", "release", "", release) if release else "Helm (label app.kubernetes.io/managed-by)"
    return ""


def _marked(manager: str, what: str, key: str, value: str) -> str:
    shown = value if _PLAIN.match(value) else ""  # anybody who writes the object writes this
    told = ": ".join(part for part in (key, shown) if part)
    return f"{manager} ({what} {told})" if told else f"{manager} ({what})"


def _texts(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {key: text for key, text in value.items() if isinstance(key, str) and isinstance(text, str)}


def _field_managers(meta: Mapping[str, Any]) -> list[str]:
    entries = meta.get("managedFields")
    if not isinstance(entries, list):
        return []
    return [str(entry.get("manager", "")) for entry in entries if isinstance(entry, Mapping)]
