"""Tests the expression language: values, errors, and agreement with another implementation."""

import re
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml

from embedded_kubeapi.cel import CelError, CelSyntaxError, compile_program
from for_each import for_each

SELF = {"name": "a", "size": 3, "on": True, "tags": ["x", "y"], "items": [{"n": 1}, {"n": 2}], "empty": {}}


def evaluate(text: str, **scope: Any) -> Any:
    scope = {"self": SELF, **scope}
    return compile_program(text, scope).evaluate(scope)


@for_each(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2.0", 3.5),
        ("'a' + \"b\"", "ab"),
        ("r'\\d' == '\\\\d'", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("{'a': 1}.a", 1),
        ("true == 1", False),
        ("1 == 1.0", True),
        ("'x' in self.tags && !('z' in self.tags)", True),
        ("has(self.name) && !has(self.nothing) && has(self.empty)", True),
        ("self.items.map(i, i.n)", [1, 2]),
        ("self.items.map(i, i.n > 1, i.n)", [2]),
        ("self.items.filter(i, i.n > 1)", [{"n": 2}]),
        ("self.items.all(i, i.n > 0) && self.items.exists(i, i.n == 2)", True),
        ("self.items.exists_one(i, i.n == 2)", True),
        ("self.tags.all(i, t, i < 2 && size(t) == 1)", True),
        ("self.nothing == 1 || self.on", True),
        ("self.on || self.nothing == 1", True),
        ("self.nothing == 1 && false", False),
        ("self.size > 2 ? 'big' : 'small'", "big"),
        ("self.?nothing.more.orValue('none')", "none"),
        ("self.?name.hasValue()", True),
        ("self.name.matches('^[a-c]$')", True),
        ("'a,b'.split(',').join('-')", "a-b"),
        ("'Abc'.lowerAscii().startsWith('ab')", True),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("size('héé')", 3),
        ("size(bytes('é'))", 2),
        ("string(1.5) + string(2) + string(true)", "1.52true"),
        ("int('42') + int(1.9)", 43),
        ("duration('1h') > duration('59m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026", True),
        ("quantity('1Gi').isGreaterThan(quantity('1G')) && isQuantity('10m') && !isQuantity('x')", True),
        ("url('https://h:1/p?q=1').getHost() == 'h:1' && isURL('https://h') && !isURL('no')", True),
        ("sets.contains([1, 2], [1]) && [1, 2, 3].isSorted() && [1, 2].sum() == 3", True),
        ("type(self) == map && type('a') == string", True),
    ],
)
def test_expression_has_its_value(text: str, value: Any) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text", ["self.nothing", "1 / 0", "1 + 'a'", "self.tags[5]", "'a' < 1", "self.name.size() > 'b'"]
)
def test_expression_without_a_value_is_an_error(text: str) -> None:
    with pytest.raises(CelError):
        evaluate(text)


@pytest.mark.parametrize("text", ["self.", "1 +", "'open", "unknown == 1", "self.noFunction()", "has(self)", "a ? b"])
def test_what_is_no_expression_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        compile_program(text, ["self"])


def test_escaped_names_reach_their_fields() -> None:
    value = {"a-b": 1, "c.d": 2, "namespace": 3}
    text = "self.a__dash__b + self.c__dot__d + self.__namespace__"
    assert compile_program(text, ["self"]).evaluate({"self": value}) == 6


def rules() -> set[str]:
    """Every rule of this project's CRDs."""
    found: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            found.update(rule["rule"] for rule in node.get("x-kubernetes-validations", ()))
            for part in node.values():
                walk(part)
        elif isinstance(node, list):
            for part in node:
                walk(part)

    for path in (Path(__file__).parents[3] / "crds").glob("*.yaml"):
        walk(yaml.safe_load(path.read_text()))
    return found


CASES: list[tuple[Any, Any]] = [
    ({}, {}),
    ({"alert": {"data": "x"}, "desiredState": "Running"}, {"alert": {"data": "y"}, "desiredState": "Cancelled"}),
    ({"from": "Selector", "selector": {}, "data": "", "inline": "a"}, {"from": "All", "data": "a", "inline": "b"}),
    ({"operator": "In", "values": ["a"], "replicas": 2, "agents": [{"name": "a"}]}, {"operator": "Exists"}),
    ({"metadata": {"name": "default"}, "data": "äöü" * 9, "desiredState": "Concluded"}, {"desiredState": "Running"}),
]


INTO_NOTHING = re.compile(r"has\(self\.(\w+)\[")
"""celpy's has() answers false where what it looks into is missing; there Kubernetes fails, as ours does."""


def test_has_fails_where_what_it_looks_into_is_missing() -> None:
    with pytest.raises(CelError, match="stages"):
        evaluate("has(self.stages[0].kind)", self={})


def test_rules_of_the_project_agree_with_another_implementation() -> None:
    environment = celpy.Environment()
    judged = 0
    for rule in rules():
        ours = compile_program(rule, ["self", "oldSelf"])
        theirs = environment.program(environment.compile(rule))
        into = INTO_NOTHING.search(rule)
        for new, old in CASES:
            if into and into[1] not in new:
                continue
            try:
                expected: Any = bool(
                    theirs.evaluate({"self": celpy.json_to_cel(new), "oldSelf": celpy.json_to_cel(old)})
                )
            except celpy.CELEvalError:
                expected = None
            try:
                found = ours.evaluate({"self": new, "oldSelf": old})
            except CelError:
                found = None
            assert found == expected, (rule, new, old)
            judged += found is not None
    assert judged > 30
