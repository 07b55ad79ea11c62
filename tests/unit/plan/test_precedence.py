"""Which level decides each setting; the name of a test states the levels."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.model import AgentPlan, Plan, Strategy, SuccessPolicy
from unit.plan.builders import agent, alert, chain, defaults, google, plan_of, provider, selected, server, stage

NAMES = ("kube", "logs", "traces", "metrics", "tickets")


def plan_with(levels: dict[str, dict[str, Any]]) -> Plan:
    """A plan of one stage and one agent, with what each level sets."""
    slot = {"name": "triage", **levels.get("slot", {})}
    the_stage = stage(slot, **levels.get("stage", {}))
    return plan_of(
        [
            agent(**levels.get("agent", {})),
            agent("answerer", **levels.get("chat_agent", {})),
            defaults(**{"llmProvider": "model", **levels.get("defaults", {})}),
            chain(**{"llmProvider": None, "stages": [the_stage], **levels.get("chain", {})}),
            *(provider(name) for name in ("model", *NAMES)),
            *(server(name) for name in NAMES),
        ],
        alert(**levels.get("alert", {})),
    )


def only(plan: Plan) -> AgentPlan:
    return plan.stages[0].agents[0]


def chat(levels: dict[str, dict[str, Any]]) -> AgentPlan:
    """The chat of a plan, whose block names the agent `answerer` when one is given."""
    given = dict(levels)
    block = {"agent": "answerer"} if "chat_agent" in given else {}
    block |= given.pop("chat", {})
    given["chain"] = {"chat": block, **given.get("chain", {})}
    found = plan_with(given).chat
    assert found is not None
    return found


def up_to(field: str, values: dict[str, Any], highest: int) -> dict[str, dict[str, Any]]:
    return {level: {field: value} for level, value in list(values.items())[:highest]}


@pytest.mark.parametrize("highest", range(5))
def test_row_llm_backend_strategy_comes_from_defaults_agent_chain_or_stage_agent(highest: int) -> None:
    values = dict.fromkeys(("defaults", "agent", "chain", "slot"), "langchain")
    names = list(values)[:highest]
    if names:
        values[names[-1]] = "single-call"
    expected = Strategy.SINGLE_CALL if names else Strategy.LANGCHAIN
    assert only(plan_with(up_to("strategy", values, highest))).strategy is expected


@pytest.mark.parametrize("highest", range(1, 4))
def test_row_llm_provider_comes_from_defaults_chain_or_stage_agent(highest: int) -> None:
    values = dict(zip(("defaults", "chain", "slot"), NAMES, strict=False))
    assert only(plan_with(up_to("llmProvider", values, highest))).provider.ref.name == NAMES[highest - 1]


@pytest.mark.parametrize("highest", range(6))
def test_row_max_iterations_come_from_defaults_agent_chain_stage_or_stage_agent(highest: int) -> None:
    values = {"defaults": 1, "agent": 2, "chain": 3, "stage": 4, "slot": 5}
    assert only(plan_with(up_to("maxIterations", values, highest))).max_iterations == (highest or 20)


@pytest.mark.parametrize("highest", range(6))
def test_row_mcp_servers_come_from_agent_chain_stage_stage_agent_or_alert_and_replace(highest: int) -> None:
    levels = ("agent", "chain", "stage", "slot", "alert")
    values = {level: selected(name) for level, name in zip(levels, NAMES, strict=True)}
    found = [item.name for item in only(plan_with(up_to("mcpServers", values, highest))).servers]
    assert found == ([NAMES[highest - 1]] if highest else [])


def test_row_mcp_servers_an_empty_list_leaves_those_of_the_level_below() -> None:
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
def test_row_exec_summary_provider_is_its_own(settings: dict[str, dict[str, Any]], expected: str) -> None:
    summary = plan_with(settings).executive_summary
    assert summary is not None
    assert summary.provider.ref.name == expected
    assert (summary.name, summary.strategy, summary.servers) == ("executive-summary", Strategy.SINGLE_CALL, ())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"defaults": {"llmProvider": "kube"}}, None),
        ({"defaults": {"summarization": {"llmProvider": "logs"}}, "chain": {"llmProvider": "kube"}}, "logs"),
        (
            {
                "defaults": {"summarization": {"llmProvider": "logs"}},
                "chain": {"summarization": {"llmProvider": "traces"}},
            },
            "traces",
        ),
    ],
)
def test_row_summarization_provider_is_its_own_or_each_agents(
    settings: dict[str, dict[str, Any]], expected: str | None
) -> None:
    plan = plan_with({**settings, "agent": {"mcpServers": selected("kube")}})
    summarizer = only(plan).summarizer
    assert (summarizer.ref.name if summarizer else None) == expected
    assert plan.executive_summary is not None and plan.executive_summary.summarizer is None, "it has no tools"


def test_an_agent_without_tools_has_no_summarizer() -> None:
    plan = plan_with({"chain": {"summarization": {"llmProvider": "logs"}}})
    assert only(plan).summarizer is None


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


@pytest.mark.parametrize("highest", range(5))
def test_row_fallback_providers_come_from_defaults_chain_stage_or_stage_agent(highest: int) -> None:
    levels = ("defaults", "chain", "stage", "slot")
    values = {level: [{"llmProvider": name}] for level, name in zip(levels, NAMES, strict=False)}
    plan = plan_with(up_to("fallback", values, highest))
    assert [entry.provider.ref.name for entry in only(plan).fallback] == ([NAMES[highest - 1]] if highest else [])


@pytest.mark.parametrize("clearing", ["chain", "stage", "slot"])
def test_row_fallback_providers_an_empty_list_clears_those_of_the_level_below(clearing: str) -> None:
    levels = {"defaults": {"fallback": [{"llmProvider": "kube"}]}, clearing: {"fallback": []}}
    plan = plan_with(levels)
    assert only(plan).fallback == ()
    summary = plan.executive_summary
    assert summary is not None
    assert bool(summary.fallback) is (clearing != "chain")


@pytest.mark.parametrize("highest", range(4))
def test_row_native_tools_come_from_provider_agent_or_alert_key_by_key(highest: int) -> None:
    """Each level turns one tool of the level below off and one of its own on."""
    wishes = [
        {"googleSearch": True},
        {"googleSearch": False, "codeExecution": True},
        {"codeExecution": False, "urlContext": True},
    ]
    of_provider, of_agent, of_alert = [wish if highest > level else {} for level, wish in enumerate(wishes)]
    plan = plan_of(
        [
            agent(strategy="native-thinking", nativeTools=of_agent),
            chain(llmProvider="gemini"),
            google(nativeTools=of_provider),
        ],
        alert(nativeTools=of_alert),
    )
    expected = [(), ("google_search",), ("code_execution",), ("url_context",)][highest]
    assert only(plan).native_tools == expected


@pytest.mark.parametrize("highest", range(5))
def test_row_chat_strategy_comes_from_defaults_agent_chain_or_chat_block(highest: int) -> None:
    values = dict.fromkeys(("defaults", "chat_agent", "chain", "chat"), "langchain")
    names = list(values)[:highest]
    if names:
        values[names[-1]] = "react"
    assert chat(up_to("strategy", values, highest)).strategy is (Strategy.REACT if names else Strategy.LANGCHAIN)


@pytest.mark.parametrize("highest", range(1, 4))
def test_row_chat_provider_comes_from_defaults_chain_or_chat_block(highest: int) -> None:
    values = dict(zip(("defaults", "chain", "chat"), NAMES, strict=False))
    assert chat(up_to("llmProvider", values, highest)).provider.ref.name == NAMES[highest - 1]


@pytest.mark.parametrize("highest", range(5))
def test_row_chat_iterations_come_from_defaults_agent_chain_or_chat_block(highest: int) -> None:
    values = {"defaults": 1, "chat_agent": 2, "chain": 3, "chat": 4}
    assert chat(up_to("maxIterations", values, highest)).max_iterations == (highest or 20)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({}, []),
        ({"chat_agent": {"mcpServers": selected("kube")}}, ["kube"]),
        ({"chat_agent": {"mcpServers": selected("kube")}, "slot": {"mcpServers": selected("logs")}}, ["logs"]),
        ({"slot": {"mcpServers": selected("logs")}, "chain": {"mcpServers": selected("traces")}}, ["traces"]),
        ({"chain": {"mcpServers": selected("traces")}, "chat": {"mcpServers": selected("metrics")}}, ["metrics"]),
        ({"chat": {"mcpServers": selected("metrics")}, "alert": {"mcpServers": selected("tickets")}}, ["tickets"]),
    ],
)
def test_row_chat_servers_are_the_agents_the_stages_the_chains_the_chat_blocks_or_the_alerts(
    levels: dict[str, dict[str, Any]], expected: list[str]
) -> None:
    assert [item.name for item in chat(levels).servers] == expected


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
