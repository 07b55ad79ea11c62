"""Walks the schemas of CRDs and says what Kubernetes would say against them.

Decision: the checks are written from the Kubernetes documentation ("Structural schemas", "Validation rules" of custom
resources), since the only API server that tests may assume is older than some of what it describes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

Schema = dict[str, Any]

FORBIDDEN = (
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "nullable",
    "uniqueItems",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "const",
    "propertyNames",
)
ROOT = (".apiVersion", ".kind", ".metadata")


@dataclass(frozen=True)
class Node:
    """A schema inside a CRD; `times` is how often it can occur in one object, `lists` the lists it is in."""

    path: str
    schema: Schema
    times: int
    lists: tuple[Schema, ...]


def walk(crd: Schema) -> Iterator[Node]:
    """Every schema of the CRD's one version, root first."""
    (version,) = crd["spec"]["versions"]
    yield from _walk(Node("", version["schema"]["openAPIV3Schema"], 1, ()))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    schema = node.schema
    for name, child in schema.get("properties", {}).items():
        yield from _walk(Node(f"{node.path}.{name}", child, node.times, node.lists))
    if "items" in schema:
        times = node.times * schema.get("maxItems", 1_000_000)
        yield from _walk(Node(f"{node.path}[]", schema["items"], times, (*node.lists, schema)))
    if "additionalProperties" in schema:
        times = node.times * schema.get("maxProperties", 1_000_000)
        yield from _walk(Node(f"{node.path}{{}}", schema["additionalProperties"], times, (*node.lists, schema)))


def violations(crd: Schema) -> list[str]:
    """What Kubernetes, or this project's own rules for schemas, say against the CRD."""
    return [f"{node.path or 'root'}: {what}" for node in walk(crd) for what in _node_violations(node)]


def _node_violations(node: Node) -> Iterator[str]:
    schema = node.schema
    kind = schema.get("type")
    yield from (f"{word} is not structural" for word in FORBIDDEN if word in schema)
    if node.path == ".metadata":
        if schema != {"type": "object"}:
            yield "metadata may restrict nothing but its name"
        return
    if "description" not in schema and not node.path.endswith(("[]", "{}")):
        yield "has no description for kubectl explain"
    match kind:
        case "object":
            yield from _object_violations(schema)
        case "array":
            yield from _array_violations(schema)
        case "string":
            bounded = "maxLength" in schema or "enum" in schema or schema.get("format") == "date-time"
            if not bounded and node.path not in ROOT:
                yield "the string has no bound"
        case "integer" | "number":
            if "minimum" not in schema or ("maximum" not in schema and node.path.startswith(".spec")):
                yield "the number has no bounds"
        case "boolean":
            pass
        case _:
            yield f"type {kind} is not structural"
    if "pattern" in schema:
        re2.compile(schema["pattern"])
    if "default" in schema:
        yield from _default_violations(schema)
    yield from _rule_violations(node)


def _object_violations(schema: Schema) -> Iterator[str]:
    if ("properties" in schema) == ("additionalProperties" in schema):
        yield "needs either properties or additionalProperties"
    if "additionalProperties" in schema and "maxProperties" not in schema:
        yield "the map has no bound"
    yield from (
        f"requires {name}, which it does not have"
        for name in schema.get("required", ())
        if name not in schema.get("properties", {})
    )


def _array_violations(schema: Schema) -> Iterator[str]:
    items = schema["items"]
    if "maxItems" not in schema:
        yield "the list has no bound"
    match schema.get("x-kubernetes-list-type"):
        case "atomic":
            pass
        case "set":
            if items["type"] in ("object", "array"):
                yield "a set holds scalars only"
        case "map":
            for key in schema["x-kubernetes-list-map-keys"]:
                if key not in items.get("required", ()):
                    yield f"the key {key} is not required in the items"
        case other:
            yield f"list type {other} is none"


def _default_violations(schema: Schema) -> Iterator[str]:
    default = schema["default"]
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
    if schema["type"] not in types or not isinstance(default, types[schema["type"]]):
        yield f"the default {default!r} is not of type {schema['type']}"
    elif "enum" in schema and default not in schema["enum"]:
        yield f"the default {default!r} is not in the enum"
    elif "minimum" in schema and not schema["minimum"] <= default <= schema.get("maximum", default):
        yield f"the default {default!r} is out of bounds"


def _rule_violations(node: Node) -> Iterator[str]:
    for entry in node.schema.get("x-kubernetes-validations", ()):
        rule, message, field = entry["rule"], entry["message"], entry.get("fieldPath")
        if not message or "\n" in message or len(message) > 2048:
            yield f"message of {rule} must be one line"
        if field is not None and field.removeprefix(".") not in node.schema["properties"]:
            yield f"fieldPath {field} of {rule} is no field"
        if "oldSelf" in rule and any(item.get("x-kubernetes-list-type") in ("atomic", "set") for item in node.lists):
            yield f"{rule} compares with an old item that cannot be found"
        if cost(node, rule) > 1_000_000:
            yield f"{rule} costs about {cost(node, rule)}, a tenth of what Kubernetes allows is enough"


def cost(node: Node, rule: str) -> int:
    """A rough upper bound of the API server's estimate.

    It counts a tenth for each character that is gone through, and for a regular expression a quarter of its length
    times that (cel-go's StringTraversalCostFactor and RegexStringLengthCostFactor; the rule's length stands for it).
    """
    read = sum(_size(child) for name, child in node.schema.get("properties", {}).items() if f"self.{name}" in rule)
    passes = 0.25 * len(rule) if "matches(" in rule else 2
    return int(node.times * (100 + 0.1 * read * passes))


def _size(schema: Schema) -> int:
    match schema["type"]:
        case "string":
            return int(schema.get("maxLength", 64))
        case "array":
            return int(schema["maxItems"])
        case _:
            return 1
