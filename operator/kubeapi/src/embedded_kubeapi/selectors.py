"""Parses label and field selectors of lists and watches into predicates.

`selectableFields` of CRDs: "CustomResourceDefinition field selectors" on kubernetes.io/docs/tasks/extend-kubernetes/
custom-resources/custom-resource-definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from embedded_kubeapi.errors import ApiError, bad_request
from embedded_kubeapi.jsonpath import parse
from embedded_kubeapi.objects import Obj, is_label_value, is_qualified_name
from embedded_kubeapi.resource import Resource

Predicate = Callable[[Obj], bool]
Labels = Mapping[str, str]
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_COMPARE = re.compile(r"([^\s!=<>]+)\s*(==|=|!=|>|<)\s*([^\s!=<>]*)")
_EVERYWHERE = ("metadata.name", "metadata.namespace")


def label_selector(text: str) -> Callable[[Labels], bool]:
    """A predicate on labels for `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

    Raises:
        ApiError: 400, the text is no label selector.
    """
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)] if text.strip() else []
    tests = [_requirement(part, text) for part in parts]
    return lambda labels: all(test(labels) for test in tests)


def _requirement(part: str, text: str) -> Callable[[Labels], bool]:
    if match := _SET.fullmatch(part):
        key, op, values = match[1], match[2], frozenset(value.strip() for value in match[3].split(","))
    elif match := _COMPARE.fullmatch(part):
        key, op, values = match[1], match[2], frozenset((match[3],))
    else:
        key = part.removeprefix("!").strip()
        op, values = ("absent" if part.startswith("!") else "exists"), frozenset()
    if not is_qualified_name(key) or not all(is_label_value(value) for value in values):
        raise bad_request(f"unable to parse requirement: <nil>: Invalid value: {text!r}: not a label selector")
    match op:
        case "in" | "=" | "==":
            return lambda labels: labels.get(key) in values
        case "notin" | "!=":
            return lambda labels: labels.get(key) not in values
        case ">" | "<":
            bound = _integer(next(iter(values)), text)
            return lambda labels: _beyond(labels.get(key), op, bound)
        case "exists":
            return lambda labels: key in labels
        case _:
            return lambda labels: key not in labels


def _integer(value: str, text: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise bad_request(f"unable to parse requirement: {text!r}: for > and < the value must be an integer") from None


def _beyond(value: str | None, op: str, bound: int) -> bool:
    if value is None or not re.fullmatch(r"-?\d+", value):
        return False
    return int(value) > bound if op == ">" else int(value) < bound


def field_requirements(text: str) -> list[tuple[str, bool, str]]:
    """The terms of a field selector: field, whether it must equal, value.

    Raises:
        ApiError: 400, the text is no field selector.
    """
    found = []
    for term in re.split(r"(?<!\\),", text):
        if not term:
            continue
        match = re.fullmatch(r"([^=!]+)(==|=|!=)((?:[^=!,\\]|\\.)*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        found.append((match[1], match[2] != "!=", re.sub(r"\\(.)", r"\1", match[3])))
    return found


def field_selector(text: str, resource: Resource) -> Predicate:
    """A predicate on objects of a kind.

    Raises:
        ApiError: 400, not a selector, or a field that this kind cannot be selected by.
    """
    tests = []
    for name, equal, value in field_requirements(text):
        if name not in _EVERYWHERE and name not in resource.selectable:
            raise _unknown_field(resource, name)
        tests.append((parse("." + name), equal, value))
    return lambda obj: all((_text(path.find(obj)) == value) is equal for path, equal, value in tests)


def _unknown_field(resource: Resource, name: str) -> ApiError:
    if resource.custom or resource.selectable:
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _text(found: list[Any]) -> str:
    value = found[0] if found else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def matches_label_selector(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Reports whether labels match a LabelSelector; None matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], term.get("values") or ()
        held = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not held.get(term["operator"], False):
            return False
    return True


def predicate(resource: Resource, labels: str, fields: str, name: str | None = None) -> Predicate:
    """Returns the filter of a list or watch: both selectors, and a name if given.

    Raises:
        ApiError: 400, one of them is no selector.
    """
    by_labels = label_selector(labels) if labels else None
    by_fields = field_selector(fields, resource) if fields else None

    def shows(obj: Obj) -> bool:
        meta = obj["metadata"]
        return (
            (name is None or meta["name"] == name)
            and (by_labels is None or by_labels(meta.get("labels") or {}))
            and (by_fields is None or by_fields(obj))
        )

    return shows
