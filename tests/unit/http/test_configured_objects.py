"""Tests what is derived of configuration objects: health, references between them, and the address."""

from typing import Any

import pytest

from tarsy.http.views.configured_objects import ConfigurationItem, configuration_items
from tarsy.resources.health import host_of

KINDS = ("Chain", "Agent", "MCPServer", "LLMProvider", "Skill", "InvestigationDefaults", "AlertRoute", "AlertSchedule")
LIBRARY = "library"
TOOLS = {"transport": {"type": "http", "http": {"url": "https://user:key@tools.example:8443/mcp/secret?token=secret"}}}
CHAIN = {"alertTypes": ["Crash"], "llmProvider": "model", "stages": [{"name": "look", "agents": [{"name": "agent"}]}]}


def _object(
    kind: str, name: str, spec: dict[str, Any], namespace: str = "shop", *told: tuple[str, str]
) -> dict[str, Any]:
    conditions = [
        {
            "type": type_,
            "status": status,
            "reason": f"{type_}Is{status}",
            "message": f"{type_} is {status}.",
            "lastTransitionTime": "2026-11-22T12:00:00Z",
        }
        for type_, status in told
    ]
    return {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": spec,
        "status": {"conditions": conditions},
    }


def _items(*objects: dict[str, Any], kinds: tuple[str, ...] = KINDS) -> dict[str, ConfigurationItem]:
    return {f"{one.namespace}/{one.name}": one for one in configuration_items(objects, kinds, LIBRARY)}


@pytest.mark.parametrize(
    ("told", "health", "reason"),
    [
        ([("Ready", "True")], "Ready", "ReadyIsTrue"),
        ([("Ready", "True"), ("Available", "False")], "Degraded", "AvailableIsFalse"),
        ([("Available", "False"), ("Ready", "False")], "NotReady", "ReadyIsFalse"),
        ([("Ready", "True"), ("ToolsChanged", "True")], "Degraded", "ToolsChangedIsTrue"),
        ([("Ready", "True"), ("ToolsChanged", "False"), ("NeedsApproval", "False")], "Ready", "ReadyIsTrue"),
        ([("Ready", "Unknown")], "Unknown", "ReadyIsUnknown"),
        ([], "Unknown", ""),
    ],
)
def test_health_is_that_of_the_condition_that_decides(told: list[tuple[str, str]], health: str, reason: str) -> None:
    found = _items(_object("MCPServer", "tools", TOOLS, "shop", *told))["shop/tools"]
    assert (found.health, found.reason, found.since is not None) == (health, reason, bool(told))
    assert [one.type for one in found.conditions] == [type_ for type_, _ in told]


def test_an_invalid_object_is_not_ready_and_says_why() -> None:
    found = _items(_object("Chain", "broken", {"stages": "none"}))["shop/broken"]
    assert (found.health, found.reason, found.uses) == ("NotReady", "Invalid", ())
    assert "stages" in found.message


def test_references_are_told_both_ways_and_those_that_dangle() -> None:
    found = _items(
        _object("Chain", "crash", CHAIN),
        _object("Agent", "agent", {"instructions": "Look.", "mcpServers": [{"name": "tools"}]}),
        _object("MCPServer", "tools", TOOLS),
    )
    uses = {(one.kind, one.name): one.found for one in found["shop/crash"].uses}
    assert uses == {("Agent", "agent"): True, ("LLMProvider", "model"): False}
    assert [(one.kind, one.name) for one in found["shop/tools"].used_by] == [("Agent", "agent")]
    assert [(one.kind, one.name) for one in found["shop/agent"].used_by] == [("Chain", "crash")]


def test_whether_an_object_exists_is_not_told_of_kinds_that_may_not_be_listed() -> None:
    (found,) = _items(_object("Chain", "crash", CHAIN), kinds=("Chain",)).values()
    assert {one.found for one in found.uses} == {None}


def test_a_schedule_uses_the_chain_that_would_take_its_alert() -> None:
    template = {"alertType": "Crash", "data": "x"}
    schedule = _object("AlertSchedule", "daily", {"schedule": "0 7 * * *", "template": template})
    of_library = _object("Chain", "shared", CHAIN, LIBRARY)
    assert [one.name for one in _items(schedule, of_library)["shop/daily"].uses] == ["shared"]
    own = _object("Chain", "own", CHAIN)
    assert [one.name for one in _items(schedule, of_library, own)["shop/daily"].uses] == ["own"]
    named = _object(
        "AlertSchedule", "named", {"schedule": "0 7 * * *", "template": {**template, "chainRef": {"name": "gone"}}}
    )
    (gone,) = _items(named, own)["shop/named"].uses
    assert (gone.name, gone.found) == ("gone", False)


def test_an_address_has_no_credentials_path_or_query() -> None:
    found = _items(_object("MCPServer", "tools", TOOLS))["shop/tools"]
    assert found.address == "https://tools.example:8443"
    assert "secret" not in found.model_dump_json() and "user" not in found.model_dump_json(exclude={"used_by"})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:pass@h.example/path?k=v", "https://h.example"),
        ("http://[::1]:80/mcp", "http://[::1]:80"),
        ("http://h:99999/", None),
        ("nothing", None),
    ],
)
def test_a_host_is_scheme_name_and_port(url: str, host: str | None) -> None:
    assert host_of(url) == host
