"""How many configuration objects are in order, for metrics.

Watches nothing, decides nothing, writes nothing: it counts what the cache knows, by the conditions that the controllers
of these kinds wrote, so every replica tells the same, and what is deleted is counted no more. Decision: it tells how
many, never which: their names are people's words, and `kubectl get` has them.
"""

from collections import Counter
from collections.abc import Mapping

from tarsy.controllers.cache import Cache, Unreadable
from tarsy.observe.metric_table import CONFIGURATION
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1.common import ConditionType

AVAILABLE = "MCPServer"
"""The kind that has a second condition: whether it answers."""


def in_order(cache: Cache) -> Mapping[tuple[str, ...], float]:
    """Configuration objects by kind, condition and its status; what cannot be read is not Ready."""
    found: Counter[tuple[str, ...]] = Counter()
    for kind in CONFIGURATION.values or ():
        for about in (ConditionType.READY, ConditionType.AVAILABLE) if kind == AVAILABLE else (ConditionType.READY,):
            for status in ("True", "False", "Unknown"):
                found[kind, about.value, status] = 0
            for key in cache.keys_of(kind):
                obj = cache.find(key)
                if obj is None:
                    continue
                if isinstance(obj, Unreadable):
                    status = "False" if about is ConditionType.READY else "Unknown"
                else:
                    set_to = condition(getattr(obj.status, "conditions", ()), about)
                    status = "Unknown" if set_to is None else set_to.status
                found[kind, about.value, status] += 1
    return dict(found)
