"""Computes evidence of a namespace or a target, as one report: onset, ranked changes, signals, gaps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tarsy.evidence.changes.ranking import WINDOW_BEFORE, Order, RankedChange, rank
from tarsy.evidence.changes.reconstruct import reconstruct
from tarsy.evidence.onset import Onset, find_onset
from tarsy.evidence.rules.signal import Certainty, Signal
from tarsy.evidence.rules.table import find_signals
from tarsy.evidence.snapshot import Gap, ObjectKey
from tarsy.evidence.topology import NAMESPACE_REACH, Reach, Relation, Topology

_SIGNALS_SHOWN = 12
_CHANGES_SHOWN = 8
_CONSEQUENCES_SHOWN = 5
_LINE = 300
LIMIT = 8_000
"""Maximum characters of a report for a model, about 2,000 tokens."""


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """Changes that may have to do with a target.

    Attributes:
        target: the object; None: all of the namespace.
        onset: when it began to fail; None: nothing says so, and changes are ordered by the time now.
        changes: candidates by score, then unordered ones, then consequences.
        since: the start of the window.
        gaps: what could not be read.
    """

    target: ObjectKey | None
    onset: Onset | None
    changes: Sequence[RankedChange]
    since: datetime
    gaps: Sequence[Gap]


def find_changes(
    topology: Topology,
    namespace: str,
    target: ObjectKey | None = None,
    *,
    alerted_at: datetime | None = None,
    window: timedelta = WINDOW_BEFORE,
) -> ChangeReport:
    """Returns the changes that may have to do with a target, ranked.

    Args:
        topology: of the objects that were read.
        namespace: of the target.
        target: the object; None: every object of the namespace counts alike.
        alerted_at: when monitoring says that the alert began.
        window: how long before the onset changes count.
    """
    snapshot = topology.snapshot
    scope = topology.scope(target) if target is not None else {key: Reach(1.0) for key in snapshot.all_keys()}
    failing = _failing(topology, target) if target is not None else snapshot.keys("Pod", namespace)
    onset = find_onset(snapshot, failing, alerted_at)
    since = (onset.at if onset is not None else snapshot.read_at) - window
    group = topology.group(target) if target is not None else frozenset[ObjectKey]()
    named = {key for signal in find_faults(topology, target) for key in signal.objects[1:] if key not in group}
    ranked = rank(
        reconstruct(snapshot, since),
        onset or Onset(snapshot.read_at, "the time now", timedelta(0)),
        scope,
        namespace,
        named=named,
        window=window,
    )
    return ChangeReport(target, onset, ranked, since, snapshot.gaps)


def _failing(topology: Topology, target: ObjectKey) -> Iterable[ObjectKey]:
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


def changes_text(report: ChangeReport) -> str:
    """Returns a report of changes for a model or a record: plain text of bounded length."""
    about = str(report.target) if report.target else "the namespace"
    if report.onset is None:
        began = f"Nothing says when {about} began to fail; changes are ordered by their distance from now."
    else:
        began = f"{about} began to fail at {_time(report.onset.at)} (told by {report.onset.told_by})."
    lines = [began, f"Changes since {_time(report.since)}, reconstructed from the objects as they are:"]
    for order, most in (
        (Order.CANDIDATE, _CHANGES_SHOWN),
        (Order.UNORDERED, 3),
        (Order.CONSEQUENCE, _CONSEQUENCES_SHOWN),
    ):
        found = [one for one in report.changes if one.order is order]
        lines += [f"  {_change(one)}" for one in found[:most]]
        if len(found) > most:
            lines.append(f"  ... and {len(found) - most} more of order {order}")
    if not report.changes:
        lines.append("  none")
    return _bounded([*lines, *_gaps(report.gaps)])


def faults_text(signals: Sequence[Signal], gaps: Sequence[Gap]) -> str:
    """Returns signals for a model or a record: plain text of bounded length."""
    lines = [f"Signals of rules ({len(signals)}), from the objects as they are now:"]
    for one in signals[:_SIGNALS_SHOWN]:
        count = f" ({one.count} alike)" if one.count > 1 else ""
        lines += [f"  {one.certainty} [{one.rule}] {_cut(one.text)}{count}", f'    quote: "{_cut(one.quote)}"']
    if len(signals) > _SIGNALS_SHOWN:
        lines.append(f"  ... and {len(signals) - _SIGNALS_SHOWN} more")
    if not signals:
        lines.append("  none: no rule found a fault in the objects that could be read")
    return _bounded([*lines, *_gaps(gaps)])


def certain(signals: Iterable[Signal]) -> bool:
    """Returns whether a rule is certain of a fault."""
    return any(one.certainty is Certainty.CERTAIN for one in signals)


def _change(one: RankedChange) -> str:
    change = one.change
    by = f" by {change.manager}" if change.manager else ""
    how = "same namespace" if one.reach.weight == NAMESPACE_REACH and not one.reach.path else _path(one)
    score = f"score {one.score:.2f}" if one.order is not Order.CONSEQUENCE else "after the onset"
    return _cut(f"{one.order} {score} {_time(change.at)} {change.type} {change.object}: {change.summary}{by} ({how})")


def _path(one: RankedChange) -> str:
    if not one.reach.path:
        return "the target itself"
    return " -> ".join(f"{edge.relation} {edge.target}" for edge in one.reach.path)


def _gaps(gaps: Sequence[Gap]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(gap.kind)
    return [f"Not read: {', '.join(kinds)} ({reason})." for reason, kinds in by_reason.items()]


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE - 3]}..."


def _bounded(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= LIMIT else f"{text[: LIMIT - 4].rpartition(chr(10))[0]}\n..."
