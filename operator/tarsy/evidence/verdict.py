"""Decides whether a target is healthy by the rules alone, for pipelines and progressive delivery; no model is asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tarsy.evidence.rules.signal import Certainty, Signal

NEEDED = ("Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "Event")
"""Kinds without which nothing can be said of a workload."""


class TargetHealth(StrEnum):
    """Lists the verdicts of rules on a target."""

    HEALTHY = "Healthy"
    FAULTY = "Faulty"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """A verdict with its reason in one sentence."""

    health: TargetHealth
    reason: str


def target_verdict(signals: Sequence[Signal], not_read: Collection[str]) -> TargetVerdict:
    """Returns the verdict: a certain fault decides, and no fault counts only if everything needed was read.

    Args:
        signals: faults of the target that rules found, the certain ones first.
        not_read: kinds that could not be read in full.
    """
    certain = [one for one in signals if one.certainty is Certainty.CERTAIN]
    if certain:
        return TargetVerdict(TargetHealth.FAULTY, certain[0].text)
    if signals:
        return TargetVerdict(TargetHealth.INCONCLUSIVE, f"perhaps: {signals[0].text}")
    if missing := sorted(set(not_read) & set(NEEDED)):
        return TargetVerdict(TargetHealth.INCONCLUSIVE, f"not read in full: {', '.join(missing)}")
    return TargetVerdict(TargetHealth.HEALTHY, "no rule finds a fault")
