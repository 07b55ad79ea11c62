"""Converts a pydantic model's JSON schema into the structural schema of a CustomResourceDefinition.

Decision: what has no structural form (unions of types, recursion) is an error here, at generation, instead of an
x-kubernetes-preserve-unknown-fields that would let anything through; unions of fields are CEL rules on the model.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
_ORDER = (
    *_KEPT,
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "properties",
    "additionalProperties",
    "items",
)
_DROPPED = ("title", "propertyNames")
_MAX_DEPTH = 20


class NotStructural(ValueError):
    """A model says something that a structural schema cannot say."""


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of `model`, without $ref, with every list's type explicit.

    Raises:
        NotStructural: naming the field that has no structural form.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.pop("$defs", {}), model.__name__, 0)


def _convert(source: Schema, defs: Schema, path: str, depth: int) -> Schema:
    if depth > _MAX_DEPTH:
        raise NotStructural(f"{path}: the model contains itself")
    source = _inline(source, defs, path)
    schema: Schema = {}
    for key, value in source.items():
        match key:
            case "properties":
                schema[key] = {
                    name: _convert(field, defs, f"{path}.{name}", depth + 1) for name, field in value.items()
                }
            case "items":
                schema[key] = _convert(value, defs, f"{path}[]", depth + 1)
            case "additionalProperties":
                if isinstance(value, dict):
                    schema[key] = _convert(value, defs, f"{path}{{}}", depth + 1)
            case "const":
                schema["enum"] = [value]
            case "default":
                # Empty ones say nothing, and Kubernetes 1.20 refuses the empty string.
                if value not in (None, "") and not isinstance(value, dict | list):
                    schema[key] = value
            case _ if key in _ORDER:
                schema[key] = value
            case _ if key not in _DROPPED:
                raise NotStructural(f"{path}: {key} has no structural form")
    if "type" not in schema:
        raise NotStructural(f"{path}: has no type")
    if schema["type"] == "array":
        if "minLength" in schema or "maxLength" in schema:
            raise NotStructural(f"{path}: put the bounds of the list before Unique() in its annotation")
        schema.setdefault("x-kubernetes-list-type", "atomic")
    return dict(sorted(schema.items(), key=lambda item: _ORDER.index(item[0])))


def _inline(source: Schema, defs: Schema, path: str) -> Schema:
    """`source` with references and `| None` replaced by what they stand for; its own words win."""
    while "$ref" in source or "anyOf" in source:
        outer = dict(source)
        if "$ref" in outer:
            inner = defs[outer.pop("$ref").rsplit("/", 1)[-1]]
        else:
            choices = [choice for choice in outer.pop("anyOf") if choice != {"type": "null"}]
            if len(choices) != 1:
                raise NotStructural(f"{path}: is a union of {len(choices)} types; make it one field each")
            inner = choices[0]
        source = {**inner, **outer}
    return source
