"""The lists of an MCPServer, its tool policy and that of an Agent: at each limit and beyond it."""

from typing import Any

import pytest

from for_each import for_each
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import Agent, MCPServer

LISTS = {
    "allow": lambda entries: {"tools": {"allow": entries}},
    "deny": lambda entries: {"tools": {"deny": entries}},
    "readOnly": lambda entries: {"tools": {"readOnly": entries}},
    "destructive": lambda entries: {"tools": {"destructive": entries}},
    "repeatableTools": lambda entries: {"repeatableTools": entries},
}


def server(**spec: Any) -> dict[str, Any]:
    whole = {"transport": {"type": "http", "http": {"url": "http://x"}}, **spec}
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "MCPServer", "metadata": {"name": "m"}, "spec": whole}


def agent(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "a"}, "spec": spec}


@for_each("of", LISTS.values(), ids=LISTS)
@for_each(
    ("good", "bad"),
    [
        ([f"t{n}" for n in range(256)], [f"t{n}" for n in range(257)]),
        (["t" * 128], ["t" * 129]),
        (["a"], [""]),
        (["pods_*", "*", "*_list", "a/b.c-d"], ["pods_?"]),
        (["a", "b"], ["a", "a"]),
        (["A"], ["a b"]),
        (["a"], ["[ab]"]),
    ],
)
def test_a_list_of_tools_at_its_limits(of: Any, good: list[str], bad: list[str]) -> None:
    parse_object(server(**of(good)))
    with pytest.raises(InvalidResource):
        parse_object(server(**of(bad)))


@pytest.mark.parametrize("make", [server, agent])
def test_a_tool_policy_is_one_of_two(make: Any) -> None:
    for policy in ("ReadOnly", "All"):
        assert parse_object(make(toolPolicy=policy)).spec.tool_policy == policy  # type: ignore[attr-defined]
    for policy in ("readonly", "None", "", True):
        with pytest.raises(InvalidResource):
            parse_object(make(toolPolicy=policy))


def test_nothing_is_allowed_or_trusted_by_itself() -> None:
    made, one = parse_object(server()), parse_object(agent())
    assert isinstance(made, MCPServer) and isinstance(one, Agent)
    assert (made.spec.tool_policy, one.spec.tool_policy, made.spec.trust_annotations) == (None, None, False)
    assert (made.spec.tools.read_only, made.spec.tools.destructive, made.spec.repeatable_tools) == ((), (), ())
    with pytest.raises(InvalidResource):
        parse_object(server(trustAnnotations="yes"))


def test_an_agent_chooses_tools_by_their_whole_names() -> None:
    parse_object(agent(mcpServers=[{"name": "m", "tools": ["pods_list"]}]))
    with pytest.raises(InvalidResource):
        parse_object(agent(mcpServers=[{"name": "m", "tools": ["pods_*"]}]))
