"""Compiles `x-kubernetes-validations` into a tree that contains only nodes with rules at or below them.

A value that did not change is judged again only by rules with `oldSelf`: the others cost nothing when a status is
written, and an object that a newer CRD would refuse can be updated elsewhere. "Validation rules" and "Validation
ratcheting" on kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from embedded_kubeapi.cel import CelCostError, CelError, CelSyntaxError, Program, compile_program
from embedded_kubeapi.cel.budget import PER_OBJECT, CostBudget
from embedded_kubeapi.cel.library import to_duration, to_timestamp
from embedded_kubeapi.cel.operators import Optional
from embedded_kubeapi.errors import FieldError, broken_rule, duplicate, not_permitted, required

_CONVERSIONS = {"date-time": to_timestamp, "date": to_timestamp, "duration": to_duration}


class RuleError(ValueError):
    """A rule that cannot be compiled; `path` is its place in the schema, such as `properties[spec]`."""

    def __init__(self, path: str, rule: Mapping[str, Any], why: str) -> None:
        super().__init__(why)
        self.path = path
        self.rule = rule
        self.why = why


@dataclass(frozen=True)
class Rule:
    """One compiled rule."""

    program: Program
    message: str
    message_program: Program | None
    reason: str
    field_path: str
    transition: bool
    optional_old: bool


@dataclass(frozen=True)
class Node:
    """The rules of one place in a schema, and of the places below it."""

    schema: dict[str, Any]
    rules: tuple[Rule, ...]
    properties: dict[str, Node]
    items: Node | None
    values: Node | None
    list_keys: tuple[str, ...]
    formats: bool
    transitions: bool


def compile_rules(schema: dict[str, Any], path: str = "") -> Node | None:
    """The tree of a schema's rules; None when it has none.

    Raises:
        RuleError: one is no valid expression.
    """
    rules = tuple(
        _compile(rule, f"{path}.x-kubernetes-validations[{at}]")
        for at, rule in enumerate(schema.get("x-kubernetes-validations") or ())
    )
    properties = {}
    for name, part in (schema.get("properties") or {}).items():
        if node := compile_rules(part, f"{path}.properties[{name}]"):
            properties[name] = node
    items = compile_rules(schema["items"], f"{path}.items") if isinstance(schema.get("items"), dict) else None
    additional = schema.get("additionalProperties")
    values = compile_rules(additional, f"{path}.additionalProperties") if isinstance(additional, dict) else None
    if not (rules or properties or items or values):
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if _list_type(schema) == "map" else ()
    below = [*properties.values(), *(node for node in (items, values) if node)]
    transitions = any(rule.transition for rule in rules) or any(node.transitions for node in below)
    return Node(schema, rules, properties, items, values, keys, bool(rules) and _has_formats(schema), transitions)


def _list_type(schema: dict[str, Any]) -> str:
    return str(schema.get("x-kubernetes-list-type") or "atomic")


def _program(text: str) -> Program:
    return compile_program(text, ("self", "oldSelf"))


def _compile(rule: dict[str, Any], path: str) -> Rule:
    try:
        program = _program(rule.get("rule") or "")
        text = rule.get("messageExpression")
        message_program = _program(text) if text else None
    except CelSyntaxError as error:
        raise RuleError(path, rule, str(error)) from None
    return Rule(
        program,
        rule.get("message") or f"failed rule: {program.text}",
        message_program,
        rule.get("reason") or "FieldValueInvalid",
        rule.get("fieldPath") or "",
        "oldSelf" in program.names,
        bool(rule.get("optionalOldSelf")),
    )


def check_rules(node: Node, value: Any, old: Any) -> list[FieldError]:
    """Returns the violations of a value that replaces `old` (None for a new value)."""
    errors: list[FieldError] = []
    with suppress(CelCostError):  # the rule at which it ended is among the errors
        _walk(node, value, old, "", errors, CostBudget(PER_OBJECT))
    return errors


def _walk(node: Node, value: Any, old: Any, path: str, errors: list[FieldError], budget: CostBudget) -> None:
    unchanged = value == old
    if value is None or (unchanged and not node.transitions):
        return
    if node.rules:
        seen = _convert(node.schema, value) if node.formats else value
        before = _convert(node.schema, old) if node.formats else old
        for rule in node.rules if not unchanged else [rule for rule in node.rules if rule.transition]:
            _apply(rule, seen, before, path, str(node.schema.get("type", "")), errors, budget)
    if isinstance(value, dict):
        old = old if isinstance(old, dict) else {}
        for name, below in node.properties.items():
            if name in value:
                _walk(below, value[name], old.get(name), f"{path}.{name}" if path else name, errors, budget)
        if node.values is not None:
            for name, item in value.items():
                _walk(node.values, item, old.get(name), f"{path}[{name}]", errors, budget)
    elif isinstance(value, list) and node.items is not None:
        olds = {_key(node, item): item for item in old if isinstance(item, dict)} if node.list_keys and old else {}
        for at, item in enumerate(value):
            before = olds.get(_key(node, item)) if node.list_keys and isinstance(item, dict) else None
            _walk(node.items, item, before, f"{path}[{at}]", errors, budget)


def _key(node: Node, item: dict[str, Any]) -> tuple[str, ...]:
    return tuple(repr(item.get(name)) for name in node.list_keys)


def _apply(
    rule: Rule, value: Any, old: Any, path: str, kind: str, errors: list[FieldError], budget: CostBudget
) -> None:
    scope: dict[str, Any] = {"self": value}
    if rule.transition:
        if rule.optional_old:
            scope["oldSelf"] = Optional(old is not None, old)
        elif old is None:
            return
        else:
            scope["oldSelf"] = old
    at = path + rule.field_path if path else rule.field_path.removeprefix(".")
    try:
        if rule.program.evaluate(scope, budget.part()) is True:
            return
    except CelCostError as error:
        why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: "
        errors.append(broken_rule(at, why + rule.message))
        raise
    except CelError as error:
        errors.append(broken_rule(at, f"{error} evaluating rule: {rule.message}"))
        return
    message = _message(rule, scope)
    match rule.reason:
        case "FieldValueForbidden":
            errors.append(not_permitted(at, message))
        case "FieldValueRequired":
            errors.append(required(at, message))
        case "FieldValueDuplicate":
            errors.append(duplicate(at, kind))
        case _:
            errors.append(broken_rule(at or "<nil>", message))


def _message(rule: Rule, scope: dict[str, Any]) -> str:
    if rule.message_program is not None:
        try:
            message = rule.message_program.evaluate(scope)
        except (CelError, CelCostError, KeyError):
            return rule.message
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return rule.message


def _has_formats(schema: dict[str, Any]) -> bool:
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return schema.get("format") in _CONVERSIONS or any(_has_formats(part) for part in parts if isinstance(part, dict))


def _convert(schema: dict[str, Any], value: Any) -> Any:
    if isinstance(value, str) and (convert := _CONVERSIONS.get(schema.get("format", ""))):
        try:
            return convert(value)
        except CelError:
            return value
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_convert(schema["items"], item) for item in value]
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        other = additional if isinstance(additional, dict) else {}
        return {name: _convert(properties.get(name, other), item) for name, item in value.items()}
    return value
