"""Tests arguments against untrusted schemas."""

import json
import time
from typing import Any

import pytest

from tarsy.mcp.schema import LARGEST_KEPT, ArgumentSchema, compiled


def faults(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    return ArgumentSchema(schema).faults(arguments)


PODS = {
    "type": "object",
    "properties": {
        "namespace": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["Pod", "Job"]},
        "where": {"$ref": "#/$defs/where"},
    },
    "required": ["namespace"],
    "additionalProperties": False,
    "$defs": {"where": {"type": "object", "properties": {"labels": {"type": "array", "items": {"type": "string"}}}}},
}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "'namespace' is a required property"),
        ({"namespace": 3}, "namespace: 3 is not of type 'string'"),
        ({"namespace": "n", "limit": 0}, "limit: 0 is less than the minimum of 1"),
        ({"namespace": "n", "kind": "Node"}, "kind: 'Node' is not one of ['Pod', 'Job']"),
        ({"namespace": "n", "name": "x"}, "('name' was unexpected)"),
        ({"namespace": "n", "where": {"labels": ["a", 1]}}, "where.labels.1: 1 is not of type 'string'"),
    ],
)
def test_a_fault_says_where_and_what(arguments: dict[str, Any], told: str) -> None:
    (fault,) = faults(PODS, arguments)
    assert told in fault


def test_arguments_that_fit_have_no_faults() -> None:
    assert faults(PODS, {"namespace": "n", "limit": 2, "kind": "Pod", "where": {"labels": ["a"]}}) == []


def test_faults_are_few_and_short() -> None:
    schema = {"properties": {str(n): {"type": "string"} for n in range(50)}}
    found = faults(schema, {str(n): ["x" * 1000] for n in range(50)})
    assert len(found) == 5 and max(map(len, found)) < 400


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/elsewhere.json"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"type": "nonsense"},
        {"type": 5},
        {"properties": []},
        {"required": 7},
        {"properties": {"a": 3}},
        {"properties": {"a": {"minimum": "x"}}},
        {"$id": "::::", "$ref": "x"},
    ],
)
def test_a_schema_that_cannot_be_used_checks_nothing(schema: dict[str, Any]) -> None:
    assert faults(schema, {"a": 1}) == []


def test_a_hostile_schema_takes_no_time() -> None:
    bomb: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    bomb["d60"] = {}
    began = time.process_time()
    assert faults({"$ref": "#/$defs/d0", "$defs": bomb}, {"a": 1}) == []
    assert faults({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}) == []
    assert faults({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}) == []
    assert time.process_time() - began < 20  # a blow-up would be for ever


def test_equal_schemas_are_compiled_once_whoever_sends_them() -> None:
    assert compiled(dict(PODS)) is compiled(json.loads(json.dumps(PODS)))
    other = compiled({**PODS, "required": ["kind"]})
    assert other.faults({"namespace": "n"}) == ["'kind' is a required property"]
    assert compiled(PODS).faults({"namespace": "n"}) == []


@pytest.mark.parametrize(("more", "kept"), [(-1, True), (0, True), (1, False)])
def test_a_compiled_schema_is_kept_up_to_a_size(more: int, kept: bool) -> None:
    empty = {"required": ["n"], "description": ""}
    schema = {**empty, "description": "x" * (LARGEST_KEPT + more - len(json.dumps(empty, separators=(",", ":"))))}
    assert (compiled(schema) is compiled(schema)) is kept
    assert compiled(schema).faults({}) == ["'n' is a required property"]


def test_the_count_of_followed_references_begins_anew_with_each_call_of_a_kept_schema() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/text"}, "$defs": {"text": {"type": "string"}}}
    for _ in range(3):
        assert compiled(schema).faults(["a"] * 300 + [1]) == ["300: 1 is not of type 'string'"]  # type: ignore[arg-type, list-item]
