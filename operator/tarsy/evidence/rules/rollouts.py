"""Defines rules about rollouts of Deployments."""

from collections.abc import Iterator

from tarsy.evidence.fields import integer, mapping, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.workloads import condition


@rule("rollout-stuck", "A rollout makes no progress within its deadline")
def rollout_stuck(facts: Facts) -> Iterator[Signal]:
    """Finds Deployments whose rollout does not finish; another rule says why, or nobody knows."""
    for key, deployment in facts.snapshot.items("Deployment"):
        one = condition(deployment, "Progressing")
        if one.get("status") == "False" and one.get("reason") == "ProgressDeadlineExceeded":
            message = one_line(string(one, "message"), "reason: ProgressDeadlineExceeded")
            yield Signal((key,), f"The rollout of {key} makes no progress.", message, Certainty.LIKELY)


@rule("rollout-paused", "A Deployment is paused with a change that is not rolled out")
def rollout_paused(facts: Facts) -> Iterator[Signal]:
    """Finds paused Deployments that have not rolled out their template."""
    for key, deployment in facts.snapshot.items("Deployment"):
        updated, wanted = integer(deployment, "status", "updatedReplicas") or 0, integer(deployment, "spec", "replicas")
        if mapping(deployment, "spec").get("paused") is True and updated < (1 if wanted is None else wanted):
            yield Signal((key,), f"{key} is paused before its rollout ended.", "paused: true", Certainty.LIKELY)


RULES = (rollout_stuck, rollout_paused)
