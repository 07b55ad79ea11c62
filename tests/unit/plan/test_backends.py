"""The strategy decides the backend, and what a provider's type has not is an error of the plan."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.builtin import BACKENDS
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import Backend, Strategy
from tarsy.plan.provider_types import PROVIDER_TYPES
from tarsy.resources.meta import AnyResource
from unit.plan.builders import agent, alert, chain, defaults, google, plan_of, provider, stage

NATIVE = ("native-thinking", "synthesis-native-thinking")


def errors_of(objects: list[AnyResource], what: Any = None) -> dict[str, str]:
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects, what)
    return {f"{error.kind} {error.field}": error.message for error in raised.value.errors}


def test_every_strategy_has_a_backend_and_every_type_has_langchain() -> None:
    assert set(BACKENDS) == set(Strategy)
    assert {strategy.value for strategy, backend in BACKENDS.items() if backend is Backend.GOOGLE_NATIVE} == set(NATIVE)
    assert all(Backend.LANGCHAIN in type.backends for type in PROVIDER_TYPES.values())
    assert [name for name, type in PROVIDER_TYPES.items() if type.has_native_tools] == ["google", "vertexai"]


@pytest.mark.parametrize("strategy", [item.value for item in Strategy])
def test_a_google_provider_runs_every_strategy(strategy: str) -> None:
    plan = plan_of([agent(strategy=strategy), google(), chain(llmProvider="gemini")])
    assert plan.stages[0].agents[0].strategy == strategy


@pytest.mark.parametrize("strategy", [item.value for item in Strategy])
def test_an_openai_provider_runs_all_but_the_native_ones(strategy: str) -> None:
    objects = [agent(strategy=strategy), provider(), chain()]
    if strategy in NATIVE:
        assert set(errors_of(objects)) == {"Agent spec.strategy"}
    else:
        assert plan_of(objects).stages[0].agents[0].strategy == strategy


def test_the_error_is_at_the_level_that_chose_the_strategy() -> None:
    found = errors_of([agent(), provider(), chain(), defaults(strategy="native-thinking")])
    assert set(found) == {"InvestigationDefaults spec.strategy"}


@pytest.mark.parametrize("strategy", ["synthesis", "synthesis-native-thinking"])
def test_a_synthesis_runs_on_the_backend_of_its_strategy(strategy: str) -> None:
    settings = {"strategy": strategy, "llmProvider": "gemini"}
    plan = plan_of([agent(), provider(), google(), chain(stages=[stage(replicas=2, synthesis=settings)])])
    synthesis = plan.stages[0].synthesis
    assert synthesis is not None
    assert (synthesis.strategy, synthesis.provider.type, synthesis.servers) == (strategy, "google", ())


def test_a_native_synthesis_on_a_provider_without_it_names_the_one_that_works() -> None:
    settings = {"strategy": "synthesis-native-thinking"}
    found = errors_of([agent(), provider(), chain(stages=[stage(replicas=2, synthesis=settings)])])
    assert found == {
        "Chain spec.stages[0].synthesis.strategy": "strategy synthesis-native-thinking needs the backend "
        "google-native, which LLMProvider team-a/model of type openai does not support; use synthesis, or an "
        "LLMProvider of another type"
    }


def test_a_native_tool_that_an_agent_needs_must_be_there() -> None:
    wish = {"googleSearch": True, "codeExecution": False}
    found = errors_of([agent(nativeTools=wish), provider(), chain()])
    assert found == {
        "Agent spec.nativeTools.googleSearch": "LLMProvider team-a/model of type openai has no native tools; "
        "leave this out, or use another"
    }
    found = errors_of([agent(nativeTools=wish), google(), chain(llmProvider="gemini")])
    assert found == {
        "Agent spec.nativeTools.googleSearch": "strategy langchain cannot use native tools; leave this out, "
        "or use one with the backend google-native"
    }


def test_a_native_tool_that_a_provider_claims_and_its_type_has_not_is_its_error() -> None:
    found = errors_of([agent(), provider(nativeTools={"urlContext": True, "googleSearch": False}), chain()])
    assert set(found) == {"LLMProvider spec.nativeTools.urlContext"}


def test_a_native_tool_that_a_provider_offers_is_left_where_the_strategy_cannot_use_it() -> None:
    plan = plan_of([agent(), google(nativeTools={"googleSearch": True}), chain(llmProvider="gemini")])
    assert plan.stages[0].agents[0].native_tools == ()


def test_an_alerts_native_tool_is_for_the_agents_that_can_have_it() -> None:
    stages = [stage({"name": "triage", "llmProvider": "gemini", "strategy": "native-thinking"}, "other")]
    objects = [agent(), agent("other"), provider(), google(), chain(stages=stages)]
    plan = plan_of(objects, alert(nativeTools={"codeExecution": True}))
    assert [item.native_tools for item in plan.stages[0].agents] == [("code_execution",), ()]


def test_an_alerts_native_tool_that_no_agent_can_have_is_its_error() -> None:
    found = errors_of([agent(), provider(), chain()], alert(nativeTools={"urlContext": True, "googleSearch": False}))
    assert found == {
        "Alert spec.nativeTools.urlContext": "no agent of Chain team-a/pods has a provider and a strategy with native "
        "tools; leave this out, or run another chain"
    }


@pytest.mark.parametrize(
    ("made", "backend"),
    [
        (provider(), Backend.OPENAI_NATIVE),
        (provider(backend="openai-native"), Backend.OPENAI_NATIVE),
        (provider(backend="langchain"), Backend.LANGCHAIN),
        (google("model"), Backend.GOOGLE_NATIVE),
        (google("model", backend="langchain"), Backend.LANGCHAIN),
    ],
    ids=["openai", "openai, native", "openai, langchain", "google", "google, langchain"],
)
def test_the_client_of_the_langchain_family_is_the_providers_choice_or_its_types(
    made: AnyResource, backend: Backend
) -> None:
    stages = [stage(replicas=2), stage("other", name="other")]
    plan = plan_of([agent(), agent("other", strategy="react"), made, chain(stages=stages)])
    synthesis, summary, chat = plan.stages[0].synthesis, plan.executive_summary, plan.chat
    assert synthesis is not None and summary is not None and chat is not None
    agents = [*plan.stages[0].agents, *plan.stages[1].agents, synthesis, summary, chat]
    assert {item.provider.backend for item in agents} == {backend}


def test_a_native_strategy_has_its_own_client_whatever_the_provider_chose() -> None:
    chosen = google(backend="langchain")
    plan = plan_of([agent(strategy="native-thinking"), chosen, chain(llmProvider="gemini")])
    assert plan.stages[0].agents[0].provider.backend is Backend.GOOGLE_NATIVE


def test_a_fallback_has_the_client_of_its_own_provider_and_strategy() -> None:
    entries = [
        {"llmProvider": "spare"},
        {"llmProvider": "gemini", "strategy": "native-thinking"},
        {"llmProvider": "gemini"},
    ]
    objects = [agent(), provider(), provider("spare", backend="langchain"), google(), chain(fallback=entries)]
    made = plan_of(objects).stages[0].agents[0]
    assert made.provider.backend is Backend.OPENAI_NATIVE
    backends = [item.provider.backend for item in made.fallback]
    assert backends == [Backend.LANGCHAIN, Backend.GOOGLE_NATIVE, Backend.GOOGLE_NATIVE]


def test_only_the_langchain_family_has_clients_to_choose_from() -> None:
    families = {*BACKENDS.values(), *(backend for type in PROVIDER_TYPES.values() for backend in type.backends)}
    assert Backend.OPENAI_NATIVE not in families
