"""Tests the outline of a plan, which the command line and the web UI draw."""

from typing import Any

from rich.console import Console

from tarsy.cli.plans.in_cluster import tree_of
from tarsy.cli.plans.tree import tree
from tarsy.http.plan_answer import chain_for, plan_view
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.resources.parse import parse_object
from tarsy.resources.v1alpha1 import Chain
from tarsy.resources.v1alpha1.alert import AlertContent

QUESTION = PlanQuestion.model_validate({"alertType": "Crash"})


def _object(kind: str, name: str, spec: dict[str, Any], *conditions: dict[str, Any]) -> Any:
    return parse_object(
        {
            "apiVersion": "tarsy.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
            "spec": spec,
            "status": {"conditions": list(conditions)},
        }
    )


def _catalog() -> ResourceCatalog:
    away = {"type": "Available", "status": "False", "reason": "Unreachable", "message": "refused at http://secret"}
    http = {"type": "http", "http": {"url": "http://tools.example/mcp"}}
    agent = {"name": "agent", "subAgents": [{"agentRef": {"name": "helper"}, "maxDispatches": 2}]}
    chain = {"alertTypes": ["Crash"], "llmProvider": "model", "stages": [{"name": "look", "agents": [agent]}]}
    return ResourceCatalog(
        [
            _object("Chain", "crash", {**chain, "budget": {"tokens": 1000}}),
            _object("Agent", "agent", {"instructions": "Hidden words."}),
            _object("Agent", "helper", {"description": "Helps.", "mcpServers": [{"name": "tools"}]}),
            _object("MCPServer", "tools", {"transport": http, "tools": {"readOnly": ["get"]}}, away),
            _object(
                "LLMProvider", "model", {"type": "openai", "model": "m", "apiKeySecretRef": {"name": "k", "key": "k"}}
            ),
        ],
        {"shop": {}},
    )


def _view(*, readable: bool = True) -> PlanView:
    catalog = _catalog()
    chain = chain_for("shop", QUESTION, catalog, "library")
    assert isinstance(chain, Chain)
    return plan_view("shop", QUESTION, chain, catalog, "library", lambda kind, place: readable)


def _printed(shown: Any) -> str:
    console = Console(width=200, markup=False)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def test_a_plan_has_four_levels_with_sources_and_warnings() -> None:
    root = _view().tree
    assert root is not None
    (look,) = [one for one in root.parts if one.what == "stage"]
    (agent,) = look.parts
    (helper,) = agent.parts
    assert (root.what, look.name, agent.name, helper.name) == ("Chain", "look", "agent", "helper")
    assert agent.about is not None and (agent.about.kind, agent.about.name) == ("Agent", "agent")
    provider = next(one for one in agent.settings if one.name == "provider")
    assert provider.origin is not None
    assert (provider.origin.kind, provider.origin.name, provider.origin.field) == ("Chain", "crash", "spec.llmProvider")
    server = next(one for one in helper.settings if one.name == "server")
    assert server.warnings == ("Available: Unreachable. refused at http://secret",)
    budget = next(one for one in root.parts if one.what == "budget")
    assert [(one.name, one.value) for one in budget.settings] == [("tokens", "1000")]
    assert "Hidden words." not in _view().model_dump_json()


def test_of_objects_that_may_not_be_listed_only_the_reason_is_told() -> None:
    text = _view(readable=False).model_dump_json()
    assert "Available: Unreachable" in text and "http://secret" not in text


def test_the_plugin_draws_what_the_command_draws_from_files_and_the_warnings() -> None:
    catalog = _catalog()
    chain = catalog.get(Chain, "shop", "crash")
    assert chain is not None
    explained = explain_plan(
        PlanRequest(
            namespace="shop",
            alert=AlertContent(alert_type="Crash", data="x"),
            chain=chain,
            catalog=catalog,
            library_namespace="library",
        )
    )
    root = _view().tree
    assert root is not None
    from_files, of_cluster = _printed(tree(explained)), _printed(tree_of(root))
    warned = [line for line in of_cluster.splitlines() if "warning" in line]
    assert warned and all("Unreachable" in line for line in warned)
    plain = [" ".join(line.split()) for line in of_cluster.splitlines() if line not in warned]
    assert plain == [" ".join(line.split()) for line in from_files.splitlines()]


def test_an_alert_without_a_chain_has_no_tree() -> None:
    found = chain_for("shop", PlanQuestion.model_validate({"alertType": "Other"}), _catalog(), "library")
    assert isinstance(found, PlanView)
    assert found.tree is None and "Other" in found.errors[0]
