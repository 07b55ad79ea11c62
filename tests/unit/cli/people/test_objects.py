"""What `kubectl tarsy objects` prints: configuration objects with their health, and how one changed."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer

from tarsy.cli.objects.health import chosen_object, list_objects, list_transitions
from tarsy.http.views.health_over_time import ObjectHealthList, ObjectHealthView, TransitionList, TransitionView
from unit.cli.people.doors import FakeDoor

NOW = datetime.now(UTC)
PATH, CHANGES = "/namespaces/shop/objects", "/namespaces/shop/transitions"


def an_object(name: str, health: str, **changes: Any) -> ObjectHealthView:
    values = {
        "kind": "MCPServer",
        "namespace": "shop",
        "name": name,
        "uid": f"uid-{name}",
        "health": health,
        "reason": "",
        "message": "",
        "since": NOW - timedelta(days=2, hours=5, minutes=9),
        "transitions": 0,
        "last_problem": None,
        "history": (),
    }
    return ObjectHealthView(**{**values, **changes})


def page(*items: ObjectHealthView, more: str | None = None) -> ObjectHealthList:
    told: dict[str, Any] = {"since": NOW, "until": NOW, "cell_minutes": 60, "kinds": ("MCPServer",), "continue": more}
    return ObjectHealthList(items=items, **told)


def change(was: str | None, status: str, **changes: Any) -> TransitionView:
    values = {
        "kind": "MCPServer",
        "namespace": "shop",
        "name": "tools",
        "uid": "uid",
        "type": "Available",
        "at": NOW - timedelta(days=3, hours=1, minutes=9),
        "was": was,
        "status": status,
        "reason": "Unreachable",
        "message": "It does not respond.\x1b[2J",
        "address": "http://tools:8080",
        "omitted": 0,
    }
    return TransitionView(**{**values, **changes})


async def lines(capsys: pytest.CaptureFixture[str], *pages: ObjectHealthList) -> list[str]:
    door = FakeDoor({PATH: [*pages]}, [])
    assert await list_objects(door, "shop", None, 24, "text") == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


async def test_each_object_has_its_health_since_when_its_changes_and_its_last_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    away = an_object("away", "Degraded", reason="Unreachable", message="refused", transitions=1)
    problem = {
        "at": NOW - timedelta(days=1, hours=1, minutes=9),
        "type": "Available",
        "reason": "OpenFailed",
        "message": "HTTP 503",
    }
    back = an_object("back", "Ready", transitions=4, last_problem={**problem, "address": "http://tools:8080"})
    new = an_object("new", "Unknown", since=None)
    told = await lines(capsys, page(away, more="next"), page(back, new))
    assert told == [
        "KIND NAME HEALTH SINCE CHANGES 24H LAST PROBLEM",
        "MCPServer away Degraded 2d5h 1 Unreachable: refused",
        "MCPServer back Ready 2d5h 4 1d1h ago, Available OpenFailed: HTTP 503 (http://tools:8080)",
        "MCPServer new Unknown - 0 -",
    ]
    assert await lines(capsys, page()) == ["No configuration object in namespace shop."]


async def test_the_changes_of_an_object_are_told_up_to_a_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    first = TransitionList.model_validate({"items": [change("True", "False", omitted=2)], "continue": "next"})
    last = TransitionList.model_validate({"items": [change(None, "True", address=None)], "continue": None})
    door = FakeDoor({CHANGES: [first, last]}, [])
    assert await list_transitions(door, "shop", "MCPServer", "tools", "text", limit=2) == 0
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert told[0] == "TIME AGE CONDITION CHANGE REASON MESSAGE"
    assert told[1].endswith(
        "3d1h Available True -> False (2 before it not recorded) Unreachable It does not respond.[2J (http://tools:8080)"
    )
    assert told[2].endswith("3d1h Available new -> True Unreachable It does not respond.[2J") and len(told) == 3
    assert [query["limit"] for _, query in door.asked] == ["2", "1"]
    door = FakeDoor({CHANGES: [first]}, [])
    assert await list_transitions(door, "shop", "MCPServer", "tools", "text", limit=1) == 0
    assert "There are more; see --limit." in capsys.readouterr().out
    none = FakeDoor({CHANGES: [TransitionList.model_validate({"items": [], "continue": None})]}, [])
    assert await list_transitions(none, "shop", "Chain", "x", "text", limit=1) == 0
    assert capsys.readouterr().out == "No change of conditions of Chain x in namespace shop is recorded.\n"


async def test_programs_get_all_pages_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [page(an_object("a", "Ready"), more="next"), page(an_object("b", "Ready"))]
    door = FakeDoor({PATH: [*pages]}, [])
    assert await list_objects(door, "shop", "MCPServer", 168, "json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["items"]] == ["a", "b"] and told["continue"] is None
    assert door.asked[0][1] == {"hours": "168", "kind": "MCPServer"}


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        (None, None, None),
        ("mcpserver/x", "MCPServer", "x"),
        ("MCPServers", "MCPServer", None),
        ("tchain/one", "Chain", "one"),
        ("llmp/", "LLMProvider", None),
    ],
)
def test_kinds_are_written_as_for_kubectl(written: str | None, kind: str | None, name: str | None) -> None:
    assert chosen_object(written) == (kind, name)


def test_an_unknown_kind_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(typer.BadParameter, match="there is no kind 'pod'; the kinds are Chain, Agent"):
        chosen_object("pod/x")
