"""Ranks the changes of an incident and finds its faults by rules, without a model.

The rank is the place of the true change among candidates and unordered changes: a change that is told to be a
consequence is not found. A signal is right when its rule is accepted for the incident and one of its first two objects
is an object of the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tarsy.evidence.changes.ranking import Order
from tarsy.evidence.report import find_changes
from tarsy.evidence.rules.signal import Certainty, Signal
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.topology import Topology
from tarsy_dev.incidents.corpus import Incident, key_of

_FIRST = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """An incident and what was found.

    Attributes:
        incident: the incident.
        ranked: objects of the changes, without consequences, each once, best first.
        signals: of the target.
    """

    incident: Incident
    ranked: Sequence[ObjectKey]
    signals: Sequence[Signal]

    @property
    def rank(self) -> int | None:
        """Returns the place of the true change from 1; None if it is not found or there is none."""
        change = self.incident.change
        return self.ranked.index(change) + 1 if change in self.ranked else None

    @property
    def certain(self) -> Sequence[Signal]:
        """Returns the signals of which a rule is certain."""
        return [one for one in self.signals if one.certainty is Certainty.CERTAIN]

    @property
    def right(self) -> Sequence[Signal]:
        """Returns the signals that describe the fault."""
        names = [name for fault in self.incident.faults for name in fault.objects]
        truth = {key_of(name, self.incident.namespace) for name in names}
        return [
            one for one in self.signals if one.rule in self.incident.rules and truth.intersection(one.objects[:_FIRST])
        ]

    @property
    def visible(self) -> bool:
        """Returns whether there is a fault that objects show."""
        return any(fault.visible for fault in self.incident.faults)

    @property
    def rules_are_right(self) -> bool:
        """Returns whether the first signal describes the fault or, without a fault, whether no signal is certain."""
        if not self.incident.faults:
            return not self.certain
        return bool(self.signals) and self.signals[0] in self.right


def measure(incident: Incident, snapshot: Snapshot | None = None) -> Measured:
    """Ranks the changes and finds the faults of an incident, for its target.

    Args:
        incident: the incident.
        snapshot: its objects as they were read; None: as they stand in the file.
    """
    topology = Topology(incident.snapshot() if snapshot is None else snapshot)
    report = find_changes(topology, incident.namespace, incident.target)
    ranked = [one.change.object for one in report.changes if one.order is not Order.CONSEQUENCE]
    return Measured(incident, list(dict.fromkeys(ranked)), report.signals)
