"""`Ready`: whether a run would start now with a Chain, an Agent or the defaults."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.readiness import PlanReadiness, readiness
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import KINDS, MCPServer
from unit.plan.builders import LIBRARY, OPEN, TEAM, agent, chain, defaults, provider, selected, server, stage

R = TypeVar("R", bound=AnyResource)


def judged(obj: R, **conditions: str) -> R:
    """The object with conditions of its generation, each as status, or status and reason."""
    found = []
    for type_, said in conditions.items():
        status, _, reason = said.partition(" ")
        generation = obj.metadata.generation
        found.append({"type": type_, "status": status, "reason": reason or "Why", "observedGeneration": generation})
    body = obj.model_dump(by_alias=True, exclude_unset=True)
    body["status"] = {**body.get("status", {}), "conditions": found}
    made: R = KINDS[obj.KIND].model_validate(body)
    return made


def ready(obj: R) -> R:
    return judged(obj, Ready="True")


def trusted() -> MCPServer:
    """A server whose tools an agent of any policy may select."""
    return server(trustAnnotations=True)


def offering(obj: MCPServer, *tools: str, verified: str = "True", count: int | None = None) -> MCPServer:
    made = judged(obj, Ready="True", Available="True", Verified=verified)
    status = made.status.model_copy(update={"tools": tools, "tool_count": len(tools) if count is None else count})
    return made.model_copy(update={"status": status})


def of(obj: AnyResource, *others: AnyResource) -> PlanReadiness:
    return readiness(obj, ResourceCatalog([obj, *others]), LIBRARY)


def said(obj: AnyResource, *others: AnyResource) -> list[tuple[str, str]]:
    return [(str(error).split(": ")[0] + ": " + error.field, reason) for error, reason in of(obj, *others).errors]


TRIAGE, MODEL = ready(agent()), ready(provider())


def test_a_chain_whose_plan_resolves_and_whose_references_are_ready_is_ready() -> None:
    assert of(chain(), TRIAGE, MODEL) == PlanReadiness()


@pytest.mark.parametrize(
    ("spec", "others", "where", "reason"),
    [
        (
            {"strategy": "native-thinking"},
            (),
            "Chain team-a/pods: spec.strategy",
            "PlanInvalid",
        ),
        (
            {"budget": {"costUSD": 1}},
            (),
            "LLMProvider team-a/model: spec.rates",
            "PlanInvalid",
        ),
        (
            {"chat": {"budget": {"costUSD": 1}}},
            (),
            "LLMProvider team-a/model: spec.rates",
            "PlanInvalid",
        ),
        (
            {"fallback": [{"llmProvider": "model"}]},
            (),
            "Chain team-a/pods: spec.fallback[0].llmProvider",
            "PlanInvalid",
        ),
        (
            {"mcpServers": [{"name": "kube", "tools": ["get_pod"]}]},
            (offering(trusted(), "get_pods", "get_logs"),),
            "Chain team-a/pods: spec.mcpServers[0].tools",
            "ReferencesInvalid",
        ),
        (
            {"llmProvider": None},
            (),
            "Chain team-a/pods: spec.llmProvider",
            "PlanInvalid",
        ),
        (
            {"mcpServers": selected("kube")},
            (judged(server(), Ready="False SecretMissing"),),
            "Chain team-a/pods: spec.mcpServers[0].name",
            "ReferencesNotReady",
        ),
    ],
)
def test_a_chain_says_what_a_run_would_fail_by(
    spec: dict[str, Any], others: tuple[AnyResource, ...], where: str, reason: str
) -> None:
    assert said(chain(**spec), TRIAGE, MODEL, *others) == [(where, reason)]


def test_what_a_chain_names_must_be_ready_and_the_reason_is_told_with_the_field() -> None:
    found = of(
        chain(), judged(agent(), Ready="False AccountForbidden"), judged(provider(), Ready="False SecretMissing")
    )
    assert [(error.field, reason) for error, reason in found.errors] == [
        ("spec.stages[0].agents[0].name", "ReferencesNotReady"),
        ("spec.llmProvider", "ReferencesNotReady"),
    ]
    assert found.errors[1][0].message == (
        "LLMProvider team-a/model is not Ready (SecretMissing); see its condition Ready"
    )


def test_what_nobody_has_judged_yet_leaves_a_chain_unknown_and_not_wrong() -> None:
    found = of(chain(), agent(), MODEL)
    assert found.errors == ()
    assert [str(error) for error in found.unknown] == [
        "Chain team-a/pods: spec.stages[0].agents[0].name: Agent team-a/triage has not been checked yet"
    ]


def test_the_defaults_of_the_namespace_count_as_a_run_has_them() -> None:
    given = ready(defaults(llmProvider="model", budget={"costUSD": 1}))
    assert said(chain(llmProvider=None), TRIAGE, MODEL, given) == [
        ("LLMProvider team-a/model: spec.rates", "PlanInvalid")
    ]
    rated = ready(provider(rates={"inputPerMillion": 1, "outputPerMillion": 1}))
    assert of(chain(llmProvider=None), TRIAGE, rated, given) == PlanReadiness()


def test_a_fallback_of_the_defaults_that_is_not_ready_is_told_with_its_own_field() -> None:
    given = ready(defaults(fallback=[{"llmProvider": "second"}]))
    second = judged(provider("second"), Ready="False CredentialsMissing")
    assert said(chain(), TRIAGE, MODEL, second, given) == [
        ("InvestigationDefaults team-a/default: spec.fallback[0].llmProvider", "ReferencesNotReady")
    ]


def test_a_shared_chain_without_a_provider_is_completed_by_the_defaults_of_runs_and_says_so() -> None:
    shared = chain(namespace=LIBRARY, llmProvider=None, allowedNamespaces=OPEN)
    found = of(shared, ready(agent(namespace=LIBRARY)))
    assert found.errors == () and found.reason == "NeedsDefaults"
    assert "spec.llmProvider is not set" in found.notes[0]
    private = chain(namespace=LIBRARY, llmProvider=None)
    assert said(private, ready(agent(namespace=LIBRARY))) == [("Chain library/pods: spec.llmProvider", "PlanInvalid")]


def test_a_shared_chain_without_a_provider_still_says_all_else_that_is_wrong() -> None:
    shared = chain(namespace=LIBRARY, llmProvider=None, allowedNamespaces=OPEN)
    assert said(shared) == [("Chain library/pods: spec.stages[0].agents[0].name", "ReferencesInvalid")]


def test_a_server_or_provider_that_does_not_answer_now_leaves_a_chain_ready_and_is_told() -> None:
    away = judged(server(), Ready="True", Available="False Timeout")
    silent = judged(provider(), Ready="True", Serving="False ModelUnreachable")
    found = of(chain(mcpServers=selected("kube")), TRIAGE, silent, away)
    assert found.errors == () and found.reason == "Usable"
    assert sorted(found.notes) == [
        "LLMProvider team-a/model is not serving: its last calls failed (ModelUnreachable).",
        "MCPServer team-a/kube does not respond: runs continue without its tools (Timeout).",
    ]


@pytest.mark.parametrize(
    "known",
    [
        ready(trusted()),
        offering(trusted(), "get_pods", verified="Unknown"),
        offering(trusted(), "get_pods", count=2),
    ],
    ids=["never asked", "its spec has changed", "not all names fit"],
)
def test_tools_are_taken_at_the_word_of_the_selection_until_the_list_is_known(known: MCPServer) -> None:
    assert said(chain(mcpServers=[{"name": "kube", "tools": ["other"]}]), TRIAGE, MODEL, known) == []


def test_tools_of_an_earlier_generation_are_not_known() -> None:
    found = offering(trusted(), "get_pods")
    old = tuple(one.model_copy(update={"observed_generation": 2}) for one in found.status.conditions)
    stale = found.model_copy(update={"status": found.status.model_copy(update={"conditions": old})})
    assert said(chain(mcpServers=[{"name": "kube", "tools": ["other"]}]), TRIAGE, MODEL, stale) == []


def test_a_tool_that_is_not_offered_comes_with_the_likely_name() -> None:
    found = of(
        chain(mcpServers=[{"name": "kube", "tools": ["get_pod"]}]), TRIAGE, MODEL, offering(trusted(), "get_pods")
    )
    ((error, _),) = found.errors
    assert error.message == (
        "MCPServer team-a/kube has no tool get_pod; did you mean get_pods? Else leave it out, or update the server "
        "(its status.tools lists what it offers)"
    )


def test_an_agent_and_the_defaults_need_what_they_name_to_be_ready() -> None:
    broken = judged(server(), Ready="False SecretMissing")
    assert said(agent(mcpServers=selected("kube")), broken) == [
        ("Agent team-a/triage: spec.mcpServers[0].name", "ReferencesNotReady")
    ]
    assert said(defaults(llmProvider="model"), judged(provider(), Ready="False SecretMissing")) == [
        ("InvestigationDefaults team-a/default: spec.llmProvider", "ReferencesNotReady")
    ]


def test_a_reference_that_every_stage_overrides_is_judged_all_the_same() -> None:
    own = stage({"name": "triage", "llmProvider": "second"})
    found = said(
        chain(stages=[own], executiveSummary={"enabled": False}, chat={"enabled": False}),
        TRIAGE,
        ready(provider("second")),
        judged(provider(), Ready="False SecretMissing"),
    )
    assert found == [(f"Chain {TEAM}/pods: spec.llmProvider", "ReferencesNotReady")]
