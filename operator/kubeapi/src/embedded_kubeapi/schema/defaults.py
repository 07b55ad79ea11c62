"""Sets the defaults of unset fields from the outside in, so that a default object is completed as well."""

from __future__ import annotations

from typing import Any

from embedded_kubeapi.objects import copy


def with_defaults(schema: dict[str, Any], value: Any) -> Any:
    """A copy of `value` with the schema's defaults; null of a field that is not nullable counts as unset.

    kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions, Defaulting and Nullable.
    """
    if isinstance(value, list):
        items = schema.get("items")
        return value if items is None else [with_defaults(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    filled: dict[str, Any] = {}
    for name, item in value.items():
        part = properties.get(name, additional if isinstance(additional, dict) else None)
        if part is None:
            filled[name] = item
        elif item is not None or part.get("nullable") or name not in properties:
            filled[name] = with_defaults(part, item)
    for name, part in properties.items():
        if "default" in part and name not in filled:
            filled[name] = with_defaults(part, copy(part["default"]))
    return filled
