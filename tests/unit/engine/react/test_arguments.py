"""The parameter cascade row by row, and the types a tool's schema asks for."""

from typing import Any

import pytest

from for_each import for_each
from tarsy.engine.strategies.react import Kind, parse_react
from tarsy.llm import ToolDefinition

SCHEMA = {
    "type": "object",
    "properties": {
        "version": {"type": "string"},
        "labelSelector": {"type": "string"},
        "namespace": {"type": ["string", "null"]},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "previous": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
        "ports": {"type": "array", "items": {"type": "integer"}},
        "filter": {"type": "object", "properties": {"code": {"type": "string"}, "depth": {"$ref": "#/$defs/depth"}}},
        "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "mode": {"enum": ["1", "2"]},
    },
    "$defs": {"depth": {"type": "integer"}},
}
TOOL = ToolDefinition("k8s.get", "", SCHEMA)


def read(text: str, *tools: ToolDefinition) -> dict[str, Any]:
    parsed = parse_react(f"Action: k8s.get\nAction Input: {text}", tools)
    assert parsed.kind is Kind.TOOL_CALL
    return parsed.arguments


@for_each(
    ("text", "arguments"),
    [
        pytest.param("", {}, id="1: empty"),
        pytest.param("  \n ", {}, id="1: blank"),
        pytest.param("{}", {}, id="2: empty object"),
        pytest.param('{"a": {"b": [1, "2", null]}, "c": 1.5}', {"a": {"b": [1, "2", None]}, "c": 1.5}, id="2: object"),
        pytest.param('{\n  "a": "x",\n  "b": true\n}', {"a": "x", "b": True}, id="2: several lines"),
        pytest.param("[1, 2]", {"input": [1, 2]}, id="2: list"),
        pytest.param('"text"', {"input": "text"}, id="2: string"),
        pytest.param("42", {"input": 42}, id="2: number"),
        pytest.param("4.5", {"input": 4.5}, id="2: float"),
        pytest.param("true", {"input": True}, id="2: bool"),
        pytest.param("null", {"input": None}, id="2: null"),
        pytest.param("\npods:\n  - a\n  - b\nn: 1", {"pods": ["a", "b"], "n": 1}, id="3: YAML list"),
        pytest.param("\nf:\n  a: x\n  b: true", {"f": {"a": "x", "b": True}}, id="3: YAML nested"),
        pytest.param("names: [a, b]\nn: null", {"names": ["a", "b"], "n": None}, id="3: YAML flow"),
        pytest.param("\na:\n  - x: 1\n    y: z", {"a": [{"x": 1, "y": "z"}]}, id="3: YAML objects in a list"),
        pytest.param("names: [a, b", {"names": "[a, b"}, id="3: broken YAML goes on to pairs"),
        pytest.param("a: x, b: y", {"a": "x", "b": "y"}, id="4: colons"),
        pytest.param("a=x, b=y", {"a": "x", "b": "y"}, id="4: equals signs"),
        pytest.param("a=x,b=y", {"a": "x", "b": "y"}, id="4: no space"),
        pytest.param("a: x\nb: y", {"a": "x", "b": "y"}, id="4: lines"),
        pytest.param("a: x, b=y\nc: z", {"a": "x", "b": "y", "c": "z"}, id="4: mixed"),
        pytest.param("a:", {"a": ""}, id="4: empty stays empty"),
        pytest.param('a="x, y", b=2', {"a": "x, y", "b": 2}, id="4: quoted"),
        pytest.param('a={"b": 1}, c=[1, 2]', {"a": {"b": 1}, "c": [1, 2]}, id="4: collections"),
        pytest.param("- a: x\n- b: y", {"a": "x", "b": "y"}, id="4: a list of pairs"),
        pytest.param("just text", {"input": "just text"}, id="5: raw"),
        pytest.param("https://example.com/a?b=c", {"input": "https://example.com/a?b=c"}, id="5: URL"),
        pytest.param(
            "a: TRUE, b: False, c: None, d: null, e: 7, f: -1.5, g: x",
            {"a": True, "b": False, "c": None, "d": None, "e": 7, "f": -1.5, "g": "x"},
            id="coercion",
        ),
        pytest.param("previous: true", {"previous": True}, id="coercion: the bug of the original"),
    ],
)
def test_the_cascade_without_a_schema(text: str, arguments: dict[str, Any]) -> None:
    assert read(text) == arguments
    assert [type(value) for value in read(text).values()] == [type(value) for value in arguments.values()]


@for_each(
    "text",
    [
        '```json\n{"a": "x", "b": 1}\n```',
        '```\n{"a": "x", "b": 1}\n```\n',
        '\n```json\n{"a": "x", "b": 1}\n```\nNow I wait.',
        '```json {"a": "x", "b": 1} ```',
        '`{"a": "x", "b": 1}`',
        "```yaml\na: x\nb: 1\n```",
        '{"a": "x", "b": 1,}',
        "{'a': 'x', 'b': 1}",
        '{a: "x", b: 1}',
        "{“a”: “x”, “b”: 1}",
        '{"a": "x" // a comment\n, "b": 1}',
        '{"a": "x"\n "b": 1}',
        '{"a": "x", "b": 1} and then I will see.',
        '{"a": "x", "b": 1}\n\nI expect a list.',
        '{"a": "x", "b": 1}\n{"c": 2}',
        '"{\\"a\\": \\"x\\", \\"b\\": 1}"',
        'Here it is:\n```json\n{"a": "x", "b": 1}\n```',
    ],
)
def test_json_may_be_fenced_relaxed_or_followed_by_prose(text: str) -> None:
    assert read(text) == {"a": "x", "b": 1}


def test_relaxed_json_keeps_constants_escapes_and_lists() -> None:
    text = r"{'t': True, 'n': None, 'q': 'it\'s', 'l': [1, 'b',], 'd': {'x': 'a\nb'},}"

    assert read(text) == {"t": True, "n": None, "q": "it's", "l": [1, "b"], "d": {"x": "a\nb"}}


@pytest.mark.parametrize("text", ['{"a": "x", "b": "y', '{"a": "x"', '{"a": "x",', "{'a': ['x'", '{"a": tru'])
def test_json_that_was_cut_is_not_sent_as_if_it_were_whole(text: str) -> None:
    assert read(text) == {"input": text}


@for_each(
    ("text", "arguments"),
    [
        ("version: 1.10", {"version": "1.10"}),
        ("version=007, limit=5", {"version": "007", "limit": 5}),
        ("version: true", {"version": "true"}),
        ("version: '1.10'", {"version": "1.10"}),
        ('{"version": 1.10, "limit": "3"}', {"version": "1.10", "limit": 3}),
        ('{"version": true, "previous": "false"}', {"version": "true", "previous": False}),
        ("{'version': 1.10,}", {"version": "1.10"}),
        ("\nversion: 1.10\nnames:\n  - 1\n  - 2.0", {"version": "1.10", "names": ["1", "2.0"]}),
        ("labelSelector: app=nginx,env=prod", {"labelSelector": "app=nginx,env=prod"}),
        ("labelSelector=app=nginx,env=prod", {"labelSelector": "app=nginx,env=prod"}),
        (
            "labelSelector: app=nginx,env=prod, namespace: default",
            {"labelSelector": "app=nginx,env=prod", "namespace": "default"},
        ),
        ("labelSelector: app=a,namespace=b\nlimit: 2", {"labelSelector": "app=a,namespace=b", "limit": 2}),
        ("since: 12:30:45, limit: 1", {"since": "12:30:45", "limit": 1}),
        ("namespace: null, since: none", {"namespace": None, "since": None}),
        ("names: a, b,c\nports: 80,443", {"names": ["a", "b", "c"], "ports": [80, 443]}),
        ('names: ["a", 1], ports: ["80"]', {"names": ["a", "1"], "ports": [80]}),
        ("previous: yes, ratio: 3, limit: 3.0", {"previous": True, "ratio": 3, "limit": 3}),
        ('{"filter": {"code": 404, "depth": "2"}}', {"filter": {"code": "404", "depth": 2}}),
        ("mode: 1", {"mode": "1"}),
        ("Label_Selector: a, LIMIT: 1", {"labelSelector": "a", "limit": 1}),
        ("limit: many, previous: perhaps", {"limit": "many", "previous": "perhaps"}),
        ("namespace: default\n\nI will wait for the result.", {"namespace": "default"}),
        ("namespace: default, other: 5", {"namespace": "default", "other": 5}),
    ],
)
def test_types_are_those_of_the_schema(text: str, arguments: dict[str, Any]) -> None:
    found = read(text, TOOL)

    assert found == arguments
    assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in arguments.items()}


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ('k8s.get(namespace="x", limit=3)', {"namespace": "x", "limit": 3}),
        ("k8s.get(namespace='x',\n  version=1.10\n)", {"namespace": "x", "version": "1.10"}),
        ('k8s.get({"namespace": "x"})', {"namespace": "x"}),
        ("k8s.get()", {}),
        ('k8s__get(namespace="x")', {"namespace": "x"}),
        ('`k8s.get(namespace="x")`', {"namespace": "x"}),
        ('k8s.get {"namespace": "x"}', {"namespace": "x"}),
        ('k8s.get\n{"namespace": "x"}', {"namespace": "x"}),
        (
            'k8s.get(names=["a", "b"], labelSelector="app=x,env=y")',
            {"names": ["a", "b"], "labelSelector": "app=x,env=y"},
        ),
    ],
)
def test_a_call_may_bring_its_arguments(action: str, arguments: dict[str, Any]) -> None:
    parsed = parse_react(f"Thought: t\nAction: {action}", [TOOL])

    assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.get", arguments)


def test_an_action_input_beats_the_arguments_of_the_call() -> None:
    assert parse_react('Action: k8s.get(limit=1)\nAction Input: {"limit": 2}', [TOOL]).arguments == {"limit": 2}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": None},
        {"properties": {"a": 3}},
        {"type": 5, "properties": {"a": {"type": [1, None]}}},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"anyOf": [{"$ref": "#"}] * 50},
        {"properties": {"a": {"$ref": "https://elsewhere.example/schema"}}},
        {"properties": {"a": {"enum": [[], {}]}}},
    ],
)
def test_a_schema_that_makes_no_sense_says_nothing(schema: dict[str, Any]) -> None:
    assert read("a: 1", ToolDefinition("k8s.get", "", schema)) == {"a": 1}
