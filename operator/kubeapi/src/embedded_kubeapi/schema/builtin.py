"""Decodes built-in kinds as the real API does: reports unknown fields, refuses wrong types.

Nulls count as unset, and a quantity that was written as a number is kept as text, as after Go's decoding. What is not
checked here is what Go's types do not say either: bounds and dependencies are in `builtin/strategies.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from embedded_kubeapi.errors import FieldError
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.schema.models import Model, Type, model
from embedded_kubeapi.schema.prune import ROOT_FIELDS, pruned_meta

_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_VERSION = re.compile(r"^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?(?=[A-Z])")
_GO = {"string": "string", "integer": "int32", "number": "float64", "boolean": "bool", "time": "string",
       "bytes": "[]uint8", "list": "[]interface {}", "map": "map[string]interface {}",
       "int-or-string": "int32"}  # fmt: skip
_PYTHON: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float),
                                        "boolean": (bool,), "time": (str,), "bytes": (str,),
                                        "int-or-string": (int, str), "list": (list,),
                                        "map": (dict,), "model": (dict,)}  # fmt: skip
_ANY = Type("any")


class DecodeError(ValueError):
    """A value is of a type that its field cannot hold; the text is that of Go's decoder."""


def bare_name(name: str) -> str:
    """A model's name without group and version: V1PodSpec is PodSpec, CoreV1Event is Event."""
    return _VERSION.sub("", name)


class BuiltinSchema:
    """The schema of a built-in kind.

    Args:
        name: of its model.
    """

    def __init__(self, name: str) -> None:
        self.model = name

    def clean(self, obj: Obj) -> tuple[Obj, list[str]]:
        """A copy without unknown fields and nulls, and the paths of the unknown fields.

        Raises:
            DecodeError: a field has a value of a wrong type.
        """
        unknown: list[str] = []
        found: Obj = {}
        fields = model(self.model).fields
        for name, value in obj.items():
            if name in ROOT_FIELDS:
                found[name] = pruned_meta(value, name, unknown) if name == "metadata" else value
            elif name not in fields:
                unknown.append(name)
            elif value is not None:
                found[name] = _read(fields[name], value, name, name, bare_name(self.model), unknown)
        return found, unknown

    def check(self, obj: Obj, old: Obj | None, found: Sequence[FieldError] = ()) -> list[FieldError]:
        """Checks nothing: the checks of a built-in kind are in its strategy."""
        return []


def _read(kind: Type, value: Any, path: str, plain: str, struct: str, unknown: list[str]) -> Any:
    """The value as stored; `path` has indices and `plain` none, as the two kinds of messages want them."""
    if kind.kind == "any":
        return value
    if kind.kind == "quantity":
        return _quantity(value)
    if not _holds(kind, value):
        if kind.kind == "model" and kind.model == "V1JSONSchemaProps" and isinstance(value, bool):
            return value  # additionalProperties: true
        expected = "v1." + bare_name(kind.model) if kind.model else _GO[kind.kind]
        raise DecodeError(f"json: cannot unmarshal {_go_name(value)} into Go struct field {struct}.{plain} "
                          f"of type {expected}")  # fmt: skip
    match kind.kind:
        case "list":
            return _list(kind.of or _ANY, value, path, plain, struct, unknown)
        case "map":
            return _map(kind.of or _ANY, value, path, plain, struct, unknown)
        case "model":
            return _model(model(kind.model), value, path, plain, unknown)
        case _:
            return value


def _holds(kind: Type, value: Any) -> bool:
    return isinstance(value, _PYTHON[kind.kind]) and (kind.kind == "boolean" or not isinstance(value, bool))


def _list(of: Type, value: list[Any], path: str, plain: str, struct: str, unknown: list[str]) -> list[Any]:
    items = enumerate(value)
    return [_read(of, item, f"{path}[{at}]", plain, struct, unknown) for at, item in items if item is not None]


def _map(of: Type, value: Obj, path: str, plain: str, struct: str, unknown: list[str]) -> Obj:
    found = {}
    for key, item in value.items():
        if item is not None:
            found[key] = _read(of, item, f"{path}.{key}", plain, struct, unknown)
        elif of.kind in ("string", "bytes"):
            found[key] = ""
    return found


def _model(known: Model, value: Obj, path: str, plain: str, unknown: list[str]) -> Obj:
    found, struct = {}, bare_name(known.name)
    for name, item in value.items():
        field = known.fields.get(name)
        if field is None:
            unknown.append(f"{path}.{name}")
        elif item is not None or field.kind == "any":
            found[name] = item if item is None else _read(field, item, f"{path}.{name}", f"{plain}.{name}", struct,
                                                          unknown)  # fmt: skip
    return found


def _quantity(value: Any) -> str:
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _QUANTITY.fullmatch(text):
        raise DecodeError(_QUANTITY_TEXT)
    return text


def _go_name(value: Any) -> str:
    for kinds, name in ((bool, "bool"), (int, "number"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kinds):
            return name
    return "object"
