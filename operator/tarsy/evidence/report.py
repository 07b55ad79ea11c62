"""Computes evidence of a namespace or a target, as one report: onset, ranked changes, signals, gaps."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tarsy.evidence.changes.explained import explained
from tarsy.evidence.changes.ranking import LONGEST_WINDOW, WINDOW_BEFORE, RankedChange, rank
from tarsy.evidence.changes.reconstruct import reconstruct
from tarsy.evidence.edges import Relation
from tarsy.evidence.history.recorded import RecordedHistory, merged_changes
from tarsy.evidence.onset import Onset, find_onset
from tarsy.evidence.rules.signal import Signal
from tarsy.evidence.rules.table import find_signals
from tarsy.evidence.snapshot import Gap, ObjectKey
from tarsy.evidence.topology import Reach, Topology

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """Changes that may have to do with a target.

    Attributes:
        target: the object; None: all of the namespace.
        onset: when it began to fail; None: nothing says so, and changes are ordered by the time now.
        changes: candidates by score, then unordered ones, then consequences.
        since: the start of the window.
        gaps: what could not be read.
        signals: what rules find about the target; they are part of the ranking.
    """

    target: ObjectKey | None
    onset: Onset | None
    changes: Sequence[RankedChange]
    since: datetime
    gaps: Sequence[Gap]
    signals: Sequence[Signal] = ()


def find_changes(
    topology: Topology,
    namespace: str,
    target: ObjectKey | None = None,
    *,
    alerted_at: datetime | None = None,
    window: timedelta = WINDOW_BEFORE,
    signals: Sequence[Signal] | None = None,
    history: RecordedHistory | None = None,
) -> ChangeReport:
    """Returns the changes that may have to do with a target, ranked.

    Args:
        topology: of the objects that were read.
        namespace: of the target.
        target: the object; None: every object of the namespace counts alike.
        alerted_at: when monitoring says that the alert began.
        window: how long before the onset changes count, at most LONGEST_WINDOW.
        signals: of the target, as `find_faults` returns them; None: they are found here.
        history: recorded changes of the namespace, of kinds that the reader may read; None: changes are reconstructed.
    """
    snapshot = topology.snapshot
    scope = topology.scope(target) if target is not None else {key: Reach(1.0) for key in snapshot.all_keys()}
    failing = failing_objects(topology, target) if target is not None else snapshot.keys("Pod", namespace)
    onset = find_onset(snapshot, failing, alerted_at)
    until = onset.at if onset is not None else snapshot.read_at
    window = max(timedelta(0), min(window, LONGEST_WINDOW, until - _BEGINNING))
    since = until - window
    group = topology.group(target) if target is not None else frozenset[ObjectKey]()
    known = find_faults(topology, target) if signals is None else signals
    recorded = history or RecordedHistory()
    ranked = rank(
        merged_changes(reconstruct(snapshot, since), [one for one in recorded.changes if since <= one.at]),
        onset or Onset(snapshot.read_at, "the time now", timedelta(0)),
        scope,
        namespace,
        because=explained(known, group, scope),
        window=window,
    )
    return ChangeReport(target, onset, ranked, since, [*topology.gaps, *recorded.gaps], known)


def failing_objects(topology: Topology, target: ObjectKey) -> Collection[ObjectKey]:
    """Returns the objects whose failures are the target's: its group, and pods that a Service or route leads to."""
    found = set(topology.group(target))
    for step in (Relation.ROUTES, Relation.SELECTS):
        found |= {edge.target for key in list(found) for edge in topology.out_of(key) if edge.relation is step}
    return found


def find_faults(topology: Topology, target: ObjectKey | None = None) -> Sequence[Signal]:
    """Returns the signals of all rules; with a target, those of objects that reach it or that it reaches.

    Args:
        topology: of the objects that were read.
        target: the object; None: all.
    """
    signals = find_signals(topology.snapshot, topology)
    if target is None:
        return signals
    near = topology.scope(target).keys() | topology.blast_radius(target).keys()
    return [one for one in signals if any(key in near for key in one.objects)]


def gaps_text(gaps: Sequence[Gap]) -> Sequence[str]:
    """Returns a sentence for each reason for which kinds could not be read."""
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(gap.kind)
    return [f"Not read: {', '.join(kinds)} ({reason})." for reason, kinds in by_reason.items()]
