"""Limits and budgets: field by field, and only ever smaller for a single run."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import AgentLimits, Plan, PlannedBudget
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.common import Loop, Timeouts
from unit.plan.builders import agent, chain, defaults, google, plan_of, provider, selected, server, stage

RATES = {"inputPerMillion": 1.25, "outputPerMillion": 10}


def plan(of_defaults: dict[str, Any], of_chain: dict[str, Any], of_run: dict[str, Any] | None = None) -> Plan:
    objects: list[AnyResource] = [agent(), provider(rates=RATES), defaults(**of_defaults), chain(**of_chain)]
    return plan_of(objects, budget=of_run)


def test_every_limit_of_a_plan_can_be_set() -> None:
    assert set(AgentLimits.model_fields) == set(Timeouts.model_fields) | set(Loop.model_fields)


def test_figures_of_the_loop_are_taken_field_by_field() -> None:
    limits = plan({"loop": {"consecutiveTimeouts": 5, "emptyAnswers": 0}}, {"loop": {"emptyAnswers": 7}}).limits
    assert (limits.consecutive_timeouts, limits.empty_answers) == (5, 7)
    assert (AgentLimits().consecutive_timeouts, AgentLimits().empty_answers) == (2, 2)


def test_a_chains_budget_replaces_that_of_the_namespace_field_by_field() -> None:
    found = plan({"budget": {"tokens": 100, "minutes": 5}}, {"budget": {"tokens": 900, "costUSD": 2.5}}).budget
    assert found == PlannedBudget(tokens=900, cost_usd=2.5, minutes=5)
    assert plan({}, {}).budget == PlannedBudget()


@pytest.mark.parametrize(("of_run", "expected"), [(899, 899), (900, 900), (901, 900)])
def test_a_runs_own_budget_only_makes_it_smaller(of_run: int, expected: int) -> None:
    found = plan({}, {"budget": {"tokens": 900}}, {"tokens": of_run, "toolCalls": 3}).budget
    assert found == PlannedBudget(tokens=expected, tool_calls=3)


def test_rates_stand_in_the_plan_of_a_provider() -> None:
    rates = plan({}, {}).stages[0].agents[0].provider.rates
    assert rates is not None
    assert (rates.input, rates.output, rates.cached) == (1.25, 10, None)


@pytest.mark.parametrize("place", ["defaults", "chain", "run"])
def test_a_budget_in_dollars_needs_the_rates_of_every_model_of_the_run(place: str) -> None:
    budget = {"costUSD": 1}
    at = {"defaults": "InvestigationDefaults team-a/default", "chain": "Chain team-a/pods"}
    at["run"] = "Investigation team-a/i1"
    stages = [stage(replicas=2, synthesis={"llmProvider": "joiner"}, fallback=[{"llmProvider": "standby"}])]
    block = {"budget": budget} if place == "chain" else {}
    objects = [
        agent(),
        *(provider(name) for name in ("model", "joiner", "standby", "writer", "answerer")),
        google("priced", rates=RATES),
        defaults(**({"budget": budget} if place == "defaults" else {})),
        chain(stages=stages, executiveSummary={"llmProvider": "writer"}, chat={"llmProvider": "answerer"}, **block),
    ]
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects, budget=budget if place == "run" else None)
    assert sorted((error.name, error.field) for error in raised.value.errors) == [
        (name, "spec.rates") for name in ("joiner", "model", "standby", "writer")
    ]
    (message,) = {error.message for error in raised.value.errors}
    assert message == (
        f"is not set and the price of m is not known, but {at[place]} has a budget in dollars (spec.budget.costUSD); "
        "set inputPerMillion and outputPerMillion, or leave costUSD out"
    )


def test_a_budget_in_dollars_needs_the_rates_of_whoever_summarizes() -> None:
    objects = [
        agent(mcpServers=selected("kube")),
        server(),
        provider(rates=RATES),
        provider("cheap"),
        chain(budget={"costUSD": 1}, summarization={"llmProvider": "cheap"}),
    ]
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects)
    assert [(error.name, error.field) for error in raised.value.errors] == [("cheap", "spec.rates")]


def test_other_budgets_need_no_rates() -> None:
    objects = [agent(), provider(), chain(budget={"tokens": 10, "toolCalls": 1, "minutes": 0.5})]
    assert plan_of(objects).budget == PlannedBudget(tokens=10, tool_calls=1, minutes=0.5)
