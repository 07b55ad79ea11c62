"""List prices of well-known models, and that nothing else has a price by guessing."""

import re
from decimal import Decimal

import pytest

from tarsy.engine.limits.budget import cost
from tarsy.plan.model import PlannedRates, ProviderPlan
from tarsy.plan.rates import AS_OF, SOURCE, bundled
from tarsy.record.usage import Usage
from unit.plan.builders import agent, chain, plan_of, provider


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-2025-08-07", "gpt-5-latest"])
def test_a_well_known_model_has_its_list_price_dated_or_not(model: str) -> None:
    assert bundled("openai", model, None) == PlannedRates(input=1.25, cached=0.125, output=10, as_of=AS_OF)


@pytest.mark.parametrize(
    ("kind", "model", "base_url"),
    [
        pytest.param("openai", "gpt-5", "http://vllm:8000/v1", id="another-address"),
        pytest.param("openai", "gpt-5-of-mine", None, id="only-begins-so"),
        pytest.param("openai", "gpt-99", None, id="not-known"),
        pytest.param("google", "gpt-5", None, id="another-maker"),
        pytest.param("vertexai", "gemini-2.5-pro", None, id="prices-by-region"),
    ],
)
def test_what_is_not_known_stays_unknown(kind: str, model: str, base_url: str | None) -> None:
    assert bundled(kind, model, base_url) is None


@pytest.mark.parametrize(("tokens", "dollars"), [(200_000, "0.25"), (200_001, "0.5000025")])
def test_a_long_call_costs_its_own_price_from_its_first_token(tokens: int, dollars: str) -> None:
    assert cost(Usage(input_tokens=tokens), bundled("google", "gemini-2.5-pro", None)) == Decimal(dollars)


def test_the_table_says_of_when_and_where_from_it_is() -> None:
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", AS_OF)
    assert SOURCE


def test_requests_are_marked_for_a_prompt_cache_unless_the_provider_says_no() -> None:
    def planned(**spec: str) -> ProviderPlan:
        return plan_of([chain(), agent(), provider(type="anthropic", **spec)]).stages[0].agents[0].provider

    assert planned().cache_marks and planned(promptCaching="Automatic").cache_marks
    assert not planned(promptCaching="Disabled").cache_marks
    assert "cache_marks" not in planned().model_dump()  # so that older workers can read the plan
