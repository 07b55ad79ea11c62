"""Counts configuration objects by readiness, for metrics.

Watches nothing, decides nothing, writes nothing: it counts what the cache knows, by the conditions that the controllers
of these kinds wrote, so every replica tells the same, and what is deleted is counted no more. Decision: it tells how
many, never which: their names are people's words, and `kubectl get` has them.
"""

from collections import Counter
from collections.abc import Mapping

from tarsy.controllers.machinery.cache import Cache, UnreadableObject
from tarsy.observe.metric_table import CONFIGURATION, QUOTA_STATE
from tarsy.resources.meta import AnyResource, condition
from tarsy.resources.v1alpha1 import InvestigationQuota
from tarsy.resources.v1alpha1.common import ConditionType

AVAILABLE = "MCPServer"
"""The kind that has a second condition: whether it answers."""

NOTIFYING = ("AlertRoute", "Chain")
"""The kinds that have a second condition where they tell somebody: whether they can."""

CALIBRATED = "Chain"
"""The kind that has a further condition once people reviewed its findings: whether High was right often enough."""

_OPTIONAL = (ConditionType.NOTIFICATIONS_READY, ConditionType.CALIBRATED)


def count_ready(cache: Cache) -> Mapping[tuple[str, ...], float]:
    """Counts configuration objects by kind, condition and its status; an unreadable object is not Ready."""
    found: Counter[tuple[str, ...]] = Counter()
    for kind in CONFIGURATION.values or ():
        for about in _conditions(kind):
            for each in ("True", "False", "Unknown"):
                found[kind, about.value, each] = 0
            for key in cache.keys_of(kind):
                if (obj := cache.find(key)) is not None and (status := _status(obj, about)) is not None:
                    found[kind, about.value, status] += 1
    return dict(found)


def count_quotas(cache: Cache) -> Mapping[tuple[str, ...], float]:
    """Counts InvestigationQuotas by state; one that cannot be read has none."""
    found: Counter[tuple[str, ...]] = Counter({(state,): 0 for state in QUOTA_STATE.values or ()})
    for key in cache.keys_of(InvestigationQuota.KIND):
        if isinstance(quota := cache.find(key), InvestigationQuota):
            over, near = (
                (one := condition(quota.status.conditions, kind)) is not None and one.status == "True"
                for kind in (ConditionType.EXCEEDED, ConditionType.WARNED)
            )
            found["exceeded" if over else "warned" if near else "within",] += 1
    return dict(found)


def _conditions(kind: str) -> tuple[ConditionType, ...]:
    if kind == AVAILABLE:
        return ConditionType.READY, ConditionType.AVAILABLE
    told = (ConditionType.READY, ConditionType.NOTIFICATIONS_READY) if kind in NOTIFYING else (ConditionType.READY,)
    return (*told, ConditionType.CALIBRATED) if kind == CALIBRATED else told


def _status(obj: AnyResource | UnreadableObject, about: ConditionType) -> str | None:
    """Returns the status of a condition; None where the object has nothing to report on, as without a review."""
    if isinstance(obj, UnreadableObject):
        known = {ConditionType.READY: "False", ConditionType.AVAILABLE: "Unknown"}
        return known.get(about)
    found = condition(obj.status.conditions, about)
    if found is None:
        return None if about in _OPTIONAL else "Unknown"
    return found.status
