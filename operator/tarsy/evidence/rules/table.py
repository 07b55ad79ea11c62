"""Lists all rules, and applies them."""

from collections.abc import Sequence
from dataclasses import replace

from tarsy.evidence.rules import (
    access,
    admission,
    containers,
    images,
    jobs,
    nodes,
    platform,
    rollouts,
    scaling,
    scheduling,
    services,
    volumes,
)
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Rule, Signal
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.topology import Topology

RULES: tuple[Rule, ...] = (
    *images.RULES,
    *containers.RULES,
    *scheduling.RULES,
    *admission.RULES,
    *access.RULES,
    *volumes.RULES,
    *services.RULES,
    *nodes.RULES,
    *rollouts.RULES,
    *scaling.RULES,
    *jobs.RULES,
    *platform.RULES,
)
"""All rules; a signal names its rule."""


def find_signals(snapshot: Snapshot, topology: Topology, rules: Sequence[Rule] = RULES) -> Sequence[Signal]:
    """Returns the signals of rules: the certain ones first, those of one workload and rule as one.

    Args:
        snapshot: the objects.
        topology: their edges.
        rules: the rules to apply.
    """
    facts = Facts(snapshot, topology)
    merged: dict[tuple[str, ObjectKey], Signal] = {}
    for one in rules:
        for signal in one.find(facts):
            workload = facts.workload(signal.objects[0])
            place = one.name, workload
            if (before := merged.get(place)) is not None:
                merged[place] = replace(before, count=before.count + 1)
                continue
            objects = signal.objects if workload in signal.objects else (*signal.objects, workload)
            merged[place] = replace(signal, rule=one.name, objects=objects, fields=one.fields)
    return sorted(merged.values(), key=lambda one: (one.certainty is not Certainty.CERTAIN, one.rule, one.objects))
