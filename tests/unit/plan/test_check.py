"""What makes a configuration object not Ready, and what it is looked at again for."""

from __future__ import annotations

import pytest

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references, config_maps, notify_secrets, references, secrets
from tarsy.plan.model import ConfigMapKey, SecretKey
from tarsy.resources.meta import AnyResource
from unit.plan.builders import LIBRARY, TEAM, agent, chain, defaults, provider, selected, server, stage


def fields(obj: AnyResource, *others: AnyResource) -> list[str]:
    return [error.field for error in check_references(obj, ResourceCatalog([obj, *others]))]


BROKEN_CHAIN = chain(
    llmProvider="p",
    mcpServers=selected("s"),
    fallback=[{"llmProvider": "f"}],
    stages=[
        stage(
            "one",
            {"name": "two", "llmProvider": "p2", "mcpServers": selected("s2"), "fallback": [{"llmProvider": "f2"}]},
        ),
        stage(
            name="next",
            replicas=2,
            mcpServers=selected("s3"),
            fallback=[{"llmProvider": "f3"}],
            synthesis={"agent": "j", "strategy": "langchain"},
        ),
    ],
    executiveSummary={"llmProvider": "p3"},
    chat={"agent": "c", "llmProvider": "p4", "mcpServers": selected("s4")},
)


def test_a_chain_reports_all_that_dangles_at_once() -> None:
    assert sorted(fields(BROKEN_CHAIN)) == sorted(
        [
            "spec.llmProvider",
            "spec.mcpServers[0].name",
            "spec.fallback[0].llmProvider",
            "spec.stages[0].agents[0].name",
            "spec.stages[0].agents[1].name",
            "spec.stages[0].agents[1].llmProvider",
            "spec.stages[0].agents[1].mcpServers[0].name",
            "spec.stages[0].agents[1].fallback[0].llmProvider",
            "spec.stages[1].agents[0].name",
            "spec.stages[1].mcpServers[0].name",
            "spec.stages[1].synthesis.agent",
            "spec.stages[1].synthesis.strategy",
            "spec.executiveSummary.llmProvider",
            "spec.chat.agent",
            "spec.chat.llmProvider",
            "spec.chat.mcpServers[0].name",
            "spec.stages[1].fallback[0].llmProvider",
        ]
    )


def test_a_chain_is_looked_at_again_for_all_that_it_names() -> None:
    expected = {("Agent", TEAM, name) for name in ("one", "two", "triage", "j", "c")}
    expected |= {("LLMProvider", TEAM, name) for name in ("p", "p2", "p3", "p4", "f", "f2", "f3")}
    expected |= {("MCPServer", TEAM, name) for name in ("s", "s2", "s3", "s4")}
    assert references(BROKEN_CHAIN) == expected


def test_references_of_a_library_object_are_in_the_library() -> None:
    assert references(agent(namespace=LIBRARY, mcpServers=selected("kube"))) == {("MCPServer", LIBRARY, "kube")}


def test_a_whole_configuration_has_no_errors() -> None:
    objects: list[AnyResource] = [
        agent(mcpServers=selected("kube"), strategy="langchain"),
        chain(stages=[stage(replicas=2, synthesis={"agent": "synthesis-agent"})]),
        defaults(llmProvider="model", executiveSummary={"llmProvider": "model"}),
        provider(),
        server(tools={"allow": ["list", "get"], "deny": ["get"]}),
    ]
    assert [fields(obj, *objects) for obj in objects] == [[]] * len(objects)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            agent(mcpServers=selected("a", "b")),
            ["spec.mcpServers[0].name", "spec.mcpServers[1].name"],
        ),
        (agent(mcpServers=[{"name": "kube", "tools": ["drop", "list"]}]), ["spec.mcpServers[0].tools"]),
        (
            defaults(llmProvider="x", executiveSummary={"llmProvider": "y"}, fallback=[{"llmProvider": "z"}]),
            ["spec.llmProvider", "spec.fallback[0].llmProvider", "spec.executiveSummary.llmProvider"],
        ),
        (server("other", tools={"allow": ["a"], "deny": ["a", "b"]}), ["spec.tools.deny"]),
        (provider(), []),
        (
            provider(nativeTools={"googleSearch": True, "urlContext": False}),
            ["spec.nativeTools.googleSearch"],
        ),
    ],
)
def test_each_kind_reports_its_own_fields(obj: AnyResource, expected: list[str]) -> None:
    assert fields(obj, server(tools={"deny": ["drop"]})) == expected


def test_an_object_elsewhere_does_not_mend_a_reference() -> None:
    assert fields(chain(), agent(namespace=LIBRARY), provider()) == ["spec.stages[0].agents[0].name"]


def test_chains_that_claim_one_alert_type_are_both_told() -> None:
    one, two = chain("one", alertTypes=["Other", "PodCrash"]), chain("two")
    elsewhere = chain("three", LIBRARY)
    for mine, other, field in ((one, "two", "spec.alertTypes[1]"), (two, "one", "spec.alertTypes[0]")):
        (error,) = check_references(mine, ResourceCatalog([one, two, elsewhere, agent(), provider()]))
        assert error.field == field
        assert f"also claimed by Chain {other} of this namespace" in error.message


def test_a_stage_in_which_two_agents_have_one_name_is_told_to_name_them() -> None:
    found = check_references(chain(stages=[stage("triage", "triage")]), ResourceCatalog([agent(), provider()]))
    assert [str(error) for error in found] == [
        "Chain team-a/pods: spec.stages[0].agents[1].name: another agent of stage look is also called triage; "
        "set a displayName of its own here"
    ]


def test_secrets_are_named_with_their_fields_in_the_objects_own_namespace() -> None:
    source = {"valueFrom": {"secretKeyRef": {"name": "tokens", "key": "t"}}}
    stdio = {"type": "stdio", "stdio": {"command": "x", "env": [{"name": "A", "value": "1"}, {"name": "B", **source}]}}
    http = {"type": "http", "http": {"url": "http://x", "headers": [{"name": "Authorization", **source}]}}
    token = SecretKey(namespace=LIBRARY, name="tokens", key="t")

    def found(obj: AnyResource) -> list[tuple[SecretKey, str]]:
        return [(secret, at.path) for secret, at in secrets(obj)]

    key = provider(namespace=LIBRARY, apiKeySecretRef={"name": "tokens", "key": "t"})
    assert found(key) == [(token, "spec.apiKeySecretRef")]
    assert found(server(namespace=LIBRARY, transport=stdio)) == [
        (token, "spec.transport.stdio.env[1].valueFrom.secretKeyRef")
    ]
    assert found(server(namespace=LIBRARY, transport=http)) == [
        (token, "spec.transport.http.headers[0].valueFrom.secretKeyRef")
    ]
    reached = {
        "url": "https://x",
        "bearerTokenSecretRef": {"name": "tokens", "key": "t"},
        "tls": {"caFrom": {"secretKeyRef": {"name": "tokens", "key": "t"}}},
    }
    assert found(server(namespace=LIBRARY, transport={"type": "sse", "http": reached})) == [
        (token, "spec.transport.http.bearerTokenSecretRef"),
        (token, "spec.transport.http.tls.caFrom.secretKeyRef"),
    ]
    assert found(provider()) == found(server()) == found(agent()) == []


def test_secrets_of_those_who_are_told_are_named_apart_from_those_that_runs_need() -> None:
    slack = {"channel": "C1", "tokenSecretRef": {"name": "slack", "key": "token"}}
    hook = {"url": "https://hooks.example/in", "signingSecretRef": {"name": "hook", "key": "key"}}
    told = chain(notify=[{"name": "people", "slack": slack}, {"name": "programs", "webhook": hook}])
    assert [(key.namespace, key.name, key.key, at.path) for key, at in notify_secrets(told)] == [
        (told.metadata.namespace, "slack", "token", "spec.notify[0].slack.tokenSecretRef"),
        (told.metadata.namespace, "hook", "key", "spec.notify[1].webhook.signingSecretRef"),
    ]
    assert secrets(told) == [] and notify_secrets(chain()) == [] and notify_secrets(agent()) == []


def test_config_maps_are_named_with_their_fields() -> None:
    tls = {"caFrom": {"configMapKeyRef": {"name": "authorities", "key": "ca.crt"}}}
    http = {"type": "http", "http": {"url": "https://x", "tls": tls}}
    ((key, at),) = config_maps(server(namespace=LIBRARY, transport=http))
    assert key == ConfigMapKey(namespace=LIBRARY, name="authorities", key="ca.crt")
    assert at.path == "spec.transport.http.tls.caFrom.configMapKeyRef"
    assert config_maps(server()) == config_maps(agent()) == []
