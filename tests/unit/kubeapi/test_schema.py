"""Tests structural schemas: unknown fields, defaults, the real API's error messages, rules."""

from typing import Any

import pytest

from embedded_kubeapi.schema.model import Schema
from embedded_kubeapi.schema.rules import RuleError

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": True}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "parts": {
            "type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "since": {"type": "string", "format": "date-time"},
    },
}  # fmt: skip
SCHEMA = Schema({"type": "object", "properties": {"spec": SPEC}})


def obj(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec}


def test_unknown_fields_are_dropped_and_named() -> None:
    sent = obj(size=1, odd=1, parts=[{"name": "a", "odd": 1}], free={"any": {"thing": 1}})
    sent["metadata"]["odd"] = "x"
    kept, unknown = SCHEMA.clean({**sent, "top": 1})
    assert sorted(unknown) == ["metadata.odd", "spec.odd", "spec.parts[0].odd", "top"]
    assert kept["spec"]["parts"] == [{"name": "a"}]
    assert kept["spec"]["free"] == {"any": {"thing": 1}}


def test_defaults_are_filled_in_from_the_outside() -> None:
    kept, _ = SCHEMA.clean(obj(size=1, color=None, maybe=None))
    assert kept["spec"] == {"size": 1, "color": "red", "nested": {"on": True}, "maybe": None}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.size: Required value"),
        ({"size": "3"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": True}, 'spec.size: Invalid value: "boolean": spec.size in body must be of type integer: "boolean"'),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 1, "color": "no"}, 'spec.color: Unsupported value: "no": supported values: "red", "blue"'),
        ({"size": 1, "name": "a"}, 'spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'),
        ({"size": 1, "name": "abcde"}, "spec.name: Too long: may not be more than 4 bytes"),
        ({"size": 1, "name": "AB"}, "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"),
        ({"size": 1, "parts": [{"name": "a"}] * 2}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
        ({"size": 1, "parts": [{"name": c} for c in "abcd"]}, "spec.parts: Too many: 4: must have at most 3 items"),
        ({"size": 1, "labels": {"a": 1}},
         'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'),
        ({"size": 1, "since": "today"},
         'spec.since: Invalid value: "today": spec.since in body must be of type date-time: "today"'),
    ],
)  # fmt: skip
def test_errors_are_worded_as_the_real_api_words_them(spec: dict[str, Any], message: str) -> None:
    assert [str(error) for error in SCHEMA.check(obj(**spec), None)] == [message]


def test_int_or_string_and_null_where_allowed() -> None:
    assert not SCHEMA.check(obj(size=1, port="http", maybe=None), None)
    assert not SCHEMA.check(obj(size=1, port=80), None)
    assert SCHEMA.check(obj(size=1, port=True), None)
    assert SCHEMA.check(obj(size=1, name=None), None)


def ruled(*rules: dict[str, str]) -> Schema:
    return Schema({"type": "object", "properties": {"spec": {**SPEC, "x-kubernetes-validations": list(rules)}}})


def test_rule_says_what_where_and_why() -> None:
    where = {"fieldPath": ".size", "reason": "FieldValueForbidden"}
    schema = ruled({"rule": "self.size < 5", "messageExpression": "'too big: ' + string(self.size)", **where})
    (error,) = schema.check(obj(size=7), None)
    assert (error.reason, str(error)) == ("FieldValueForbidden", "spec.size: Forbidden: too big: 7")
    (plain,) = ruled({"rule": "self.size < 5"}).check(obj(size=7), None)
    assert str(plain) == "spec: Invalid value: failed rule: self.size < 5"


def test_rule_with_old_self_judges_changes_only() -> None:
    schema = ruled({"rule": "self.size >= oldSelf.size", "message": "may only grow"})
    assert not schema.check(obj(size=1), None)
    assert not schema.check(obj(size=3), obj(size=2))
    assert schema.check(obj(size=1), obj(size=2))


def test_unchanged_value_is_not_judged_again() -> None:
    schema = ruled({"rule": "self.size < 5"})
    assert not schema.check(obj(size=7), obj(size=7))


def test_rules_wait_until_types_are_right() -> None:
    errors = ruled({"rule": "self.size < 5"}).check(obj(size="a"), None)
    assert [error.reason for error in errors] == ["FieldValueTypeInvalid", "FieldValueInvalid"]
    assert "some validation rules were not checked" in str(errors[1])


def test_rule_that_cannot_be_compiled_is_refused_with_its_place() -> None:
    with pytest.raises(RuleError) as refused:
        ruled({"rule": "self.size <"})
    assert refused.value.path == ".properties[spec].x-kubernetes-validations[0]"
