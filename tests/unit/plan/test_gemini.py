"""What a plan makes of thinking, and of native tools with the tools of MCP servers."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan import gemini
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import PlannedThinking, Vertex
from tarsy.plan.provider_types import provider_type
from tarsy.resources.meta import AnyResource
from unit.plan.builders import agent, alert, chain, google, plan_of, provider, selected, server

SEARCH = {"googleSearch": True}
NATIVE = {"llmProvider": "gemini", "strategy": "native-thinking"}


def errors_of(objects: list[AnyResource], what: Any = None) -> dict[str, str]:
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects, what)
    return {f"{error.kind} {error.field}": error.message for error in raised.value.errors}


@pytest.mark.parametrize(
    ("model", "both", "budget", "level"),
    [
        ("gemini-1.5-pro", False, None, False),
        ("gemini-2.0-flash", False, None, False),
        ("gemini-2.5-pro", False, 32_768, False),
        ("gemini-2.5-pro-preview-06-05", False, 32_768, False),
        ("models/gemini-2.5-flash", False, 24_576, False),
        ("gemini-2.5-flash-lite", False, 24_576, False),
        ("gemini-2.5-flash-image", False, None, False),
        ("gemini-3-pro-preview", True, None, True),
        ("gemini-3.1-flash", True, None, True),
        ("gemini-12-pro", True, None, True),
        ("gemini-flash-latest", True, None, True),
        ("gemma-3-27b-it", True, None, False),
    ],
)
def test_what_a_model_can_do_is_read_from_its_name(model: str, both: bool, budget: int | None, level: bool) -> None:
    assert provider_type("google").combines_tools(model) is both
    assert not provider_type("vertexai").combines_tools(model)
    assert gemini.default_budget(model) == budget
    assert gemini.thinks_by_level(model) is level


def test_thinking_is_part_of_the_plan() -> None:
    plan = plan_of([agent(), google(thinking={"level": "low"}), chain(**NATIVE)])
    assert plan.stages[0].agents[0].provider.thinking == PlannedThinking(level="low")


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"type": "google", "model": "gemini-2.5-pro", "thinking": {"level": "low"}}, "level", "use budget instead"),
        ({"type": "google", "model": "gemini-3-pro", "thinking": {"effort": "low"}}, "effort", "use level or budget"),
        ({"type": "google", "model": "gemini-2.0-flash", "thinking": {"budget": 0}}, "budget", "leave it out"),
        ({"type": "openai", "model": "gpt-5", "thinking": {"budget": 9}}, "budget", "use effort instead"),
    ],
)
def test_a_measure_of_thinking_that_does_not_fit_is_an_error_with_its_remedy(
    spec: dict[str, Any], field: str, remedy: str
) -> None:
    bad = provider(**spec)
    (error,) = check_references(bad, ResourceCatalog([bad], None))
    assert (error.kind, error.field) == ("LLMProvider", f"spec.thinking.{field}")
    assert spec["model"] in error.message and remedy in error.message
    assert set(errors_of([agent(), bad, chain()])) == {f"LLMProvider spec.thinking.{field}"}


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "google", "model": "gemini-2.5-pro", "thinking": {"budget": 128}},
        {"type": "google", "model": "gemini-3-pro", "thinking": {"level": "low"}},
        {"type": "openai", "model": "gpt-5", "thinking": {"effort": "low"}},
    ],
)
def test_a_measure_that_fits_is_none(spec: dict[str, Any]) -> None:
    good = provider(**spec)
    assert check_references(good, ResourceCatalog([good], None)) == []


def test_native_tools_an_agent_wants_beside_servers_are_an_error_on_older_models() -> None:
    wants = agent(mcpServers=selected("kube"), nativeTools=SEARCH)
    old = google(model="gemini-2.5-pro")
    assert errors_of([wants, server(), old, chain(**NATIVE)]) == {
        "Agent spec.nativeTools.googleSearch": "model gemini-2.5-pro of LLMProvider team-a/gemini cannot combine "
        "native tools with the tools of MCP servers; leave one of them out, or use a model from Gemini 3 on"
    }
    assert plan_of([wants, server(), google(), chain(**NATIVE)]).stages[0].agents[0].native_tools == ("google_search",)
    alone = agent(nativeTools=SEARCH)
    assert plan_of([alone, old, chain(**NATIVE)]).stages[0].agents[0].native_tools == ("google_search",)


def test_native_tools_beside_servers_are_an_error_on_vertexai_whatever_the_model() -> None:
    place = {"type": "vertexai", "vertexai": {"project": "p", "credentials": "WorkloadIdentity"}}
    wants = agent(mcpServers=selected("kube"), nativeTools=SEARCH)
    (told,) = errors_of([wants, server(), google(**place), chain(**NATIVE)]).values()
    assert told.endswith("use a model from Gemini 3 on with type google")
    made = plan_of([agent(nativeTools=SEARCH), google(**place), chain(**NATIVE)]).stages[0].agents[0]
    assert made.native_tools == ("google_search",)
    assert made.provider.vertexai == Vertex(project="p", location="global", own_identity=True)


def test_native_tools_an_older_model_offers_give_way_to_servers() -> None:
    objects = [agent(mcpServers=selected("kube")), server(), google(model="gemini-2.5-pro", nativeTools=SEARCH)]
    assert plan_of([*objects, chain(**NATIVE)]).stages[0].agents[0].native_tools == ()


def test_an_alerts_native_tools_beside_servers_are_its_error_where_no_agent_can_have_them() -> None:
    objects = [agent(mcpServers=selected("kube")), server(), google(model="gemini-2.5-pro"), chain(**NATIVE)]
    assert set(errors_of(objects, alert(nativeTools=SEARCH))) == {"Alert spec.nativeTools.googleSearch"}


def test_a_fallback_that_cannot_have_both_is_left_out() -> None:
    wants = agent(mcpServers=selected("kube"), nativeTools=SEARCH)
    fallback = [{"llmProvider": "old"}, {"llmProvider": "new"}]
    objects = [wants, server(), google(), google("old", model="gemini-2.5-pro"), google("new")]
    made = plan_of([*objects, chain(**NATIVE, fallback=fallback)]).stages[0].agents[0]
    assert [entry.provider.ref.name for entry in made.fallback] == ["new"] and made.fallback_skipped == ("old",)
