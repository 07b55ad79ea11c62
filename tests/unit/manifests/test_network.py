"""Checks the network policies: each namespace is closed, and opened where a part of the product needs it."""

from collections.abc import Iterator
from typing import Any

import pytest

from for_each import for_each
from unit.manifests.shipped import installed, named, objects

POLICIES = installed("NetworkPolicy")
TRACES = 4318
PODS = {w["metadata"]["name"]: w for w in installed("Deployment", "StatefulSet")}
CREDENTIALS = {80, 988}
"""Ports at which clouds hand out credentials to pods."""


def labels(selector: dict[str, Any]) -> Iterator[str]:
    """The app.kubernetes.io/name that a selector selects."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}
    if "matchLabels" in selector:
        yield selector["matchLabels"]["app.kubernetes.io/name"]
    for expression in selector.get("matchExpressions", ()):
        assert (expression["key"], expression["operator"]) == ("app.kubernetes.io/name", "In")
        yield from expression["values"]


def policies(pod: str, direction: str) -> Iterator[dict[str, Any]]:
    """What policies say about a pod, going in or out."""
    namespace = PODS[pod]["metadata"]["namespace"]
    for policy in POLICIES:
        spec = policy["spec"]
        if policy["metadata"]["namespace"] == namespace and pod in labels(spec["podSelector"]):
            assert direction.title() in spec["policyTypes"] or direction not in spec
            yield from spec.get(direction, ())


def opened(pod: str, direction: str) -> set[int | str]:
    return {port["port"] for rule in policies(pod, direction) for port in rule["ports"]}


@pytest.mark.parametrize("namespace", ["tarsy-system", "tarsy-library"])
def test_a_namespace_is_closed_where_nothing_opens_it(namespace: str) -> None:
    (closed,) = (
        policy
        for policy in POLICIES
        if policy["metadata"]["namespace"] == namespace and policy["spec"]["podSelector"] == {}
    )
    assert closed["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@for_each("policy", POLICIES, ids=lambda p: f"{p['metadata']['namespace']}-{named(p)}")
def test_a_policy_is_for_pods_that_exist_and_each_rule_names_its_ports(policy: dict[str, Any]) -> None:
    spec = policy["spec"]
    assert set(labels(spec["podSelector"])) <= set(PODS)
    for rule in [*spec.get("ingress", ()), *spec.get("egress", ())]:
        assert rule["ports"] and all({"port", "protocol"} <= set(port) for port in rule["ports"])


@pytest.mark.parametrize("pod", PODS)
def test_every_port_that_a_policy_names_is_one_of_the_pod(pod: str) -> None:
    (container,) = PODS[pod]["spec"]["template"]["spec"]["containers"]
    probed = {"health"} & {port["name"] for port in container["ports"]}  # from the node, which no policy holds back
    assert opened(pod, "ingress") | probed == {port["name"] for port in container["ports"]}


def test_the_operator_and_the_workers_go_out_to_dns_api_server_postgres_models_and_tools() -> None:
    for pod in ("tarsy-operator", "tarsy-worker"):
        assert opened(pod, "egress") == {53, 443, 5432, 6443, 8080, "mcp", TRACES}
        (anywhere,) = (rule for rule in policies(pod, "egress") if "to" not in rule)
        assert {port["port"] for port in anywhere["ports"]} == {53, 443, 5432, 6443}


@pytest.mark.parametrize("pod", PODS)
def test_no_pod_reaches_where_a_cloud_hands_out_credentials(pod: str) -> None:
    assert opened(pod, "egress").isdisjoint(CREDENTIALS)


def test_the_tools_reach_the_api_server_only_and_are_reached_by_whoever_runs_investigations() -> None:
    assert opened("kubernetes-tools", "egress") == {443, 6443}
    assert reached_by("kubernetes-tools") == {("tarsy-system", "tarsy-operator"), ("tarsy-system", "tarsy-worker")}


def test_the_database_is_reached_by_whoever_records_and_reaches_nobody() -> None:
    assert opened("tarsy-postgres", "egress") == set()
    assert reached_by("tarsy-postgres") == {("", "tarsy-operator"), ("", "tarsy-worker")}


def test_metrics_are_for_the_namespace_of_monitoring() -> None:
    for pod in ("tarsy-operator", "tarsy-worker"):
        (rule,) = (rule for rule in policies(pod, "ingress") if rule["ports"][0]["port"] == "metrics")
        (peer,) = rule["from"]
        assert peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


def test_traces_go_to_the_namespace_of_monitoring_at_one_port_and_only_where_the_component_is() -> None:
    for pod in ("tarsy-operator", "tarsy-worker"):
        (rule,) = (rule for rule in policies(pod, "egress") if rule["ports"][0]["port"] == TRACES)
        (peer,) = rule["to"]
        assert peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
        assert len(rule["ports"]) == 1
    (opening,) = (policy for policy in POLICIES if str(TRACES) in str(policy))
    assert objects("components/tracing") == [opening]


def reached_by(pod: str) -> set[tuple[str, str]]:
    """Namespace (empty: its own) and name of the pods that reach one."""
    found = set()
    for rule in policies(pod, "ingress"):
        for peer in rule["from"]:
            where = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name", "")
            found |= {(where, name) for name in labels(peer["podSelector"])}
    return found
