"""Rights never mix: who may answer agents whose tools act with another namespace's rights, and how far those reach."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import AgentPlan, Plan, ProviderPlan
from tarsy.plan.reach import LARGEST_KEPT, acts_elsewhere, read_plan
from tarsy.resources.meta import AnyResource
from unit.plan.builders import (
    LIBRARY,
    OPEN,
    TEAM,
    agent,
    alert,
    chain,
    defaults,
    plan_of,
    provider,
    selected,
    server,
    stage,
)

SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def library(**of_chain: Any) -> list[AnyResource]:
    """A chain of the library whose second agent has a tool that acts with the library's rights."""
    stages = [stage("first", name="one"), stage("triage", "first", name="two")]
    return [
        chain(namespace=LIBRARY, allowedNamespaces=OPEN, **{"stages": stages, **of_chain}),
        agent("first", LIBRARY),
        agent(namespace=LIBRARY, mcpServers=selected("kube")),
        server(namespace=LIBRARY),
        provider(namespace=LIBRARY, allowedNamespaces=OPEN),
        provider("evil"),
    ]


def agents_of(plan: Plan) -> Iterator[AgentPlan]:
    for one in plan.stages:
        yield from one.agents
        if one.synthesis:
            yield one.synthesis
    yield from (one for one in (plan.executive_summary, plan.chat) if one)


def providers_of(plan: Plan) -> set[str]:
    def all_of(one: AgentPlan) -> Iterator[ProviderPlan]:
        yield one.provider
        yield from (entry.provider for entry in one.fallback)
        if one.summarizer:
            yield one.summarizer

    return {f"{p.ref.namespace}/{p.ref.name}" for one in agents_of(plan) for p in all_of(one)}


EVIL: list[dict[str, Any]] = [
    {"llmProvider": "evil"},
    {"fallback": [{"llmProvider": "evil"}]},
    {"summarization": {"llmProvider": "evil"}},
    {"executiveSummary": {"llmProvider": "evil"}},
]


@pytest.mark.parametrize("setting", EVIL, ids=lambda one: next(iter(one)))
def test_no_provider_that_the_runs_defaults_name_serves_a_run_with_the_librarys_tools(setting: dict[str, Any]) -> None:
    plan = plan_of([*library(llmProvider=None), defaults(**setting), defaults(LIBRARY, llmProvider="model")])
    assert providers_of(plan) == {f"{LIBRARY}/model"}
    field = next(iter(setting))
    (said,) = plan.not_used
    assert said.startswith(f"InvestigationDefaults {TEAM}/default: spec.{field}")
    assert "LLMProvider evil is not used: MCPServer library/kube acts with the rights of namespace library" in said
    assert f"spec.allowedProviderNamespaces of Chain {LIBRARY}/pods" in said


@pytest.mark.parametrize("setting", EVIL, ids=lambda one: next(iter(one)))
def test_a_chain_that_admits_the_namespace_takes_its_providers(setting: dict[str, Any]) -> None:
    chosen = "model" if "fallback" in setting else None  # nobody is a fallback of their own
    plan = plan_of(
        [
            *library(llmProvider=chosen, allowedProviderNamespaces=OPEN),
            defaults(**{"llmProvider": "evil", **setting}),
            defaults(LIBRARY, llmProvider="model"),
        ]
    )
    assert f"{TEAM}/evil" in providers_of(plan) and plan.not_used == ()


def test_a_chain_admits_by_label() -> None:
    grant = {"from": "Selector", "selector": {"matchLabels": {"trusted": "yes"}}}
    objects = [*library(llmProvider=None, allowedProviderNamespaces=grant), defaults(llmProvider="evil")]
    objects.append(defaults(LIBRARY, llmProvider="model"))
    assert providers_of(plan_of(objects)) == {f"{LIBRARY}/model"}
    assert providers_of(plan_of(objects, namespaces={TEAM: {"trusted": "yes"}})) == {f"{TEAM}/evil"}


def test_without_a_provider_of_the_chains_namespace_the_error_says_which_one_is_not_used() -> None:
    with pytest.raises(PlanInvalid, match=r"in namespace library \(InvestigationDefaults team-a/default.*evil"):
        plan_of([*library(llmProvider=None), defaults(llmProvider="evil")])


def test_a_setting_that_the_chain_overrides_is_not_told_of() -> None:
    plan = plan_of([*library(), defaults(llmProvider="evil")])
    assert providers_of(plan) == {f"{LIBRARY}/model"} and plan.not_used == ()


def test_an_empty_list_of_fallbacks_names_nobody_and_holds() -> None:
    shared = defaults(LIBRARY, fallback=[{"llmProvider": "spare"}])
    spare = provider("spare", LIBRARY, allowedNamespaces=OPEN)
    plan = plan_of([*library(), defaults(fallback=[]), shared, spare])
    assert providers_of(plan) == {f"{LIBRARY}/model"} and plan.not_used == ()
    plan = plan_of([*library(), defaults(fallback=[{"llmProvider": "evil"}]), shared, spare])
    assert providers_of(plan) == {f"{LIBRARY}/model", f"{LIBRARY}/spare"} and len(plan.not_used) == 1


def test_tools_that_only_the_chat_has_count() -> None:
    bare = {"stages": [stage("first")], "chat": {"mcpServers": selected("kube")}, "llmProvider": None}
    plan = plan_of([*library(**bare), defaults(llmProvider="evil"), defaults(LIBRARY, llmProvider="model")])
    assert providers_of(plan) == {f"{LIBRARY}/model"}


def test_a_chain_without_such_tools_takes_the_providers_of_the_runs_defaults() -> None:
    bare = {"stages": [stage("first")], "llmProvider": None}
    plan = plan_of([*library(**bare), defaults(llmProvider="evil")])
    assert providers_of(plan) == {f"{TEAM}/evil"}


def test_servers_of_its_own_that_an_alert_brings_are_not_the_librarys_tools() -> None:
    objects = [*library(llmProvider=None), server("own"), defaults(llmProvider="evil")]
    plan = plan_of(objects, alert(mcpServers=selected("own")))
    assert providers_of(plan) == {f"{TEAM}/evil"}


def test_a_chain_of_the_runs_namespace_names_its_own_providers_and_reaches_no_further() -> None:
    shared = server("shared", LIBRARY, allowedNamespaces=OPEN)
    plan = plan_of([chain(), agent(), provider(), shared], alert(mcpServers=selected("shared")))
    (one,) = plan.stages[0].agents[0].servers
    assert one.reach is not None and (one.reach.foreign, one.reach.namespace) == (True, TEAM)
    assert providers_of(plan) == {f"{TEAM}/model"}


def test_the_librarys_chat_agent_brings_no_server_into_a_chain_that_the_server_does_not_admit() -> None:
    def objects(**of_server: Any) -> list[AnyResource]:
        shared = agent("chat-agent", LIBRARY, allowedNamespaces=OPEN, mcpServers=selected("kube"))
        return [chain(), agent(), provider(), shared, server(namespace=LIBRARY, **of_server)]

    plan = plan_of(objects())
    assert plan.chat is not None and plan.chat.servers == ()
    assert "MCPServer library/kube is not used in Chain team-a/pods" in plan.not_used[0]
    plan = plan_of(objects(allowedNamespaces=OPEN))
    assert plan.chat is not None and [one.name for one in plan.chat.servers] == ["kube"] and plan.not_used == ()


@pytest.mark.parametrize(
    ("spec", "foreign"),
    [
        ({}, True),
        ({"transport": {"type": "http", "http": {"url": "http://127.0.0.1:1/", "tokenAudience": "tools"}}}, False),
        (
            {
                "transport": {
                    "type": "http",
                    "http": {
                        "url": "http://127.0.0.1:1/",
                        "tokenAudience": "tools",
                        "headers": [{"name": "X-Key", **SECRET}],
                    },
                }
            },
            True,
        ),
        ({"transport": {"type": "stdio", "stdio": {"command": "x"}}}, True),
        ({"transport": {"type": "stdio", "stdio": {"command": "x", "kubeconfig": True}}}, False),
        (
            {
                "transport": {
                    "type": "stdio",
                    "stdio": {"command": "x", "kubeconfig": True, "env": [{"name": "A", **SECRET}]},
                }
            },
            True,
        ),
        ({"transport": {"type": "http"}, "run": {"image": "x", "port": 80}}, True),
        ({"transport": {"type": "http"}, "run": {"image": "x", "port": 80, "scope": "PerRun"}}, True),
        (
            {"transport": {"type": "http"}, "run": {"image": "x", "port": 80, "scope": "PerRun", "kubeconfig": True}},
            False,
        ),
        (
            {
                "transport": {"type": "http"},
                "run": {
                    "image": "x",
                    "port": 80,
                    "scope": "PerRun",
                    "kubeconfig": True,
                    "env": [{"name": "A", **SECRET}],
                },
            },
            True,
        ),
    ],
)
def test_whose_rights_a_server_acts_with(spec: dict[str, Any], foreign: bool) -> None:
    assert acts_elsewhere(server(namespace=LIBRARY, **spec), TEAM) is foreign
    assert acts_elsewhere(server(namespace=TEAM, **spec), TEAM) is False


def reach_of(namespaces: dict[str, dict[str, str]] | None = None, namespace: str = TEAM, **reach: Any) -> Any:
    objects = library()
    objects[3] = server(namespace=LIBRARY, reach=reach, instructions="Look well.")
    plan = plan_of(objects, namespaces=namespaces, namespace=namespace)
    (one,) = plan.stages[1].agents[0].servers
    assert one.reach is not None
    return one


def test_a_server_of_another_namespace_reaches_the_runs_namespace_by_default() -> None:
    one = reach_of()
    assert (one.reach.namespace, one.reach.bound_by, one.reach.arguments) == (TEAM, "Argument", ("namespace",))
    assert "Look well." in one.instructions and f"reach namespace {TEAM} and no other" in one.instructions


def test_the_owner_grants_more_to_some() -> None:
    grant = {"from": "Selector", "selector": {"matchLabels": {"sre": "yes"}}}
    assert reach_of(unboundNamespaces=grant).reach.namespace == TEAM
    granted = reach_of({TEAM: {"sre": "yes"}}, unboundNamespaces=grant)
    assert granted.reach.foreign and granted.reach.namespace is None and granted.instructions == "Look well."


def test_a_run_of_the_servers_own_namespace_is_not_bound() -> None:
    one = reach_of(namespace=LIBRARY, boundBy="Server")
    assert (one.reach.foreign, one.reach.namespace, one.reach.bound_by) == (False, None, "Server")


def test_a_plan_from_before_is_read_and_bound() -> None:
    plan = plan_of(library())
    old = json.loads(plan.dump())
    del old["not_used"]
    for one in old["stages"]:
        for slot in one["agents"]:
            for kept in slot["servers"]:
                del kept["reach"]
    for kept in old["chat"]["servers"]:
        del kept["reach"]
    read = read_plan(json.dumps(old))
    assert read.chat is not None
    for one in (*read.stages[1].agents[0].servers, *read.chat.servers):
        assert one.reach is not None and (one.reach.foreign, one.reach.namespace) == (True, TEAM)
    assert read_plan(plan.dump()) == plan


def test_equal_plans_are_parsed_once_and_others_are_not_mistaken_for_them() -> None:
    stored = plan_of(library()).dump()
    assert read_plan(stored) is read_plan(bytes(bytearray(stored)))
    other = json.loads(stored)
    other["namespace"] = "team-b"
    assert read_plan(json.dumps(other)).namespace == "team-b"


@pytest.mark.parametrize(("more", "kept"), [(-1, True), (0, True), (1, False)])
def test_a_plan_is_kept_parsed_up_to_a_size(more: int, kept: bool) -> None:
    stored = json.dumps(json.loads(plan_of(library()).dump()))
    padded = stored + " " * (LARGEST_KEPT + more - len(stored))
    assert (read_plan(padded) is read_plan(padded)) is kept
    assert read_plan(padded) == read_plan(stored)


def test_a_plan_that_cannot_be_read_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValidationError):
            read_plan("{}")
