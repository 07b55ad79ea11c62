"""Defines rules about autoscalers and disruption budgets."""

from collections.abc import Iterator

from tarsy.evidence.fields import integer, mapping, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import condition


@rule("autoscaler-metrics-missing", "A HorizontalPodAutoscaler cannot read its metrics")
def metrics_missing(facts: Facts) -> Iterator[Signal]:
    """Finds autoscalers that cannot read their metrics."""
    for key, scaler in facts.snapshot.items("HorizontalPodAutoscaler"):
        one = condition(scaler, "ScalingActive")
        if one.get("status") == "False" and one.get("reason") != "ScalingDisabled":
            message = one_line(string(one, "message"), f"reason: {string(one, 'reason')}")
            yield Signal((key,), f"{key} cannot read its metrics, so it does not scale.", message)


@rule("autoscaler-target-missing", "A HorizontalPodAutoscaler names a workload that does not exist")
def scale_target_missing(facts: Facts) -> Iterator[Signal]:
    """Finds autoscalers whose target does not exist."""
    for key, scaler in facts.snapshot.items("HorizontalPodAutoscaler"):
        reference = mapping(scaler, "spec", "scaleTargetRef")
        target = ObjectKey(string(reference, "kind"), key.namespace, string(reference, "name"))
        if facts.snapshot.complete(target.kind, key.namespace) and not facts.snapshot.at(target):
            text = f"{key} scales {target}, which does not exist."
            yield Signal((key, target), text, f"name: {target.name}")


@rule("autoscaler-at-maximum", "A HorizontalPodAutoscaler wants more replicas than its maximum")
def at_maximum(facts: Facts) -> Iterator[Signal]:
    """Finds autoscalers at their maximum."""
    for key, scaler in facts.snapshot.items("HorizontalPodAutoscaler"):
        one = condition(scaler, "ScalingLimited")
        if one.get("status") == "True" and one.get("reason") == "TooManyReplicas":
            message = one_line(string(one, "message"), "reason: TooManyReplicas")
            text = f"{key} wants more than its {integer(scaler, 'spec', 'maxReplicas')} replicas."
            yield Signal((key,), text, message, Certainty.LIKELY)


@rule("disruption-budget-blocks", "A PodDisruptionBudget allows no disruption while a Node is drained")
def budget_blocks(facts: Facts) -> Iterator[Signal]:
    """Finds disruption budgets that keep pods on a cordoned Node."""
    drained = {key.name for key, node in facts.snapshot.items("Node") if mapping(node, "spec").get("unschedulable")}
    if not drained:
        return
    for key, budget in facts.snapshot.items("PodDisruptionBudget"):
        if integer(budget, "status", "disruptionsAllowed") != 0:
            continue
        for edge in facts.topology.out_of(key):
            node = string(facts.snapshot.at(edge.target), "spec", "nodeName")
            if edge.target.kind == "Pod" and node in drained:
                text = f"{key} allows no disruption, so {edge.target} stays on cordoned Node {node}."
                yield Signal((edge.target, key), text, "disruptionsAllowed: 0", Certainty.LIKELY)
                break


RULES = (metrics_missing, scale_target_missing, at_maximum, budget_blocks)
