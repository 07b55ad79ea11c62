"""Ranks changes as candidates for the cause of an alert.

score = reach x time x type x effect x signal. Reach comes from the topology (the target itself 1.0, a ConfigMap that it
mounts 0.9, another object of its namespace 0.1). Time halves the score every hour before the onset. Type is the weight
of `TYPE_WEIGHTS`: rollouts and configuration cause more incidents than restarts, which are mostly their consequence. A
change that pods of the target followed with a restart counts more. So does one that a rule's signal explains: of an
object that the signal names as the reason, or of a field that the rule is about (a lowered limit under a container that
ran out of memory). Such a change may wait for its effect (for load, for the next start of a pod), so its score halves
every four hours only. What comes after the onset is a consequence; within the skew of the clocks the order is unknown.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.changes.explained import NOTHING, Explained
from tarsy.evidence.onset import Onset
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import NAMESPACE_REACH, Reach

WINDOW_BEFORE = timedelta(hours=4)
"""How long before the onset a change may be its cause."""

LONGEST_WINDOW = timedelta(days=366)
"""Maximum window: objects tell nothing of older changes that matters to an alert."""

HALF_LIFE = timedelta(hours=1)
"""Time before the onset in which a score halves."""

HALF_LIFE_EXPLAINED = timedelta(hours=4)
"""The same for a change that a signal explains."""

EFFECT = timedelta(minutes=10)
"""A container that ends this soon after a change is taken for its effect."""

EFFECT_WEIGHT = 1.3
SIGNAL_WEIGHT = 2.0

TYPE_WEIGHTS: Mapping[ChangeType, float] = {
    ChangeType.ROLLOUT: 1.0,
    ChangeType.CONFIG: 1.0,
    ChangeType.NETWORK: 0.95,
    ChangeType.GITOPS: 0.8,
    ChangeType.QUOTA: 0.9,
    ChangeType.NODE: 0.9,
    ChangeType.STORAGE: 0.9,
    ChangeType.DELETE: 0.9,
    ChangeType.SCALE: 0.7,
    ChangeType.RESTART: 0.15,
}


class Order(StrEnum):
    """Place of a change in time, relative to the onset."""

    CANDIDATE = "Candidate"
    UNORDERED = "Unordered"
    CONSEQUENCE = "Consequence"


@dataclass(frozen=True, slots=True)
class RankedChange:
    """A change with its score; a consequence has the score 0."""

    change: Change
    order: Order
    score: float
    reach: Reach


def rank(
    changes: Sequence[Change],
    onset: Onset,
    scope: Mapping[ObjectKey, Reach],
    namespace: str,
    *,
    because: Explained = NOTHING,
    window: timedelta = WINDOW_BEFORE,
) -> Sequence[RankedChange]:
    """Returns the changes that may have to do with an alert: candidates by score, then unordered, then consequences.

    Args:
        changes: from a history or reconstructed.
        onset: when the target began to fail.
        scope: the objects that can affect the target, with their reach.
        namespace: of the target; its other objects have a small reach.
        because: which changes signals of rules explain.
        window: how long before the onset a change counts.
    """
    ends = sorted(one.at for one in changes if one.type is ChangeType.RESTART and one.object in scope)
    found = []
    for change in changes:
        reach = scope.get(change.object)
        if reach is None:
            if change.object.namespace != namespace:
                continue
            reach = Reach(NAMESPACE_REACH)
        if onset.at - change.at > window:
            continue
        order = _order(change, onset)
        score = 0.0 if order is Order.CONSEQUENCE else _score(change, onset, reach, ends, because.has(change))
        found.append(RankedChange(change, order, round(score, 4), reach))
    places = {order: place for place, order in enumerate(Order)}
    return sorted(found, key=lambda one: (places[one.order], -one.score, one.change.at, one.change.object))


def _order(change: Change, onset: Onset) -> Order:
    if abs(change.at - onset.at) <= max(onset.skew, change.skew):
        return Order.UNORDERED
    return Order.CANDIDATE if change.at < onset.at else Order.CONSEQUENCE


def _score(change: Change, onset: Onset, reach: Reach, ends: Sequence[datetime], is_explained: bool) -> float:
    before = max(timedelta(0), onset.at - change.at)
    time: float = 0.5 ** (before / (HALF_LIFE_EXPLAINED if is_explained else HALF_LIFE))
    first = bisect_left(ends, change.at)
    felt = change.type is not ChangeType.RESTART and first < len(ends) and ends[first] - change.at <= EFFECT
    effect = EFFECT_WEIGHT if felt else 1.0
    return reach.weight * time * TYPE_WEIGHTS[change.type] * effect * (SIGNAL_WEIGHT if is_explained else 1.0)
