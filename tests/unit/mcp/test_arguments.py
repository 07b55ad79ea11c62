"""The argument cascade: which form wins, what is coerced, and that no text is too strange or too long."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.mcp.arguments.cascade import is_sendable, parse_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@for_each(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n ", {}),
        ('{"a": 1, "b": {"c": [true, null]}}', {"a": 1, "b": {"c": [True, None]}}),
        ("[1, 2]", {"input": [1, 2]}),
        ('"pods"', {"input": "pods"}),
        ("7", {"input": 7}),
        ("true", {"input": True}),
        ("null", {"input": None}),
        ("items:\n- a\n- 2", {"items": ["a", 2]}),
        ("filter:\n  app: web\n  tier: 'db'\nlimit: 5", {"filter": {"app": "web", "tier": "db"}, "limit": 5}),
        ("names: [a, b]", {"names": ["a", "b"]}),
        ("at:\n- 12:30:45\n- 2026-01-02\n- no", {"at": ["12:30:45", "2026-01-02", "no"]}),
        ("namespace: prod, previous: true", {"namespace": "prod", "previous": True}),
        ("namespace=prod\nlimit=10", {"namespace": "prod", "limit": 10}),
        ("a: TRUE, b: None, c: 1.5, d: -3, e: , f: 'x'", {"a": True, "b": None, "c": 1.5, "d": -3, "e": "", "f": "x"}),
        ("id: 007, n: 99999999999999999999, big: 1e999", {"id": "007", "n": "99999999999999999999", "big": "1e999"}),
        ("url: http://host/path?a=b", {"url": "http://host/path?a=b"}),
        ("query: sum by (pod, ns) (rate(x[5m]))", {"query": "sum by (pod, ns) (rate(x[5m]))"}),
        ("show me the pods", {"input": "show me the pods"}),
        ("all pods, please", {"input": "all pods, please"}),
        ("{broken", {"input": "{broken"}),
        ('{"a": NaN}', {"input": '{"a": NaN}'}),
        ('{"a": 1}{"a": 2}', {"input": '{"a": 1}{"a": 2}'}),
        ("{'a': 1, 'b': [x,],}", {"a": 1, "b": ["x"]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
    ],
)
def test_the_first_form_that_fits_wins(text: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(text, {}) == arguments


@given(JSON)
def test_json_is_taken_as_it_is(value: Any) -> None:
    assert parse_arguments(json.dumps(value), {}) == (value if isinstance(value, dict) else {"input": value})


@given(st.text(st.characters(codec=None) | st.sampled_from("\n\t :=-,[]{}\"'&*!|>#%@`?.0123456789eE+ truefalsn")))
def test_no_text_is_an_error_and_every_result_says_whether_it_can_be_sent(text: str) -> None:
    arguments = parse_arguments(text, {})
    assert all(isinstance(key, str) for key in arguments)
    if is_sendable(arguments):
        assert json.loads(json.dumps(arguments, ensure_ascii=False).encode()) == arguments


@pytest.mark.parametrize(
    "unit",
    ["[", "{", '{"a":', "a: ", "a:\n  ", "- ", "\n- ", "\n", ",", "a=b,", "k: [", "9", "x: 9", "\n  x", "'", "!", "? "],
)
def test_the_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        parse_arguments(text, {})
        return time.process_time() - began

    seconds(1000)
    assert seconds(200_000) < 20  # quadratic would be minutes


def test_yaml_aliases_are_not_expanded() -> None:
    laughs = "a: &a [x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
    )
    assert len(json.dumps(parse_arguments(laughs, {}))) < 10 * len(laughs)


def test_half_a_surrogate_cannot_be_sent() -> None:
    assert not is_sendable(parse_arguments('{"a": "\\ud800"}', {}))
    assert is_sendable(parse_arguments('{"a": "\\ud83d\\ude00"}', {}))


def test_json_keeps_its_types_and_any_other_form_gets_those_of_the_schema() -> None:
    schema = {"properties": {"version": {"type": "string"}, "limit": {"type": "integer"}}}
    assert parse_arguments('{"version": 1.10, "limit": "3"}', schema) == {"version": 1.1, "limit": "3"}
    assert parse_arguments("version: 1.10, limit: 3", schema) == {"version": "1.10", "limit": 3}
