"""Finds which changes the signals of rules explain.

A signal shows a fault that exists now. It explains a change of the object that it names as the reason, and a change of
the field that its rule is about: a lowered memory limit under a container that ran out of memory.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tarsy.evidence.changes.change import Change
from tarsy.evidence.rules.signal import Signal
from tarsy.evidence.snapshot import ObjectKey

_NAMES = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Explained:
    """Holds the changes that the signals of a target explain.

    Attributes:
        objects: outside of the target's group, that signals name as the reason of a fault.
        fields: names of fields of the objects of the target that signals are about.
    """

    objects: Collection[ObjectKey] = ()
    fields: Mapping[ObjectKey, Collection[str]] = field(default_factory=dict)

    def has(self, change: Change) -> bool:
        """Returns whether a signal explains a change."""
        if change.object in self.objects:
            return True
        about = self.fields.get(change.object, ())
        return any(name in about for path in change.fields for name in _NAMES.findall(path.partition(" ")[0]))


NOTHING = Explained()


def explained(signals: Sequence[Signal], group: Collection[ObjectKey], scope: Collection[ObjectKey]) -> Explained:
    """Returns which changes signals explain.

    A signal about the target names the reason after the failing object. A signal that names nothing of the target, but
    objects that can affect it (its Node, its quota), is about the reason itself.

    Args:
        signals: of the target.
        group: the target with its owners and what they own.
        scope: the objects that can affect the target.
    """
    objects: set[ObjectKey] = set()
    fields: dict[ObjectKey, set[str]] = defaultdict(set)
    for signal in signals:
        if any(key in group for key in signal.objects):
            objects |= {key for key in signal.objects[1:] if key not in group}
            for key in signal.objects:
                fields[key].update(signal.fields)
        else:
            objects |= {key for key in signal.objects if key in scope}
    return Explained(objects, fields)
