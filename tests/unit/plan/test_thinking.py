"""Which measure of thinking fits which model."""

import pytest

from tarsy.plan.claude import thinks_adaptively
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.provider_types import provider_type
from unit.plan.builders import agent, chain, plan_of, provider


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-sonnet-4-5-20250929", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-6", False),
        ("claude-opus-4-7", True),
        ("claude-opus-5", True),
        ("claude-haiku-5-5", True),
        ("anthropic/claude-sonnet-5-20260101", True),
        ("claude-3-7-sonnet-latest", False),
        ("house-claude", False),
    ],
)
def test_newer_claudes_decide_themselves_how_much_they_think(model: str, adaptive: bool) -> None:
    assert thinks_adaptively(model) is adaptive


@pytest.mark.parametrize(
    ("type", "model", "fields"),
    [
        ("anthropic", "claude-sonnet-4-5", ("budget", "effort")),
        ("anthropic", "claude-opus-5", ("effort",)),
        ("xai", "grok-4", ("effort",)),
        ("openai", "gpt-5", ("effort",)),
        ("google", "gemini-3-pro", ("level", "budget")),
        ("google", "gemini-2.5-pro", ("budget",)),
        ("google", "gemini-2.0-flash", ()),
    ],
)
def test_a_model_has_its_own_measure(type: str, model: str, fields: tuple[str, ...]) -> None:
    assert provider_type(type).thinking_measures(model) == fields


def test_a_measure_that_does_not_fit_is_an_error_with_its_remedy() -> None:
    claude = provider(type="anthropic", model="claude-opus-5", thinking={"budget": 4096})
    with pytest.raises(PlanInvalid) as raised:
        plan_of([agent(), claude, chain()])
    (error,) = raised.value.errors
    assert (error.kind, error.field) == ("LLMProvider", "spec.thinking.budget")
    assert "use effort instead" in error.message
