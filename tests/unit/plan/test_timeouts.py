"""How long a provider's calls may take: its own words, else what chain or defaults say, else what is built in."""

from typing import Any

import pytest

from tarsy.plan.model import AgentLimits, CallTimeouts, ProviderPlan
from tarsy.plan.timeouts import MAKERS, OWN, call_timeouts
from tarsy.resources.meta import ObjectMeta
from tarsy.resources.v1alpha1.llm_provider import LLMProvider, LLMProviderSpec


def provider(**spec: Any) -> LLMProvider:
    meta = ObjectMeta.model_validate({"name": "local", "namespace": "team-a"})
    found = LLMProviderSpec.model_validate({"type": "openai", "model": "m", **spec})
    return LLMProvider(metadata=meta, spec=found)


def test_a_server_of_ones_own_is_given_more_time_than_a_makers() -> None:
    assert call_timeouts(provider(), AgentLimits()) == MAKERS
    assert call_timeouts(provider(baseURL="http://localhost:8080/v1"), AgentLimits()) == OWN
    assert OWN.silence > 120 and OWN.first_token > OWN.silence and OWN.call >= OWN.first_token


@pytest.mark.parametrize("base", [{}, {"baseURL": "http://localhost:8080/v1"}])
def test_its_own_words_count_before_the_chains_and_those_before_what_is_built_in(base: dict[str, str]) -> None:
    limits = AgentLimits(model_call_seconds=50, first_token_seconds=20, stall_seconds=10, iteration_seconds=70)
    chosen = {"model_call_seconds", "first_token_seconds", "stall_seconds", "iteration_seconds"}
    usual = call_timeouts(provider(**base), AgentLimits())
    found = call_timeouts(provider(**base), limits, chosen)
    assert found == CallTimeouts(silence=usual.silence, first_token=20, stall=10, call=50, iteration=70)
    own = {"silenceSeconds": 1, "firstTokenSeconds": 2, "stallSeconds": 3, "callSeconds": 4}
    found = call_timeouts(provider(**base, timeouts=own), limits, chosen)
    assert found == CallTimeouts(silence=1, first_token=2, stall=3, call=4, iteration=70)


@pytest.mark.parametrize(("call", "iteration"), [(299, 360), (300, 360), (301, 361), (1_000, 1_060)])
def test_an_iteration_holds_a_whole_call_unless_the_chain_says_how_long_it_is(call: int, iteration: int) -> None:
    found = call_timeouts(provider(timeouts={"callSeconds": call}), AgentLimits())
    assert found.iteration == iteration
    fixed = call_timeouts(provider(timeouts={"callSeconds": call}), AgentLimits(), {"iteration_seconds"})
    assert fixed.iteration == 360


def test_a_stored_plan_of_before_is_still_read() -> None:
    old = ProviderPlan.model_validate(
        {"ref": {"kind": "LLMProvider", "namespace": "a", "name": "b"}, "type": "openai", "model": "m"}
    )
    assert old.timeouts is None
    assert AgentLimits.model_validate({"first_token_seconds": 5}).conclusion_seconds == 60
