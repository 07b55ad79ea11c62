"""Drops fields that the schema does not define, and reports their paths (fieldValidation)."""

from __future__ import annotations

from typing import Any

ROOT_FIELDS = ("apiVersion", "kind", "metadata")
META_FIELDS = frozenset(
    ("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
     "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
     "resourceVersion", "selfLink", "uid")
)  # fmt: skip


def pruned(schema: dict[str, Any], value: Any, path: str, unknown: list[str], resource: bool = False) -> Any:
    """A copy of `value` without what the schema does not know; the paths of what was dropped go into `unknown`.

    Args:
        resource: the value is an object of its own: apiVersion, kind and metadata are known without a schema.
    """
    if isinstance(value, dict):
        return _object(schema, value, path, unknown, resource or bool(schema.get("x-kubernetes-embedded-resource")))
    if isinstance(value, list):
        items = schema.get("items")
        if items is None:
            return value
        return [pruned(items, item, f"{path}[{at}]", unknown) for at, item in enumerate(value)]
    return value


def _object(
    schema: dict[str, Any], value: dict[str, Any], path: str, unknown: list[str], resource: bool
) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    keep = schema.get("x-kubernetes-preserve-unknown-fields") or additional is True
    kept: dict[str, Any] = {}
    for name, item in value.items():
        at = f"{path}.{name}" if path else name
        if resource and name in ROOT_FIELDS:
            kept[name] = pruned_meta(item, at, unknown) if name == "metadata" else item
        elif name in properties:
            kept[name] = pruned(properties[name], item, at, unknown)
        elif isinstance(additional, dict):
            kept[name] = pruned(additional, item, at, unknown)
        elif keep:
            kept[name] = item
        else:
            unknown.append(at)
    return kept


def pruned_meta(meta: Any, path: str, unknown: list[str]) -> Any:
    """An object's metadata with its known fields only; what was dropped goes into `unknown`."""
    if not isinstance(meta, dict) or meta.keys() <= META_FIELDS:
        return meta
    unknown.extend(f"{path}.{name}" for name in meta if name not in META_FIELDS)
    return {name: item for name, item in meta.items() if name in META_FIELDS}
