"""What an agent changes to when its provider fails, and what is kept out of that."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import Plan, Strategy
from tarsy.resources.meta import AnyResource
from unit.plan.builders import LIBRARY, OPEN, agent, alert, chain, defaults, google, plan_of, provider, stage


def entries(*names: str, **rest: Any) -> list[dict[str, Any]]:
    return [{"llmProvider": name, **rest} for name in names]


def world(**of_chain: Any) -> list[AnyResource]:
    return [agent(), provider(), provider("second"), provider("third"), google(), chain(**of_chain)]


def fallback(plan: Plan) -> list[tuple[str, Strategy]]:
    return [(entry.provider.ref.name, entry.strategy) for entry in plan.stages[0].agents[0].fallback]


def error_of(objects: list[AnyResource], what: Any = None) -> tuple[str, str]:
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects, what)
    (error,) = raised.value.errors
    return f"{error.kind} {error.field}", error.message


def test_the_order_of_the_list_is_kept_with_the_strategy_of_each_entry() -> None:
    listed = [*entries("third"), *entries("second", strategy="react"), *entries("gemini", strategy="native-thinking")]
    assert fallback(plan_of(world(fallback=listed))) == [
        ("third", Strategy.LANGCHAIN),
        ("second", Strategy.REACT),
        ("gemini", Strategy.NATIVE_THINKING),
    ]


def test_a_provider_that_is_its_own_fallback_is_an_error_at_the_entry() -> None:
    with pytest.raises(PlanInvalid) as invalid:
        plan_of(world(fallback=entries("model", "second")))
    (error,) = invalid.value.errors
    assert error.field == "spec.fallback[0].llmProvider"
    assert "LLMProvider model is its own fallback" in error.message and "name another" in error.message


def test_an_entry_that_is_another_provider_for_one_agent_of_the_chain_is_no_error() -> None:
    two = stage("triage", {"name": "triage", "displayName": "other", "llmProvider": "second"})
    first, second = plan_of(world(fallback=entries("model", "second"), stages=[two])).stages[0].agents
    assert [entry.provider.ref.name for entry in first.fallback] == ["second"]
    assert [entry.provider.ref.name for entry in second.fallback] == ["model"]


def test_a_list_of_the_defaults_serves_a_chain_whose_own_provider_is_all_it_has() -> None:
    objects = [*world(llmProvider="second"), defaults(llmProvider="model", fallback=entries("second"))]
    (only,) = plan_of(objects).stages[0].agents
    assert (only.fallback, only.fallback_skipped) == ((), ())


def test_defaults_that_stand_in_for_themselves_are_an_error() -> None:
    objects = [*world(llmProvider=None), defaults(llmProvider="model", fallback=entries("model"))]
    with pytest.raises(PlanInvalid) as invalid:
        plan_of(objects)
    assert [str(error).split(": ")[:2] for error in invalid.value.errors] == [
        ["InvestigationDefaults team-a/default", "spec.fallback[0].llmProvider"]
    ]


def test_an_entry_that_cannot_do_the_agents_work_is_kept_out_and_named() -> None:
    objects = world(llmProvider="gemini", strategy="native-thinking", fallback=entries("second", "third"))
    objects.append(google("other"))
    listed = [*entries("second"), *entries("other"), *entries("third", strategy="langchain")]
    objects[-2] = chain(llmProvider="gemini", strategy="native-thinking", fallback=listed)
    (only,) = plan_of(objects).stages[0].agents
    assert [entry.provider.ref.name for entry in only.fallback] == ["other", "third"]
    assert only.fallback_skipped == ("second",)


def test_a_list_in_which_no_entry_can_do_the_work_is_an_error_that_says_why() -> None:
    objects = world(
        llmProvider="gemini",
        strategy="native-thinking",
        fallback=entries("second"),
        executiveSummary={"enabled": False},
        chat={"enabled": False},
    )
    field, message = error_of(objects)
    assert field == "Chain spec.fallback"
    assert message == (
        "no entry can replace LLMProvider team-a/gemini with strategy native-thinking: LLMProvider team-a/second "
        "does not support the backend of strategy native-thinking; set a strategy that the provider of an entry "
        "supports, or name other providers"
    )


def test_agents_without_tools_keep_their_work_on_a_fallback() -> None:
    plan = plan_of(
        world(stages=[stage(replicas=2)], fallback=[*entries("gemini", strategy="native-thinking"), *entries("third")])
    )
    synthesis, summary = plan.stages[0].synthesis, plan.executive_summary
    assert synthesis is not None and summary is not None
    assert [entry.strategy for entry in synthesis.fallback] == [
        Strategy.SYNTHESIS_NATIVE_THINKING,
        Strategy.SYNTHESIS,
    ]
    assert [entry.strategy for entry in summary.fallback] == [Strategy.SINGLE_CALL, Strategy.SINGLE_CALL]


def test_a_synthesis_takes_the_list_of_its_stage() -> None:
    objects = world(stages=[stage(replicas=2, fallback=entries("third"))], fallback=entries("second"))
    synthesis = plan_of(objects).stages[0].synthesis
    assert synthesis is not None
    assert [entry.provider.ref.name for entry in synthesis.fallback] == ["third"]


@pytest.mark.parametrize("wisher", ["agent", "alert"])
def test_a_fallback_without_a_native_tool_that_is_needed_is_kept_out(wisher: str) -> None:
    wish = {"googleSearch": True}
    objects = [
        agent(strategy="native-thinking", nativeTools=wish if wisher == "agent" else None),
        google(),
        google("other", nativeTools={"urlContext": True}),
        provider("second"),
        chain(llmProvider="gemini", fallback=[*entries("second", strategy="langchain"), *entries("other")]),
    ]
    (only,) = plan_of(objects, alert(nativeTools=wish if wisher == "alert" else None)).stages[0].agents
    assert only.fallback_skipped == ("second",)
    assert [entry.native_tools for entry in only.fallback] == [("google_search", "url_context")]


def test_a_native_tool_of_the_providers_own_is_dropped_on_a_fallback_that_has_none() -> None:
    objects = [
        agent(strategy="native-thinking"),
        google(nativeTools={"googleSearch": True}),
        provider("second"),
        chain(llmProvider="gemini", fallback=entries("second", strategy="langchain")),
    ]
    (only,) = plan_of(objects).stages[0].agents
    assert only.native_tools == ("google_search",)
    assert [(entry.provider.ref.name, entry.native_tools) for entry in only.fallback] == [("second", ())]


def test_a_fallback_that_is_not_there_is_told_at_its_field() -> None:
    field, message = error_of(world(fallback=entries("second", "nowhere")))
    assert field == "Chain spec.fallback[1].llmProvider"
    assert message.startswith("there is no LLMProvider nowhere in namespace team-a")


@pytest.mark.parametrize("opened", [True, False])
def test_a_fallback_of_the_librarys_defaults_must_admit_the_run(opened: bool) -> None:
    shared = provider("shared", LIBRARY, **({"allowedNamespaces": OPEN} if opened else {}))
    objects = [agent(), provider(), chain(), defaults(LIBRARY, fallback=entries("shared")), shared]
    if opened:
        assert fallback(plan_of(objects)) == [("shared", Strategy.LANGCHAIN)]
    else:
        field, message = error_of(objects)
        assert field == "InvestigationDefaults spec.fallback[0].llmProvider"
        assert "may not be used from namespace team-a" in message
