"""Tests the metrics that count configuration objects by readiness."""

from typing import Any

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.readiness.metrics import count_ready
from tarsy.observe.metric_table import CONFIGURATION
from tarsy.resources.meta import API_VERSION

TRANSPORT = {"transport": {"type": "http", "http": {"url": "https://tools.example.com/mcp"}}}


def server(name: str, spec: dict[str, Any] | None = None, **conditions: str) -> dict[str, Any]:
    when = "2026-01-01T00:00:00Z"
    told = [
        {"type": t, "status": s, "reason": "Because", "message": "m", "lastTransitionTime": when}
        for t, s in conditions.items()
    ]
    meta = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "generation": 1}
    status = {"status": {"conditions": told}} if told else {}
    return {"apiVersion": API_VERSION, "kind": "MCPServer", "metadata": meta, "spec": spec or TRANSPORT, **status}


def test_objects_are_counted_by_kind_and_condition_and_never_named() -> None:
    cache = Cache()
    cache.put(server("up", Ready="True", Available="True"))
    cache.put(server("down", Ready="True", Available="False"))
    cache.put(server("new"))
    cache.put(server("broken", {"transport": 7}))

    told = count_ready(cache)

    found = {labels: number for labels, number in told.items() if number}
    assert found == {
        ("MCPServer", "Ready", "True"): 2,
        ("MCPServer", "Ready", "False"): 1,
        ("MCPServer", "Ready", "Unknown"): 1,
        ("MCPServer", "Available", "True"): 1,
        ("MCPServer", "Available", "False"): 1,
        ("MCPServer", "Available", "Unknown"): 2,
    }
    assert {kind for kind, _, _ in told} == set(CONFIGURATION.values or ())


def test_chains_that_tell_somebody_are_counted_by_whether_they_can_and_others_are_not() -> None:
    cache = Cache()
    stages = {"stages": [{"name": "s", "agents": [{"name": "a"}]}]}
    cache.put({**server("mute", stages, Ready="True", NotificationsReady="False"), "kind": "Chain"})
    cache.put({**server("quiet", stages, Ready="True"), "kind": "Chain"})
    cache.put({**server("broken", {"stages": 7}), "kind": "Chain"})

    found = {labels: number for labels, number in count_ready(cache).items() if number}

    assert found == {
        ("Chain", "Ready", "True"): 2,
        ("Chain", "Ready", "False"): 1,
        ("Chain", "NotificationsReady", "False"): 1,
    }


def test_chains_are_counted_by_whether_high_was_right_once_people_said_so() -> None:
    cache, stages = Cache(), {"stages": [{"name": "s", "agents": [{"name": "a"}]}]}
    for name, calibrated in (("doubted", "False"), ("few", "Unknown"), ("good", "True")):
        cache.put({**server(name, stages, Ready="True", Calibrated=calibrated), "kind": "Chain"})
    cache.put({**server("unreviewed", stages, Ready="True"), "kind": "Chain"})

    found = {labels[2]: number for labels, number in count_ready(cache).items() if labels[1] == "Calibrated"}

    assert found == {"False": 1, "Unknown": 1, "True": 1}


def test_what_is_deleted_is_counted_no_more() -> None:
    cache = Cache()
    cache.put(server("down", Ready="True", Available="False"))
    cache.drop(Key("MCPServer", "shop", "down"), "down")
    assert not any(count_ready(cache).values())
