"""Finds rules that use a field their schema does not define; Kubernetes refuses them when the CRD is written.

A type checker in full would be larger than the evaluator. This one follows `self` and `oldSelf` through fields, items
and the variables of macros, and is silent wherever it does not know the type: what it finds is wrong in a cluster too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embedded_kubeapi.cel.evaluator import COMPREHENSIONS, unescaped
from embedded_kubeapi.cel.parser import Call, Ident, Index, ListOf, Literal, MapOf, Node, Select, parse

Known = dict[str, Any] | None  # a schema, or None where the type is not known
Scope = Mapping[str, Known]
_META: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"},
                                                         "generateName": {"type": "string"}}}  # fmt: skip
_TEXT: dict[str, Any] = {"type": "string"}


def undefined_fields(schema: dict[str, Any], path: str = "", resource: bool = True) -> Iterator[tuple[str, str, str]]:
    """The rules at fault: path of the rule in the schema, its text, and the field that is not there.

    Args:
        schema: one whose rules compile.
        resource: it describes an object of its own, with apiVersion, kind and metadata.
    """
    if resource or schema.get("x-kubernetes-embedded-resource"):
        common = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
        schema = {**schema, "properties": {**(schema.get("properties") or {}), **common}}
    for at, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        old = None if rule.get("optionalOldSelf") else schema
        for field, text in (("rule", rule.get("rule")), ("messageExpression", rule.get("messageExpression"))):
            missing: list[str] = []
            if text:
                _type(parse(text), {"self": schema, "oldSelf": old}, missing)
            for name in missing:
                yield f"{path}.x-kubernetes-validations[{at}].{field}", str(text), name
    for name, part in (schema.get("properties") or {}).items():
        yield from undefined_fields(part, f"{path}.properties[{name}]", resource=False)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from undefined_fields(schema[word], f"{path}.{word}", resource=False)


def _type(node: Node, scope: Scope, missing: list[str]) -> Known:
    match node:
        case Ident(name):
            return scope.get(name)
        case Select(operand, field, optional):
            found = _field(_type(operand, scope, missing), unescaped(field), missing)
            return None if optional else found
        case Index(operand, index, optional):
            _type(index, scope, missing)
            found = _inside(_type(operand, scope, missing))
            return None if optional else found
        case ListOf(items):
            for item in items:
                _type(item, scope, missing)
        case MapOf(entries):
            for key, value in entries:
                _type(key, scope, missing)
                _type(value, scope, missing)
        case Call():
            return _call(node, scope, missing)
        case Literal():
            pass
    return None


def _field(operand: Known, field: str, missing: list[str]) -> Known:
    if operand is None or operand.get("type") != "object":
        return None
    properties = operand.get("properties")
    if not properties:
        return _inside(operand)
    if field not in properties and not operand.get("x-kubernetes-preserve-unknown-fields"):
        missing.append(field)
    found: Known = properties.get(field)
    return found


def _inside(operand: Known) -> Known:
    if operand is None:
        return None
    inside = operand.get("items") if operand.get("type") == "array" else operand.get("additionalProperties")
    return inside if isinstance(inside, dict) else None


def _call(node: Call, scope: Scope, missing: list[str]) -> Known:
    target = None if node.target is None else _type(node.target, scope, missing)
    arguments = list(node.arguments)
    if node.target is None or node.function not in COMPREHENSIONS or not isinstance(arguments[0], Ident):
        for argument in arguments:
            _type(argument, scope, missing)
        return None
    names = [arguments.pop(0).name]  # type: ignore[union-attr]
    if len(arguments) > 1 and isinstance(arguments[0], Ident) and node.function != "map":
        names.append(arguments.pop(0).name)  # type: ignore[union-attr]
    is_list = target is not None and target.get("type") == "array"
    item = _inside(target)
    bound: dict[str, Known] = {names[0]: item if is_list and len(names) == 1 else None}
    if len(names) > 1:
        bound[names[1]] = item
    for argument in arguments:
        _type(argument, {**scope, **bound}, missing)
    return target if node.function == "filter" else None
