"""The meter alone: at, below and above each limit."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from tarsy.engine.limits.budget import BudgetTracker, UsageEstimate, cost
from tarsy.engine.model_calls.request import worst_case
from tarsy.plan.model import ObjectRef, PlannedBudget, PlannedRates, ProviderPlan
from tarsy.record.history import BudgetExceeded, BudgetLimit, RunHistory
from tarsy.record.usage import UNKNOWN_USAGE, Usage

A, B, CALL = UUID(int=1), UUID(int=2), UUID(int=3)
RATES = PlannedRates(input=2.0, output=8.0, cached=0.5)


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def used(
    budget: PlannedBudget, tokens: int = 0, tool_calls: int = 0, *, minutes: float = 0.0, rates: PlannedRates = RATES
) -> BudgetTracker:
    """A meter with so much used in one call."""
    clock = Clock()
    meter = BudgetTracker(None, budget, clock=clock)
    if tokens:
        meter.model_started(CALL, UsageEstimate(tokens, 0, rates))
        meter.model_finished(CALL, Usage(input_tokens=tokens), UsageEstimate(rates=rates), 0)
    for _ in range(tool_calls):
        meter.tool_started(CALL)
    clock.now = minutes * 60
    return meter


def limit(found: BudgetExceeded | None) -> BudgetLimit | None:
    return None if found is None else found.limit


@pytest.mark.parametrize(("tokens", "spent"), [(999, None), (1000, "Tokens"), (1001, "Tokens")])
def test_tokens_are_spent_at_their_limit(tokens: int, spent: str | None) -> None:
    assert limit(used(PlannedBudget(tokens=1000), tokens).spent()) == spent


@pytest.mark.parametrize(("tokens", "spent"), [(499_999, None), (500_000, "Cost"), (500_001, "Cost")])
def test_money_is_spent_at_its_limit(tokens: int, spent: str | None) -> None:
    assert limit(used(PlannedBudget(cost_usd=1.0), tokens).spent()) == spent


@pytest.mark.parametrize(("calls", "spent"), [(2, None), (3, "ToolCalls"), (4, "ToolCalls")])
def test_tool_calls_are_spent_at_their_limit_and_models_may_still_be_asked(calls: int, spent: str | None) -> None:
    meter = used(PlannedBudget(tool_calls=3), tool_calls=calls)
    assert limit(meter.spent_for_tools()) == limit(meter.short(A, UsageEstimate())) == spent
    assert meter.spent() is None


@pytest.mark.parametrize(("minutes", "spent"), [(4.99, None), (5.0, "Minutes"), (6.0, "Minutes")])
def test_minutes_are_spent_at_their_limit(minutes: float, spent: str | None) -> None:
    assert limit(used(PlannedBudget(minutes=5), minutes=minutes).spent()) == spent


@pytest.mark.parametrize(("minutes", "short"), [(10.4, None), (10.5, "Minutes"), (11.0, "Minutes")])
def test_time_for_one_more_round_and_the_conclusion_is_kept_back(minutes: float, short: str | None) -> None:
    clock = Clock()
    meter = BudgetTracker(None, PlannedBudget(minutes=16), clock=clock)
    meter.model_started(CALL, UsageEstimate())
    clock.now = 120.0
    meter.model_finished(CALL, Usage(input_tokens=1), UsageEstimate(), 4)
    meter.tool_started(CALL)
    clock.now = 210.0
    meter.tool_finished(CALL)
    clock.now = minutes * 60
    assert limit(meter.short(A, UsageEstimate())) == short  # 2 min for a call, 1.5 for a tool, 2 to conclude
    meter.ahead(synthesis=(), summary=[None])
    clock.now -= 120
    assert limit(meter.short(A, UsageEstimate())) == short


def test_before_anything_is_spent_an_estimate_stops_nobody() -> None:
    assert BudgetTracker(None, PlannedBudget(tokens=100)).short(A, UsageEstimate(1_000)) is None
    assert limit(used(PlannedBudget(tokens=100), 1).short(A, UsageEstimate(1_000))) == "Tokens"


def test_without_a_budget_nothing_is_ever_spent() -> None:
    meter = used(PlannedBudget(), 10**12, 10**6, minutes=10**6)
    assert meter.spent() is meter.spent_for_tools() is meter.short(A, UsageEstimate(10**9, 10**9, RATES)) is None


@pytest.mark.parametrize(("call", "short"), [(249, None), (250, "Tokens"), (251, "Tokens")])
def test_a_conclusion_is_due_when_the_next_call_and_the_one_after_would_reach_the_limit(
    call: int, short: str | None
) -> None:
    assert limit(used(PlannedBudget(tokens=1000), 500).short(A, UsageEstimate(call))) == short


def test_calls_and_conclusions_of_all_agents_count() -> None:
    meter = used(PlannedBudget(tokens=1000), 100)
    assert meter.short(A, UsageEstimate(200)) is None
    assert meter.short(B, UsageEstimate(200)) is None  # 100 + 200 + 200 and one of them once more: 700
    meter.model_started(CALL, UsageEstimate(300))
    assert limit(meter.short(B, UsageEstimate(200))) == "Tokens"  # with what is in flight: 1000
    meter.ended(A)
    assert meter.short(B, UsageEstimate(200)) is None


def test_what_follows_a_stage_is_kept_back() -> None:
    meter = used(PlannedBudget(tokens=1000), 100)
    call = UsageEstimate(200, 50)
    assert meter.short(A, call) is None  # 100 + 2 * 250
    meter.ahead(synthesis=[None], summary=[None])
    assert limit(meter.short(A, call)) == "Tokens"  # a synthesis that reads 250 and writes 50, a summary of 50 and 50


def test_a_summary_that_alone_would_reach_the_limit_does_not_fit() -> None:
    meter = used(PlannedBudget(tokens=1000), 900)
    assert meter.fits(UsageEstimate(99)) is None
    assert limit(meter.fits(UsageEstimate(100))) == "Tokens"


def test_unknown_usage_counts_as_estimated_and_is_told() -> None:
    meter = BudgetTracker(None, PlannedBudget(tokens=1000))
    meter.model_finished(CALL, None, UsageEstimate(1200, 100), 0)
    found = meter.spent()
    assert found is not None and "1,300" in found.message and "estimated" in found.message
    meter = BudgetTracker(None, PlannedBudget(tokens=1000))
    meter.model_finished(CALL, UNKNOWN_USAGE, UsageEstimate(1200, 100), 0)
    assert limit(meter.spent()) == "Tokens"


def test_what_earlier_attempts_used_counts() -> None:
    history = RunHistory(seconds=301.0, tokens=10, cost_usd=Decimal("0.5"), tool_calls=3)
    assert limit(BudgetTracker(None, PlannedBudget(tokens=10), history).spent()) == "Tokens"
    assert limit(BudgetTracker(None, PlannedBudget(cost_usd=0.5), history).spent()) == "Cost"
    assert limit(BudgetTracker(None, PlannedBudget(tool_calls=3), history).spent_for_tools()) == "ToolCalls"
    assert limit(BudgetTracker(None, PlannedBudget(minutes=5.0), history).spent()) == "Minutes"
    assert (
        BudgetTracker(
            None, PlannedBudget(tokens=11, cost_usd=0.51, tool_calls=4, minutes=5.1), history
        ).spent_for_tools()
        is None
    )
    exceeded = BudgetExceeded(BudgetLimit.COST, "out")
    assert BudgetTracker(None, PlannedBudget(), replace(history, exceeded=exceeded)).exceeded == exceeded


def test_the_message_has_the_figures_and_says_whether_the_rest_is_kept() -> None:
    found = used(PlannedBudget(cost_usd=1.0), 600_000).spent()
    assert found is not None and found.message == "The run's budget of US$ 1 is reached: US$ 1.2 are spent."
    found = used(PlannedBudget(tokens=1_000), 600).short(A, UsageEstimate(200))
    assert found is not None
    assert found.message == (
        "The run's budget of 1,000 tokens is reached: 600 are spent, and about 400 more are needed to go on and "
        "conclude."
    )
    found = used(PlannedBudget(tokens=50_000), 20_500).short(A, UsageEstimate(22_439))
    assert found is not None and "20,500 are spent, and about 45,000 more are needed" in found.message
    found = used(PlannedBudget(cost_usd=1.0), 300_000).short(
        A, UsageEstimate(123_456, rates=PlannedRates(input=2, output=2))
    )
    assert found is not None
    assert "US$ 0.6 are spent, and about US$ 0.50 more are needed to go on and conclude." in found.message
    history = RunHistory(seconds=40.0, tokens=1, model_seconds=12.0)
    found = BudgetTracker(None, PlannedBudget(minutes=1.0), history, clock=lambda: 0.0).short(A, UsageEstimate(1))
    assert found is not None and "0.6 have passed, and about 0.5 more are needed" in found.message


@pytest.mark.parametrize(
    ("usage", "rates", "dollars"),
    [
        (Usage(input_tokens=1_000_000, output_tokens=1_000_000), RATES, "10"),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), RATES, "1.4"),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), PlannedRates(input=2.0, output=8.0), "2"),
        (Usage(input_tokens=10, cached_tokens=999), RATES, "0.000005"),
        (Usage(input_tokens=1_000_000, cache_write_tokens=400_000), RATES, "2.2"),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000, cache_write_tokens=600_000), RATES, "1.7"),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000, cache_write_tokens=700_000), RATES, "1.7"),
        (Usage(output_tokens=1_000_000, thinking_tokens=900_000), RATES, "8"),
        (Usage(input_tokens=1), PlannedRates(input=0.1, output=0), "0.0000001"),
        (Usage(), RATES, "0"),
        (None, RATES, None),
        (UNKNOWN_USAGE, RATES, None),
        (Usage(input_tokens=5), None, None),
    ],
)
def test_cost_of_a_call(usage: Usage | None, rates: PlannedRates | None, dollars: str | None) -> None:
    assert cost(usage, rates) == (None if dollars is None else Decimal(dollars))


@pytest.mark.parametrize(
    ("kind", "marks", "dollars"),
    [("anthropic", True, "2.5"), ("anthropic", False, "2"), ("openai", True, "2")],
)
def test_the_worst_case_of_a_marked_request_is_that_all_of_it_is_written_to_the_cache(
    kind: str, marks: bool, dollars: str
) -> None:
    ref = ObjectRef(kind="LLMProvider", namespace="a", name="b")
    provider = ProviderPlan(ref=ref, type=kind, model="m", max_output_tokens=1, rates=RATES, cache_marks=marks)

    worst = worst_case(1_000_000, 1.0, provider, 10_000_000)

    inputs = replace(worst, input_tokens=1_000_000, output_tokens=0)
    assert inputs.cost_usd == Decimal(dollars)
