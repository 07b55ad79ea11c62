"""What an MCPServer declares of the text of its tools becomes part of the plan."""

from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from tarsy.plan.model import DataFlowPlan, ExtractedFieldPlan, ObjectRef, OutboundRule, ServerPlan
from tarsy.plan.parts import server_plan
from tarsy.resources.v1alpha1 import MCPServer
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.data_flow import DataFlow
from tarsy.resources.v1alpha1.extraction import ExtractedField, ExtractionRule

REF = ObjectRef(kind="MCPServer", namespace="shop", name="k")
TRANSPORT = {"type": "http", "http": {"url": "https://tools.example/mcp"}}


def planned(**spec: Any) -> ServerPlan:
    meta = {"name": "k", "namespace": "shop"}
    server = MCPServer.model_validate({"metadata": meta, "spec": {"transport": TRANSPORT, **spec}})
    return server_plan(server, REF, McpSelection(name="k"))


def test_data_flow_is_planned_by_tool() -> None:
    plan = planned(
        dataFlow={
            "outboundArguments": [
                {"tools": ["post_*"], "arguments": ["channel"], "holds": "Address"},
                {"tools": ["*"], "arguments": ["text"], "holds": "Text"},
            ],
            "sensitiveTools": ["get_orders"],
        }
    )
    flow = plan.data_flow
    assert (sorted(flow.outbound_of("post_a")), sorted(flow.addresses_of("post_a"))) == (
        ["channel", "text"],
        ["channel"],
    )
    assert (sorted(flow.outbound_of("get")), sorted(flow.addresses_of("get"))) == (["text"], [])
    assert (flow.is_sensitive("get_orders"), flow.is_sensitive("get")) == (True, False)
    assert ServerPlan.model_validate_json(plan.model_dump_json()) == plan


def test_extraction_is_planned_with_its_lengths_and_the_first_rule_decides() -> None:
    fields = [
        {"name": "key", "type": "Identifier"},
        {"name": "title", "type": "Quote", "maxItems": 2, "description": "Title"},
        {"name": "state", "type": "Enum", "values": ["open"]},
    ]
    plan = planned(extraction=[{"tools": ["get_*"], "fields": fields}, {"tools": ["*"], "fields": fields[:1]}])
    assert plan.extracted_fields("get_ticket") == (
        ExtractedFieldPlan(name="key", type="Identifier", longest=64),
        ExtractedFieldPlan(name="title", type="Quote", longest=80, max_items=2, description="Title"),
        ExtractedFieldPlan(name="state", type="Enum", values=("open",), longest=64),
    )
    assert [one.name for one in plan.extracted_fields("list")] == ["key"]
    assert planned().extracted_fields("list") == ()


def test_plans_of_servers_that_declare_nothing_stay_as_they_were() -> None:
    stored = orjson.loads(planned().model_dump_json())
    assert "data_flow" not in stored and "extraction" not in stored
    assert planned().data_flow == DataFlowPlan() and DataFlowPlan().outbound_of("x") == frozenset()
    assert OutboundRule(tools=("x",), arguments=("y",)).address is False


def field(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "type": "Quote", **changes}


LIMITS = [
    (ExtractedField, lambda n: field(name="a" * n), 40),
    (ExtractedField, lambda n: field(maxLength=n), 200),
    (ExtractedField, lambda n: field(type="Identifier", maxLength=n), 128),
    (ExtractedField, lambda n: field(maxItems=n), 20),
    (ExtractedField, lambda n: field(description="a" * n), 256),
    (ExtractedField, lambda n: field(type="Enum", values=[f"v{i}" for i in range(n)]), 32),
    (ExtractedField, lambda n: field(type="Enum", values=["a" * n]), 64),
    (ExtractionRule, lambda n: {"tools": ["a"], "fields": [field(name=f"a{i}") for i in range(n)]}, 16),
    (DataFlow, lambda n: {"sensitiveTools": [f"t{i}" for i in range(n)]}, 256),
    (DataFlow, lambda n: {"outboundArguments": [_outbound()] * n}, 64),
    (DataFlow, lambda n: {"outboundArguments": [_outbound(arguments=[f"a{i}" for i in range(n)])]}, 32),
]


def _outbound(**changes: Any) -> dict[str, Any]:
    return {"tools": ["a"], "arguments": ["b"], "holds": "Text", **changes}


@pytest.mark.parametrize(("model", "made", "limit"), LIMITS, ids=range(len(LIMITS)))
def test_declarations_are_bounded(model: Any, made: Any, limit: int) -> None:
    for size in (limit - 1, limit):
        model.model_validate(made(size))
    with pytest.raises(ValidationError):
        model.model_validate(made(limit + 1))


def test_names_of_fields_and_values_have_a_form() -> None:
    for bad in (field(name="A"), field(name="a b"), field(type="Enum", values=["<x>"]), field(type="Text")):
        with pytest.raises(ValidationError):
            ExtractedField.model_validate(bad)
    with pytest.raises(ValidationError):
        ExtractionRule.model_validate({"tools": ["a"], "fields": [field(), field()]})
