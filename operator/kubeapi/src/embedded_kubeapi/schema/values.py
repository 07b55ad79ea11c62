"""Validates types, bounds, patterns, enums and unique lists, with the messages of the real API (kube-openapi)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from embedded_kubeapi.cel.patterns import pattern
from embedded_kubeapi.errors import (
    FieldError,
    duplicate,
    not_supported,
    required,
    show,
    too_long,
    too_many,
    wrong,
    wrong_type,
)  # fmt: skip
from embedded_kubeapi.objects import type_name

Errors = list[FieldError]
_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip
_NEW = object()  # as `old`: there was nothing, or it is not known what
_BITS = {"int32": 2**31, "int64": 2**63}


def check_values(schema: dict[str, Any], value: Any, path: str, errors: Errors, old: Any = _NEW) -> None:
    """Append everything that is wrong with `value` and what is in it.

    Args:
        old: what it replaces. Bounds and enums do not judge what did not change, types and required fields do
            ("Validation ratcheting" on kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
            custom-resource-definitions).
    """
    if value is None and schema.get("nullable"):
        return
    if not _of_type(schema, value):
        expected = "integer,string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type"))
        errors.append(wrong_type(path, type_name(value), expected))
        return
    unchanged = type(value) is type(old) and not isinstance(value, dict) and value == old
    if isinstance(value, dict):
        _object(schema, value, path, errors, old)
    elif isinstance(value, list):
        _list(schema, value, path, errors, old, unchanged)
    if not unchanged:
        _scalar(schema, value, path, errors)
    _combined(schema, value, path, errors)


def _scalar(schema: dict[str, Any], value: Any, path: str, errors: Errors) -> None:
    if (allowed := schema.get("enum")) and not any(value == item and type(value) is type(item) for item in allowed):
        errors.append(not_supported(path, value, allowed))
    if isinstance(value, str):
        _string(schema, value, path, errors)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _number(schema, value, path, errors)


def _of_type(schema: dict[str, Any], value: Any) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, (int, str)) and not isinstance(value, bool)
    kinds = _KINDS.get(schema.get("type", ""))
    if kinds is None:
        return True
    if schema["type"] == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


def _string(schema: dict[str, Any], value: str, path: str, errors: Errors) -> None:
    if len(value) > schema.get("maxLength", len(value)):
        errors.append(too_long(path, schema["maxLength"]))
    if len(value) < schema.get("minLength", 0):
        errors.append(wrong(path, value, f"{path} in body should be at least {schema['minLength']} chars long"))
    if (text := schema.get("pattern")) and not pattern(text).is_in(value):
        errors.append(wrong(path, value, f"{path} in body should match '{text}'"))
    if (check := _FORMATS.get(schema.get("format", ""))) and not check(value):
        detail = f"{path} in body must be of type {schema['format']}: {show(value)}"
        errors.append(FieldError("FieldValueTypeInvalid", path, f"Invalid value: {show(value)}: {detail}"))


def _number(schema: dict[str, Any], value: float, path: str, errors: Errors) -> None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None:
        if schema.get("exclusiveMinimum"):
            if value <= low:
                errors.append(wrong(path, value, f"{path} in body should be greater than {low:g}"))
        elif value < low:
            errors.append(wrong(path, value, f"{path} in body should be greater than or equal to {low}"))
    if high is not None:
        if schema.get("exclusiveMaximum"):
            if value >= high:
                errors.append(wrong(path, value, f"{path} in body should be less than {high:g}"))
        elif value > high:
            errors.append(wrong(path, value, f"{path} in body should be less than or equal to {high}"))
    if step and value % step:
        errors.append(wrong(path, value, f"{path} in body should be a multiple of {step}"))
    if (limit := _BITS.get(schema.get("format", ""))) and not -limit <= value < limit:
        errors.append(wrong(path, value, f"{path} in body must be of type {schema['format']}: {show(value)}"))


def _list(schema: dict[str, Any], value: list[Any], path: str, errors: Errors, old: Any, unchanged: bool) -> None:
    if schema.get("items") is not None:
        olds = _correlated(schema, value, old, unchanged)
        for at, item in enumerate(value[: schema.get("maxItems")]):
            check_values(schema["items"], item, f"{path}[{at}]", errors, olds[at])
    if unchanged:
        return
    if len(value) > schema.get("maxItems", len(value)):
        errors.append(too_many(path, len(value), schema["maxItems"]))
        return
    if len(value) < schema.get("minItems", 0):
        errors.append(wrong(path, len(value), f"{path} in body should have at least {schema['minItems']} items"))
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "map":
        names = schema.get("x-kubernetes-list-map-keys") or ()
        keys = [{name: item.get(name) for name in names if name in item} for item in value if isinstance(item, dict)]
        _unique(keys, path, errors)
    elif list_type == "set" or schema.get("uniqueItems"):
        _unique(value, path, errors)


def _correlated(schema: dict[str, Any], value: list[Any], old: Any, unchanged: bool) -> list[Any]:
    """For each item the one it replaces, where that can be known: in lists that are maps."""
    if unchanged:
        return value
    names = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return [_NEW] * len(value)
    olds = {show([item.get(name) for name in names]): item for item in old if isinstance(item, dict)}
    return [olds.get(show([i.get(name) for name in names]), _NEW) if isinstance(i, dict) else _NEW for i in value]


def _unique(values: list[Any], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for at, value in enumerate(values):
        if (shown := show(value)) in seen:
            errors.append(duplicate(f"{path}[{at}]", value))
        seen.add(shown)


def _object(schema: dict[str, Any], value: dict[str, Any], path: str, errors: Errors, old: Any) -> None:
    before = old if isinstance(old, dict) else {}
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            errors.append(required(_below(path, name)))
    if len(value) > schema.get("maxProperties", len(value)):
        errors.append(too_many(path, len(value), schema["maxProperties"]))
    if len(value) < schema.get("minProperties", 0):
        detail = f"{path} in body should have at least {schema['minProperties']} properties"
        errors.append(wrong(path, len(value), detail))
    for name, item in value.items():
        part = properties.get(name, additional if isinstance(additional, dict) else None)
        if part is not None and not (not path and name == "metadata"):
            check_values(part, item, _below(path, name), errors, before.get(name, _NEW))


def _combined(schema: dict[str, Any], value: Any, path: str, errors: Errors) -> None:
    def passing(parts: list[dict[str, Any]]) -> int:
        count = 0
        for part in parts:
            found: Errors = []
            check_values(part, value, path, found)
            count += not found
        return count

    for part in schema.get("allOf") or ():
        check_values(part, value, path, errors)
    if (parts := schema.get("anyOf")) and not passing(parts):
        errors.append(wrong(path, value, f"{path} in body must validate at least one schema (anyOf)"))
    if (parts := schema.get("oneOf")) and passing(parts) != 1:
        errors.append(wrong(path, value, f"{path} in body must validate one and only one schema (oneOf)"))
    if (part := schema.get("not")) and passing([part]):
        errors.append(wrong(path, value, f"{path} in body must not validate the schema (not)"))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_date_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).tzinfo is not None and "T" in text.upper()
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_date_time,
    "date": _is_date,
    "uuid": lambda text: bool(re.fullmatch(r"(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", text)),
    "byte": lambda text: bool(re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text)),
}
