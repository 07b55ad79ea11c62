"""Typical mistakes of people who write objects, and the sentence that each gets: field, what is wrong, what to do."""

from __future__ import annotations

from typing import Any

import pytest

from for_each import for_each
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.readiness import readiness
from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from unit.plan.builders import LIBRARY, TEAM, agent, chain, defaults, google, provider, selected, server, stage
from unit.plan.test_readiness import offering, ready, trusted

WORLD = (ready(agent()), ready(provider()), ready(google()), offering(trusted(), "get_pods", "get_logs"))


@for_each(
    ("obj", "field", "words"),
    [
        (
            chain(llmProvider="modell"),
            "spec.llmProvider",
            "there is no LLMProvider modell in namespace team-a; did you mean model?",
        ),
        (chain(stages=[stage("triag")]), "spec.stages[0].agents[0].name", "did you mean triage? Else create it"),
        (
            chain(mcpServers=selected("kubes")),
            "spec.mcpServers[0].name",
            "no MCPServer kubes in namespace team-a; did you mean kube?",
        ),
        (
            chain(mcpServers=[{"name": "kube", "tools": ["get_pod"]}]),
            "spec.mcpServers[0].tools",
            "has no tool get_pod; did you mean get_pods?",
        ),
        (
            chain(llmProvider=None),
            "spec.llmProvider",
            "no LLMProvider is set; name one here, or in spec.llmProvider of",
        ),
        (
            chain(strategy="native-thinking"),
            "spec.strategy",
            "needs the backend google-native, which LLMProvider team-a/model of type openai does not support; use",
        ),
        (
            chain(fallback=[{"llmProvider": "model"}]),
            "spec.fallback[0].llmProvider",
            "is its own fallback here, which has no effect; name another, or leave it out",
        ),
        (
            chain(fallback=[{"llmProvider": "gemini", "strategy": "native-thinking"}, {"llmProvider": "none"}]),
            "spec.fallback[1].llmProvider",
            "there is no LLMProvider none",
        ),
        (
            chain(budget={"costUSD": 5}),
            "spec.rates",
            "has a budget in dollars (spec.budget.costUSD); set inputPerMillion and outputPerMillion, or leave "
            "costUSD out",
        ),
        (
            chain(stages=[stage("triage", "triage")]),
            "spec.stages[0].agents[1].name",
            "is also called triage; set a displayName of its own here",
        ),
        (
            chain(stages=[stage("triage", replicas=2, synthesis={"strategy": "react"})]),
            "spec.stages[0].synthesis.strategy",
            "cannot merge the results of several agents; use",
        ),
        (chain(chat={"agent": "chatter"}), "spec.chat.agent", "there is no Agent chatter in namespace team-a"),
        (
            agent("other", mcpServers=selected("kubernetes")),
            "spec.mcpServers[0].name",
            "there is no MCPServer kubernetes",
        ),
        (
            agent("other", toolPolicy="ReadOnly", mcpServers=[{"name": "kube", "tools": ["nope"]}]),
            "spec.mcpServers[0].tools",
            "has no tool nope",
        ),
        (defaults(llmProvider="gone"), "spec.llmProvider", "there is no LLMProvider gone in namespace team-a"),
        (
            server("other", toolPolicy="ReadOnly"),
            "spec.toolPolicy",
            "list them in spec.tools.readOnly, or set spec.trustAnnotations: true",
        ),
        (
            server("other", tools={"allow": ["a"], "deny": ["a"]}),
            "spec.tools.deny",
            "denies all of spec.tools.allow; deny fewer tools",
        ),
        (
            server("other", tools={"readOnly": ["a"], "destructive": ["a"]}),
            "spec.tools.readOnly[0]",
            "is also in spec.tools.destructive; keep it in one of them",
        ),
        (
            provider("other", nativeTools={"googleSearch": True}),
            "spec.nativeTools.googleSearch",
            "type openai has no native tools; leave it out",
        ),
        (google("other", thinking={"effort": "high"}), "spec.thinking.effort", "instead, or leave it out"),
    ],
)
def test_a_reference_or_setting_that_cannot_work_names_its_field_and_a_remedy(
    obj: AnyResource, field: str, words: str
) -> None:
    found = readiness(obj, ResourceCatalog([*WORLD, obj]), LIBRARY)
    assert field in [error.field for error, _ in found.errors]
    assert any(words in error.message for error, _ in found.errors if error.field == field), found.errors


SPECS: dict[str, dict[str, Any]] = {
    "Chain": {"stages": [{"name": "look", "agents": [{"name": "triage"}]}]},
    "LLMProvider": {"type": "openai", "model": "m"},
    "MCPServer": {"transport": {"type": "http", "http": {"url": "http://tools.example/mcp"}}},
    "Investigation": {"alertRef": {"name": "a"}},
    "Alert": {"alertType": "PodCrash", "data": "x"},
}


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("Chain", {"stages": "look"}, "spec.stages"),
        ("Chain", {"llmprovider": "model"}, "spec.llmprovider: is not a field of this kind; check its spelling"),
        ("Chain", {"stages": [{"name": "Look", "agents": [{"name": "a"}]}]}, "spec.stages[0].name"),
        ("Chain", {"strategy": "reAct"}, "spec.strategy"),
        ("LLMProvider", {"type": "gpt"}, "spec.type"),
        ("LLMProvider", {"baseURL": "api.example/v1"}, "spec.baseURL"),
        ("LLMProvider", {"temperature": "hot"}, "spec.temperature"),
        ("LLMProvider", {"apiKeySecretRef": "key"}, "spec.apiKeySecretRef"),
        ("MCPServer", {"transport": {"type": "http"}}, "spec.transport"),
        ("MCPServer", {"transport": {"type": "http", "http": {"url": "tools:8080"}}}, "spec.transport.http.url"),
        (
            "Investigation",
            {"alertRef": None, "retryOf": {"name": "b"}},
            "retryOf alone is not enough: copy the alert of",
        ),
        ("Investigation", {"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
        ("Alert", {"data": " "}, "data must not be empty"),
        ("Alert", {"mcpServers": []}, "spec.mcpServers"),
    ],
)
def test_a_field_that_does_not_fit_is_named_with_its_path(kind: str, change: dict[str, Any], words: str) -> None:
    spec = {key: value for key, value in {**SPECS[kind], **change}.items() if value is not None}
    meta = {"name": "one", "namespace": TEAM, "uid": "u", "generation": 1, "resourceVersion": "1"}
    with pytest.raises(InvalidResource) as invalid:
        parse_object({"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})
    assert words in str(invalid.value), str(invalid.value)
