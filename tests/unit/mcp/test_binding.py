"""Tests that calls are restricted to the namespace of the run."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.mcp.namespace_binding import (
    ENFORCED,
    MCPSERVER,
    NAMESPACES,
    OutOfReach,
    can_be_held,
    declares,
    hold_to_namespaces,
    of_request,
)
from tarsy.mcp.tool_catalog import OUT_OF_REACH, digests_of, nothing_offered, offer
from tarsy.plan.model import HttpTransport, ObjectRef, ReachPlan, ServerPlan

STRING = {"type": "string"}
LIST = {"type": "array", "items": STRING}


def tool(called: str = "get", /, *, meta: dict[str, Any] | None = None, **properties: Any) -> types.Tool:
    return types.Tool(name=called, input_schema={"type": "object", "properties": properties}, _meta=meta)


def plan(**reach: Any) -> ServerPlan:
    ref = ObjectRef(kind="MCPServer", namespace="library", name="kube")
    bound = ReachPlan(**{"foreign": True, "namespace": "shop", **reach})
    return ServerPlan(ref=ref, name="kube", transport=HttpTransport(url="http://x/mcp"), reach=bound)


def held(wrote: dict[str, Any], properties: dict[str, Any] | None = None, **reach: Any) -> dict[str, Any]:
    schema = {"properties": {"namespace": STRING, "name": STRING} if properties is None else properties}
    return hold_to_namespaces(plan(**reach), "get", schema, wrote)


@pytest.mark.parametrize("value", ["shop", None, "", [], ["shop"]])
def test_the_runs_namespace_is_filled_in_or_taken(value: Any) -> None:
    assert held({"namespace": value, "name": "x"})["namespace"] in ("shop", ["shop"])
    assert held({"name": "x"}) == {"namespace": "shop", "name": "x"}
    assert held({}, {"namespace": LIST}) == {"namespace": ["shop"]}


@pytest.mark.parametrize(
    "value", ["pay", "*", "all", "shop ", "Shop", "shop,pay", ["shop", "pay"], ["pay"], 1, True, {}]
)
def test_another_namespace_is_refused_in_a_sentence(value: Any) -> None:
    with pytest.raises(OutOfReach, match=r"kube\.get was not called: .* reaches namespace shop and no other"):
        held({"namespace": value, "name": "x"})


@pytest.mark.parametrize(
    "extra",
    [
        {"Namespace": "pay"},
        {"NAMESPACE": "pay"},
        {"name\u017fpace": "pay"},
        {"all_namespaces": True},
        {"allNamespaces": True},
        {"ns": "pay"},
        {"all": True},
        {"name": {"namespace": "pay"}},
        {"name": [{"deep": {"Namespaces": ["pay"]}}]},
    ],
)
def test_arguments_that_may_mean_another_namespace_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(OutOfReach, match="it takes no "):
        held({"namespace": "shop", **extra})


def test_a_call_that_is_not_bound_is_as_the_model_wrote_it() -> None:
    wrote = {"namespace": "pay", "ns": 1}
    assert held(wrote, namespace=None) == wrote
    assert held(wrote, bound_by="Server") == wrote


def test_other_arguments_can_name_the_namespace() -> None:
    assert held({}, {"project": STRING}, arguments=("project",)) == {"project": "shop"}
    with pytest.raises(OutOfReach, match="Leave project out"):
        held({"project": "pay"}, {"project": STRING}, arguments=("project",))


def test_a_tool_of_the_cluster_is_filled_in_where_it_has_the_argument_and_checked() -> None:
    assert held({"all": True}, {"all": STRING}, cluster_tools=("g*",)) == {"all": True}
    with pytest.raises(OutOfReach):
        held({"namespace": "pay"}, cluster_tools=("g*",))


@pytest.mark.parametrize(
    ("properties", "fits"),
    [
        ({"namespace": STRING}, True),
        ({"namespace": STRING, "name": STRING}, True),
        ({"name": STRING}, False),
        ({}, False),
        ({"namespace": STRING, "allNamespaces": {"type": "boolean"}}, False),
        ({"namespace": STRING, "all_namespaces": {"type": "boolean"}}, False),
        ({"namespace": STRING, "Namespace": STRING}, False),
        ({"namespace": STRING, "filter": {"type": "object", "properties": {"namespace": STRING}}}, False),
        ({"namespace": STRING, "where": {"anyOf": [{"properties": {"ns": STRING}}]}}, False),
        ({"namespace": STRING, "answers": STRING}, True),
    ],
)
def test_a_tool_can_be_held_by_the_one_argument_that_names_a_namespace(properties: dict[str, Any], fits: bool) -> None:
    assert can_be_held(ReachPlan(), tool(**properties)) is fits
    assert can_be_held(ReachPlan(cluster_tools=("get",)), tool(**properties))


def test_a_schema_beyond_measure_is_not_searched_and_its_tool_not_offered() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"x": deep}
    assert not can_be_held(ReachPlan(), tool(namespace=STRING, name=deep))


def test_a_server_that_binds_must_declare_it_on_each_tool() -> None:
    reach = ReachPlan(bound_by="Server", namespace="shop")
    assert not can_be_held(reach, tool(namespace=STRING))
    assert not can_be_held(reach, tool(meta={NAMESPACES: "yes"}))
    assert can_be_held(reach, tool(meta={NAMESPACES: ENFORCED})) and declares(tool(meta={NAMESPACES: ENFORCED}))


def test_what_a_request_carries() -> None:
    assert of_request(plan().model_copy(update={"reach": None})) == {}
    of = {MCPSERVER: "library/kube"}
    for by in ("Server", "Argument"):
        assert of_request(plan(bound_by=by)) == {NAMESPACES: ["shop"], **of}
        assert of_request(plan(bound_by=by, namespace=None)) == {NAMESPACES: ["*"], **of}


def test_tools_that_cannot_be_held_are_withheld_and_said() -> None:
    found = offer(plan(), [tool("get", namespace=STRING), tool("all")])
    assert [one.name for one in found.definitions] == ["kube.get"] and found.bindable == {"get"}
    assert (
        found.withheld["all"].reason == OUT_OF_REACH and "reaches namespace shop only" in found.withheld["all"].sentence
    )
    none = offer(plan(), [tool("all")])
    said = nothing_offered(plan(), none)
    assert said is not None and "spec.reach.namespaceArguments of MCPServer library/kube" in said
    assert "spec.reach.unboundNamespaces" in said


def test_a_tool_that_declares_it_no_more_is_another_tool() -> None:
    assert digests_of([tool(meta={NAMESPACES: ENFORCED})]) != digests_of([tool()])
    assert digests_of([tool(meta={"else": 1})]) == digests_of([tool()])
