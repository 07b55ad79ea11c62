"""What a plan holds, and what refuses one."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.builtin import SYNTHESIS_INSTRUCTIONS
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.model import ConfigMapKey, HttpTransport, SecretKey, StdioTransport, Strategy
from tarsy.plan.resolve import PlanRequest, resolve
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


def errors_of(objects: list[AnyResource], what: Any = None) -> dict[str, str]:
    """Field of each error, with its kind, to its message."""
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects, what)
    return {f"{error.kind} {error.field}": error.message for error in raised.value.errors}


def test_every_error_of_a_plan_is_reported_at_once_by_field() -> None:
    the_chain = chain(
        llmProvider="modle",
        executiveSummary={"llmProvider": "writer"},
        stages=[
            stage("triage", {"name": "triage", "llmProvider": "nobody"}),
            stage(
                {"name": "ghost", "strategy": "native-thinking", "llmProvider": "model"},
                name="next",
                mcpServers=selected("nowhere"),
                fallback=[{"llmProvider": "standby"}],
            ),
            stage("triage", name="last", replicas=2, synthesis={"agent": "joiner", "strategy": "langchain"}),
        ],
    )
    broken_agent = agent(mcpServers=[{"name": "kube", "tools": ["delete", "list"]}, {"name": "gone"}])
    found = errors_of(
        [the_chain, broken_agent, provider(), server(tools={"deny": ["delete"]})],
        alert(runbook={"url": "https://example.com/r.md"}),
    )
    assert set(found) == {
        "Chain spec.llmProvider",
        "Chain spec.executiveSummary.llmProvider",
        "Chain spec.stages[0].agents[1].name",
        "Chain spec.stages[0].agents[1].llmProvider",
        "Chain spec.stages[1].agents[0].name",
        "Chain spec.stages[1].agents[0].strategy",
        "Chain spec.stages[1].mcpServers[0].name",
        "Chain spec.stages[2].synthesis.agent",
        "Chain spec.stages[2].synthesis.strategy",
        "Agent spec.mcpServers[0].tools",
        "Agent spec.mcpServers[1].name",
        "Chain spec.stages[1].fallback[0].llmProvider",
    }
    assert found["Chain spec.llmProvider"] == (
        "there is no LLMProvider modle in namespace team-a; did you mean model? Else create it, or name another"
    )
    assert found["Chain spec.stages[1].agents[0].strategy"] == (
        "strategy native-thinking needs the backend google-native, which LLMProvider team-a/model of type openai "
        "does not support; use react, langchain, or an LLMProvider of another type"
    )


def test_a_plan_without_any_provider_says_where_one_can_be_named_and_does_not_guess() -> None:
    found = errors_of([agent(), chain(llmProvider=None), provider()])
    assert found == {
        "Chain spec.llmProvider": "no LLMProvider is set; name one here, or in spec.llmProvider of "
        "InvestigationDefaults default in namespace team-a or library"
    }


def test_replicas_are_numbered_runs_of_one_agent_joined_by_a_synthesis() -> None:
    slot = {"name": "triage", "displayName": "Triage"}
    (only,) = plan_of([agent(), provider(), chain(stages=[stage(slot, replicas=3)])]).stages
    assert [item.name for item in only.agents] == ["Triage-1", "Triage-2", "Triage-3"]
    assert {item.agent for item in only.agents} == {"triage"}
    assert only.parallel == "replica"
    assert only.synthesis is not None


def test_several_agents_keep_their_names_and_order() -> None:
    slots = ("triage", {"name": "triage", "displayName": "second"}, "other")
    (only,) = plan_of([agent(), agent("other"), provider(), chain(stages=[stage(*slots)])]).stages
    assert [item.name for item in only.agents] == ["triage", "second", "other"]
    assert only.parallel == "multi_agent"


def test_a_single_agent_has_no_synthesis_even_where_one_is_described() -> None:
    (only,) = plan_of([agent(), provider(), chain(stages=[stage(synthesis={"llmProvider": "model"})])]).stages
    assert (only.parallel, only.synthesis) == (None, None)


def test_two_agents_of_a_stage_must_not_have_one_name() -> None:
    slots = ("triage", {"name": "other", "displayName": "triage"})
    found = errors_of([agent(), agent("other"), provider(), chain(stages=[stage(*slots)])])
    assert list(found) == ["Chain spec.stages[0].agents[1].displayName"]


def test_synthesis_is_built_in_unless_an_agent_is_there_for_it() -> None:
    base = [agent(), provider(), chain(stages=[stage(replicas=2, synthesis={})])]

    def synthesis(*more: AnyResource) -> tuple[str, str, Strategy]:
        found = plan_of([*base, *more]).stages[0].synthesis
        assert found is not None
        assert found.servers == ()
        return found.agent, found.instructions, found.strategy

    builtin = ("synthesis-agent", SYNTHESIS_INSTRUCTIONS, Strategy.SYNTHESIS)
    assert synthesis() == builtin
    assert synthesis(agent("synthesis-agent", LIBRARY, instructions="closed")) == builtin
    shared = agent("synthesis-agent", LIBRARY, instructions="shared", allowedNamespaces=OPEN)
    assert synthesis(shared)[1] == "shared"
    own = agent("synthesis-agent", instructions="own", mcpServers=selected("kube"))
    assert synthesis(shared, own)[1] == "own"


def test_a_stage_names_the_agent_and_the_provider_of_its_synthesis() -> None:
    settings = {"agent": "joiner", "llmProvider": "writer"}
    objects = [
        agent(),
        agent("joiner"),
        provider(),
        provider("writer"),
        chain(stages=[stage(replicas=2, synthesis=settings)]),
    ]
    found = plan_of(objects).stages[0].synthesis
    assert found is not None
    assert (found.agent, found.provider.ref.name) == ("joiner", "writer")


def test_an_alerts_servers_bind_every_agent_but_not_synthesis_and_summary() -> None:
    objects = [
        agent(mcpServers=selected("kube")),
        provider(),
        server(),
        server("logs"),
        chain(stages=[stage(replicas=2), stage({"name": "triage", "mcpServers": selected("kube")}, name="more")]),
    ]
    plan = plan_of(objects, alert(mcpServers=[{"name": "logs", "tools": ["tail"]}]))
    for item in (member for each in plan.stages for member in each.agents):
        assert [(one.name, one.selected) for one in item.servers] == [("logs", ("tail",))]
    assert plan.stages[0].synthesis is not None and plan.stages[0].synthesis.servers == ()
    assert plan.executive_summary is not None and plan.executive_summary.servers == ()
    assert "kube" not in {ref.name for ref in plan.objects}
    assert [(ref.kind, ref.name) for ref in plan.brought] == [("MCPServer", "logs")]
    assert plan_of(objects, alert()).brought == ()


@pytest.mark.parametrize(
    ("brings", "field"),
    [
        ({"mcpServers": selected("kube")}, "Alert spec.mcpServers"),
        ({"nativeTools": {"urlContext": False}}, "Alert spec.nativeTools.urlContext"),
    ],
)
def test_a_chain_that_denies_tools_of_alerts_refuses_them(brings: dict[str, Any], field: str) -> None:
    found = errors_of([agent(), provider(), server(), chain(alertTools="Denied")], alert(**brings))
    assert list(found) == [field]
    assert "spec.alertTools is Denied" in found[field]


@pytest.mark.parametrize("tools", [{"deny": ["delete"]}, {"allow": ["list"]}])
def test_an_alert_cannot_select_tools_that_the_server_leaves_out(tools: dict[str, list[str]]) -> None:
    objects = [agent(), provider(), server(tools=tools), chain()]
    found = errors_of(objects, alert(mcpServers=[{"name": "kube", "tools": ["delete", "list"]}]))
    assert list(found) == ["Alert spec.mcpServers[0].tools"]
    assert "delete" in found["Alert spec.mcpServers[0].tools"]


def test_an_alerts_server_is_looked_up_in_the_runs_namespace_and_then_in_the_library() -> None:
    objects = [agent(), provider(), chain(), server(namespace=LIBRARY, allowedNamespaces=OPEN)]
    wanted = alert(mcpServers=selected("kube"))
    assert plan_of(objects, wanted).stages[0].agents[0].servers[0].ref.namespace == LIBRARY
    assert plan_of([*objects, server()], wanted).stages[0].agents[0].servers[0].ref.namespace == TEAM


def test_an_alert_does_not_reach_a_library_server_that_is_not_open_to_it() -> None:
    objects = [agent(), provider(), chain(), server(namespace=LIBRARY)]
    found = errors_of(objects, alert(mcpServers=selected("kube")))
    assert "spec.allowedNamespaces" in found["Alert spec.mcpServers[0].name"]


def test_a_library_chain_brings_what_it_names_in_the_library_and_only_that() -> None:
    library = [
        agent(namespace=LIBRARY, instructions="theirs", mcpServers=selected("kube")),
        provider(namespace=LIBRARY, apiKeySecretRef={"name": "keys", "key": "k"}),
        server(namespace=LIBRARY),
        chain(namespace=LIBRARY, allowedNamespaces=OPEN),
    ]
    plan = plan_of([*library, agent(instructions="ours"), provider(), server()])
    (only,) = plan.stages[0].agents
    assert only.instructions == "theirs"
    assert only.provider.api_key == SecretKey(namespace=LIBRARY, name="keys", key="k")
    assert {ref.namespace for ref in plan.objects} == {LIBRARY}
    assert plan.namespace == TEAM


def test_what_a_chain_names_is_not_looked_up_in_the_library() -> None:
    found = errors_of([chain(), provider(), agent(namespace=LIBRARY, allowedNamespaces=OPEN)])
    assert found["Chain spec.stages[0].agents[0].name"].startswith("there is no Agent triage in namespace team-a;")


def test_the_librarys_defaults_give_a_provider_only_to_whom_it_admits() -> None:
    objects = [agent(), chain(llmProvider=None), defaults(LIBRARY, llmProvider="model")]
    closed = errors_of([*objects, provider(namespace=LIBRARY)])
    assert list(closed) == ["InvestigationDefaults spec.llmProvider"]
    plan = plan_of([*objects, provider(namespace=LIBRARY, allowedNamespaces=OPEN)])
    assert plan.stages[0].agents[0].provider.ref.namespace == LIBRARY


def test_a_chain_that_does_not_admit_the_namespace_is_refused_here_too() -> None:
    theirs = chain(namespace=LIBRARY)
    catalog = ResourceCatalog([theirs, agent(namespace=LIBRARY), provider(namespace=LIBRARY)])
    with pytest.raises(PlanInvalid, match=r"spec\.alertType: Chain library/pods may not be used from namespace team-a"):
        resolve(PlanRequest(namespace=TEAM, alert=alert(), chain=theirs, catalog=catalog, library_namespace=LIBRARY))


def test_errors_of_an_alert_name_the_object_it_stands_in() -> None:
    catalog = ResourceCatalog([agent(), provider()])
    at = FieldPath("Investigation", TEAM, "run-1") / "alert"
    with pytest.raises(PlanInvalid) as raised:
        resolve(
            PlanRequest(
                namespace=TEAM,
                alert=alert(mcpServers=selected("gone")),
                chain=chain(),
                catalog=catalog,
                library_namespace=None,
                source=at,
            )
        )
    assert str(raised.value).startswith("Investigation team-a/run-1: spec.alert.mcpServers[0].name: ")


def test_agents_without_tools_get_no_servers_and_one_iteration() -> None:
    objects = [
        agent(mcpServers=selected("kube"), strategy="single-call", maxIterations=9),
        provider(),
        server(),
        chain(),
    ]
    (only,) = plan_of(objects).stages[0].agents
    assert (only.servers, only.max_iterations) == ((), 1)


def test_secrets_stay_references_in_the_namespace_of_the_object_that_names_them() -> None:
    from_secret = {"valueFrom": {"secretKeyRef": {"name": "tokens", "key": "t"}}}
    stdio = {
        "type": "stdio",
        "stdio": {"command": "run", "args": ["-v"], "env": [{"name": "A", "value": "1"}, {"name": "B", **from_secret}]},
    }
    http = {
        "type": "http",
        "http": {"url": "http://tools:1/mcp", "headers": [{"name": "Authorization", **from_secret}]},
    }
    objects = [
        agent(mcpServers=selected("kube", "logs")),
        provider(),
        chain(),
        server(transport=stdio, timeouts={"initSeconds": 5, "callSeconds": 6}, repeatableTools=["get"]),
        server("logs", transport=http, tools={"allow": ["a"], "deny": ["b"]}, instructions="Be brief."),
    ]
    kube, logs = plan_of(objects).stages[0].agents[0].servers
    secret = SecretKey(namespace=TEAM, name="tokens", key="t")
    assert isinstance(kube.transport, StdioTransport) and isinstance(logs.transport, HttpTransport)
    assert [(one.name, one.value, one.secret) for one in kube.transport.env] == [("A", "1", None), ("B", None, secret)]
    assert logs.transport.headers[0].secret == secret
    assert (kube.init_seconds, kube.call_seconds, kube.repeatable) == (5, 6, ("get",))
    assert (logs.allow, logs.deny, logs.instructions) == (("a",), ("b",), "Be brief.")


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_server_by_http_is_planned_with_references_to_its_token_and_its_authorities(kind: str) -> None:
    authorities = {"configMapKeyRef": {"name": "authorities", "key": "ca.crt"}}
    reached = {
        "url": "https://tools/mcp",
        "bearerTokenSecretRef": {"name": "tokens", "key": "t"},
        "tls": {"caFrom": authorities},
    }
    objects = [agent(mcpServers=selected("kube")), provider(), chain()]
    (kube,) = plan_of([*objects, server(transport={"type": kind, "http": reached})]).stages[0].agents[0].servers
    assert isinstance(kube.transport, HttpTransport) and kube.transport.type == kind
    assert kube.transport.bearer_token is not None and kube.transport.ca is not None
    assert kube.transport.bearer_token.secret == SecretKey(namespace=TEAM, name="tokens", key="t")
    assert kube.transport.ca.config_map == ConfigMapKey(namespace=TEAM, name="authorities", key="ca.crt")
    assert (kube.transport.bearer_token.value, kube.transport.ca.value) == (None, None)
    secret = {"type": kind, "http": {**reached, "tls": {"caFrom": {"secretKeyRef": {"name": "tokens", "key": "ca"}}}}}
    (kube,) = plan_of([*objects, server(transport=secret)]).stages[0].agents[0].servers
    assert isinstance(kube.transport, HttpTransport) and kube.transport.ca is not None
    assert kube.transport.ca.secret == SecretKey(namespace=TEAM, name="tokens", key="ca")


def test_the_plan_lists_every_object_it_came_from_with_its_generation() -> None:
    objects = [
        agent(mcpServers=selected("kube")),
        agent("unused"),
        agent("synthesis-agent"),
        chain(stages=[stage(replicas=2)]),
        defaults(),
        provider(),
        provider("unused"),
        server(),
    ]
    refs = plan_of(objects).objects
    assert [(ref.kind, ref.name) for ref in refs] == [
        ("Agent", "synthesis-agent"),
        ("Agent", "triage"),
        ("Chain", "pods"),
        ("InvestigationDefaults", "default"),
        ("LLMProvider", "model"),
        ("MCPServer", "kube"),
    ]
    assert {(ref.namespace, ref.generation) for ref in refs} == {(TEAM, 3)}
    assert refs[1].uid == "uid-team-a-triage"


def test_the_same_objects_give_the_same_digest_in_any_order() -> None:
    objects: list[AnyResource] = [
        agent(mcpServers=selected("kube", "logs")),
        agent("other"),
        chain(stages=[stage("triage", "other")]),
        defaults(timeouts={"stallSeconds": 9, "iterationSeconds": 8}),
        provider(),
        server(),
        server("logs"),
    ]
    one, two = plan_of(objects), plan_of(objects[::-1])
    assert one.digest == two.digest
    assert type(one).model_validate_json(one.dump()) == one
    assert plan_of([*objects, agent(instructions="changed", mcpServers=selected("kube"))]).digest != one.digest
