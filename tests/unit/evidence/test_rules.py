"""Tests each rule of Kubernetes faults with a fault, a healthy case, and a case that only looks like the fault."""

from collections.abc import Sequence

import pytest

from for_each import for_each
from tarsy.evidence.fields import Object
from tarsy.evidence.rules.signal import Certainty
from tarsy.evidence.rules.table import RULES, find_signals
from tarsy.evidence.topology import Topology
from unit.evidence.objects import condition, event, made, pod, snapshot, unscheduled, waiting, workload
from unit.evidence.rule_cases import CASES

CERTAIN, LIKELY = Certainty.CERTAIN, Certainty.LIKELY


def _found(rule: str, objects: Sequence[Object]) -> list[tuple[Certainty, str]]:
    read = snapshot(*objects)  # type: ignore[arg-type]
    return [(one.certainty, one.quote) for one in find_signals(read, Topology(read)) if one.rule == rule]


@for_each("rule", [one.name for one in RULES])
def test_each_rule_has_cases(rule: str) -> None:
    assert rule in CASES


@for_each("rule", CASES)
def test_a_fault_gives_a_signal_with_a_quote_of_its_object(rule: str) -> None:
    case = CASES[rule]
    found = _found(rule, case.fault)
    assert len(found) == 1
    certainty, quote = found[0]
    assert quote
    assert certainty is (LIKELY if case.likely else CERTAIN)


@for_each("rule", CASES)
def test_a_healthy_case_gives_no_signal(rule: str) -> None:
    read = snapshot(*CASES[rule].healthy)
    assert find_signals(read, Topology(read)) == []


@for_each("rule", CASES)
def test_a_case_that_looks_alike_gives_no_signal_of_the_rule(rule: str) -> None:
    assert _found(rule, CASES[rule].alike) == []


def test_while_the_kubelet_waits_for_its_next_pull_the_events_say_why() -> None:
    waits = pod("checkout-1", waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/checkout:1.4"'))
    why = 'Failed to pull image "registry.example/checkout:1.4": not found'
    events = [event(waits, "Failed", text) for text in ("Error: ImagePullBackOff", why, "Error: ErrImagePull")]
    assert _found("image-not-found", (waits, *events)) == [(CERTAIN, why)]


@pytest.mark.parametrize(("nodes", "certainty"), [(1, LIKELY), (2, LIKELY), (3, CERTAIN)])
def test_the_scheduler_is_certain_of_a_reason_that_is_true_of_all_nodes(nodes: int, certainty: Certainty) -> None:
    message = f"0/3 nodes are available: 1 node(s) were unschedulable, {nodes} Insufficient memory."
    assert [found[0] for found in _found("scheduling-resources", (unscheduled(message),))] == [certainty]


def test_a_quota_signal_names_the_quota() -> None:
    message = "pods is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"
    failure = {"replicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate", message)]}
    quotas = [made("ResourceQuota", "small"), made("ResourceQuota", "large")]
    read = snapshot(workload("ReplicaSet", "checkout-5d", status=failure), *quotas)
    (signal,) = find_signals(read, Topology(read))
    assert [str(key) for key in signal.objects] == ["ReplicaSet shop/checkout-5d"] * 2 + ["ResourceQuota shop/small"]


def test_a_denial_that_a_controller_reports_is_certain_and_names_the_account() -> None:
    words = 'pods.metrics.k8s.io is forbidden: User "system:serviceaccount:shop:scaler" cannot list resource "pods"'
    status = {"conditions": [condition("ScalingActive", "False", "FailedGetResourceMetric", words)]}
    read = snapshot(made("HorizontalPodAutoscaler", "checkout", status=status))
    (signal,) = [one for one in find_signals(read, Topology(read)) if one.rule == "rbac-denied"]
    assert signal.certainty is CERTAIN
    assert [str(key) for key in signal.objects[1:]] == ["ServiceAccount shop/scaler"]


def test_a_condition_that_a_pod_may_have_written_is_no_denial_of_a_controller() -> None:
    words = 'x is forbidden: User "system:serviceaccount:shop:scaler" cannot list resource "pods"'
    assert _found("rbac-denied", (pod(ready=False, conditions=[condition("Gate", "False", "X", words)]),)) == []


def test_there_are_at_most_sixty_four_rules_of_different_names() -> None:
    assert len({one.name for one in RULES}) == len(RULES) <= 64
