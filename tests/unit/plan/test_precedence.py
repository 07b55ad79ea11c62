"""The rows of reference section 1.5 that apply now: which level decides a setting."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.model import AgentPlan, Plan, Strategy, SuccessPolicy
from unit.plan.builders import agent, alert, chain, defaults, plan_of, provider, selected, server, stage

NAMES = ("kube", "logs", "traces", "metrics", "tickets")


def plan_with(levels: dict[str, dict[str, Any]]) -> Plan:
    """A plan of one stage and one agent, with what each level sets."""
    slot = {"name": "triage", **levels.get("slot", {})}
    the_stage = stage(slot, **levels.get("stage", {}))
    return plan_of(
        [
            agent(**levels.get("agent", {})),
            defaults(**{"llmProvider": "model", **levels.get("defaults", {})}),
            chain(**{"llmProvider": None, "stages": [the_stage], **levels.get("chain", {})}),
            *(provider(name) for name in ("model", *NAMES)),
            *(server(name) for name in NAMES),
        ],
        alert(**levels.get("alert", {})),
    )


def only(plan: Plan) -> AgentPlan:
    return plan.stages[0].agents[0]


def up_to(field: str, values: dict[str, Any], highest: int) -> dict[str, dict[str, Any]]:
    return {level: {field: value} for level, value in list(values.items())[:highest]}


@pytest.mark.parametrize("highest", range(5))
def test_strategy_comes_from_defaults_agent_chain_or_stage_agent(highest: int) -> None:
    values = dict.fromkeys(("defaults", "agent", "chain", "slot"), "langchain")
    names = list(values)[:highest]
    if names:
        values[names[-1]] = "single-call"
    expected = Strategy.SINGLE_CALL if names else Strategy.LANGCHAIN
    assert only(plan_with(up_to("strategy", values, highest))).strategy is expected


@pytest.mark.parametrize("highest", range(1, 4))
def test_provider_comes_from_defaults_chain_or_stage_agent(highest: int) -> None:
    values = dict(zip(("defaults", "chain", "slot"), NAMES, strict=False))
    assert only(plan_with(up_to("llmProvider", values, highest))).provider.ref.name == NAMES[highest - 1]


@pytest.mark.parametrize("highest", range(6))
def test_iterations_come_from_defaults_agent_chain_stage_or_stage_agent(highest: int) -> None:
    values = {"defaults": 1, "agent": 2, "chain": 3, "stage": 4, "slot": 5}
    assert only(plan_with(up_to("maxIterations", values, highest))).max_iterations == (highest or 20)


@pytest.mark.parametrize("highest", range(6))
def test_servers_come_from_agent_chain_stage_stage_agent_or_alert_and_replace(highest: int) -> None:
    levels = ("agent", "chain", "stage", "slot", "alert")
    values = {level: selected(name) for level, name in zip(levels, NAMES, strict=True)}
    found = [item.name for item in only(plan_with(up_to("mcpServers", values, highest))).servers]
    assert found == ([NAMES[highest - 1]] if highest else [])


def test_an_empty_list_of_servers_leaves_those_of_the_level_below() -> None:
    levels = {"agent": {"mcpServers": selected("kube")}, "chain": {"mcpServers": []}, "slot": {"mcpServers": []}}
    assert [item.name for item in only(plan_with(levels)).servers] == ["kube"]


@pytest.mark.parametrize("highest", range(4))
def test_success_policy_comes_from_defaults_chain_or_stage(highest: int) -> None:
    values = dict.fromkeys(("defaults", "chain", "stage"), "Any")
    names = list(values)[:highest]
    if names:
        values[names[-1]] = "All"
    expected = SuccessPolicy.ALL if names else SuccessPolicy.ANY
    assert plan_with(up_to("successPolicy", values, highest)).stages[0].success_policy is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"defaults": {"llmProvider": "kube"}}, "kube"),
        ({"defaults": {"llmProvider": "kube", "executiveSummary": {"llmProvider": "logs"}}}, "logs"),
        (
            {"defaults": {"executiveSummary": {"llmProvider": "logs"}}, "chain": {"llmProvider": "traces"}},
            "traces",
        ),
        (
            {"chain": {"llmProvider": "traces", "executiveSummary": {"llmProvider": "metrics"}}},
            "metrics",
        ),
        ({"slot": {"llmProvider": "tickets"}}, "model"),
    ],
)
def test_executive_summary_has_a_provider_of_its_own(settings: dict[str, dict[str, Any]], expected: str) -> None:
    summary = plan_with(settings).executive_summary
    assert summary is not None
    assert summary.provider.ref.name == expected
    assert (summary.name, summary.strategy, summary.servers) == ("executive-summary", Strategy.SINGLE_CALL, ())


@pytest.mark.parametrize(
    ("of_defaults", "of_chain", "made"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_executive_summary_is_made_unless_the_nearest_setting_says_no(
    of_defaults: bool | None, of_chain: bool | None, made: bool
) -> None:
    levels: dict[str, dict[str, Any]] = {}
    if of_defaults is not None:
        levels["defaults"] = {"executiveSummary": {"enabled": of_defaults}}
    if of_chain is not None:
        levels["chain"] = {"executiveSummary": {"enabled": of_chain}}
    assert (plan_with(levels).executive_summary is not None) is made


def test_timeouts_are_taken_field_by_field() -> None:
    plan = plan_with(
        {
            "defaults": {"timeouts": {"investigationSeconds": 100, "stallSeconds": 7}},
            "chain": {"timeouts": {"investigationSeconds": 200, "iterationSeconds": 50}},
        }
    )
    limits = plan.limits
    assert (limits.investigation_seconds, limits.stall_seconds, limits.iteration_seconds) == (200, 7, 50)
    assert limits.first_token_seconds == 120


def test_limits_of_concurrency_come_from_defaults_and_chain() -> None:
    plan = plan_with({"defaults": {"maxConcurrent": 4}, "chain": {"maxConcurrent": 2}})
    assert (plan.namespace_limit, plan.chain_limit) == (4, 2)
    assert (plan_with({}).namespace_limit, plan_with({}).chain_limit) == (None, None)


def test_a_namespaces_own_defaults_stand_alone_beside_the_librarys() -> None:
    objects = [agent(), chain(), provider(), defaults("library", maxIterations=9, strategy="single-call")]
    assert only(plan_of(objects)).strategy is Strategy.SINGLE_CALL
    both = plan_of([*objects, defaults(maxIterations=5)])
    assert (only(both).strategy, only(both).max_iterations) == (Strategy.LANGCHAIN, 5)
