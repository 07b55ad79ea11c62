"""The ladder: each rung, the order of equal calls, and what is never derived."""

import json

import pytest

from for_each import for_each
from tarsy.evals.arguments import singular_kind
from tarsy.evals.cassette import Place
from tarsy.evals.matching import Ladder
from tarsy.record.judging.replay import Rung
from unit.evals.cassettes import call, cassette

LIST = json.dumps(
    {
        "items": [
            {"metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "tier": "front"}}},
            {"metadata": {"name": "db", "namespace": "pay", "labels": {"app": "db"}}},
        ]
    }
)
TABLE = (
    "NAMESPACE   NAME   STATUS    LABELS\n"
    "shop        web    Running   app=web\n"
    "pay         db     Pending   app=db,x=y\n"
)
WORLD = Ladder(
    cassette(
        call("pods_list", LIST),
        call("logs", "1\n2\n3\n4\n", pod="web", tail=4),
        call("pods_list", TABLE, kind="Table"),
        call("logs", "broken", pod="down", tail=9).model_copy(update={"is_error": True}),
        call("pods_get", "a pod", name="web", kind="Pods", limit=7),
    )
)


def names(text: str) -> list[str]:
    found = json.loads(text)
    return [item["metadata"]["name"] for item in found.get("items", [found])]


@for_each(
    ("tool", "arguments", "rung", "line"),
    [
        ("logs", '{"tail": 4, "pod": "web"}', Rung.EXACT, 3),
        ("logs", '{"pod": " web", "tail": "4", "previous": null}', Rung.NORMALISED, 3),
        ("logs", "pod: web, tail: 4", Rung.NORMALISED, 3),
        ("pods_list", '{"limit": 50}', Rung.NORMALISED, 2),
        ("pods_get", '{"name": "web", "kind": "po", "limit": 7}', Rung.NORMALISED, 6),
        ("logs", '{"pod": "web", "tail": 2}', Rung.DERIVED, 3),
        ("logs", '{"pod": "web", "tail": 5}', Rung.MISS, None),
        ("logs", '{"pod": "web"}', Rung.MISS, None),
        ("logs", '{"pod": "down", "tail": 2}', Rung.MISS, None),
        ("pods_list", '{"labelSelector": "app in (web, api),!canary"}', Rung.DERIVED, 2),
        ("pods_list", '{"labelSelector": "what is this"}', Rung.MISS, None),
        ("pods_list", '{"namespace": "other"}', Rung.MISS, None),
        ("pods_list", '{"namespace": "pay"}', Rung.DERIVED, 2),
        ("pods_get", '{"name": "db", "namespace": "pay"}', Rung.DERIVED, 2),
        ("pods_get", '{"name": "db", "namespace": "shop"}', Rung.MISS, None),
        ("pods_list", '{"kind": "Table", "labelSelector": "x=y"}', Rung.DERIVED, 4),
    ],
)
def test_each_call_is_answered_by_its_rung(tool: str, arguments: str, rung: Rung, line: int | None) -> None:
    found = WORLD.answer("k", tool, arguments)
    assert (found.rung, found.line) == (rung, line)


def test_derived_answers_hold_only_what_is_asked() -> None:
    assert WORLD.answer("k", "logs", '{"pod": "web", "tail": 2}').result == "3\n4\n"
    assert names(WORLD.answer("k", "pods_list", '{"labelSelector": "tier!=front"}').result) == ["db"]
    assert names(WORLD.answer("k", "pods_get", '{"name": "db", "namespace": "pay"}').result) == ["db"]
    table = WORLD.answer("k", "pods_list", '{"kind": "Table", "namespace": "shop"}').result
    assert [line.split()[1] for line in table.splitlines()] == ["NAME", "web"]


def test_equal_calls_answer_in_their_order_and_the_last_one_stays() -> None:
    world = Ladder(cassette(call("logs", "first", pod="a"), call("logs", "second", pod="a")))
    served: set[int] = set()
    told = []
    for _ in range(3):
        found = world.answer("k", "logs", '{"pod": "a"}', served=served)
        told.append(found.result)
        served.add(found.line or 0)
    assert told == ["first", "second", "second"]


def test_a_call_at_the_same_place_gets_the_very_answer() -> None:
    places = [Place(stage=0, agent=agent, message=2, index=0) for agent in range(2)]
    calls = [call("logs", f"of {p.agent}", pod="a").model_copy(update={"place": p}) for p in places]
    world = Ladder(cassette(*calls))
    assert world.answer("k", "logs", '{"pod": "a"}', place=places[1]).result == "of 1"
    assert world.answer("k", "logs", '{"pod": "b"}', place=places[1]).rung is Rung.MISS


def test_without_tool_definitions_each_call_is_a_miss_with_that_reason() -> None:
    world = Ladder(cassette(call("logs", "x", server="bare")))
    found = world.answer("bare", "logs", "{}")
    assert found.rung is Rung.MISS and "no definitions of the tools of server 'bare'" in found.reason


@pytest.mark.parametrize(
    ("kind", "one"), [("Pods", "pod"), ("policies", "policy"), ("ingress", "ingress"), ("sts", "statefulset")]
)
def test_kinds_are_compared_in_the_singular(kind: str, one: str) -> None:
    assert singular_kind(kind) == one
