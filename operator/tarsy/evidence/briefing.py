"""Reports the results of rules and ranking about an alert, as two tool results and as claims that cite them.

Every text from an object is masked and put on one line before anything is made of it, so that a quote in a statement
stands letter by letter in the result that it cites. A signal about the target is told before one about an object near
it. What could not be read is told with what was found, because "no fault" means little where pods could not be listed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from tarsy.evidence.alerted import AlertSubject, Target, choose_target
from tarsy.evidence.authorship import workload_texts
from tarsy.evidence.changes.ranking import Order, RankedChange
from tarsy.evidence.fields import one_line
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.report import ChangeReport, failing_objects, find_changes, find_faults, gaps_text
from tarsy.evidence.rules.signal import Certainty, Signal
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.topology import Topology
from tarsy.record.finding import Confidence
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.text import clean

LONGEST = 300
"""Characters of a text from an object."""

MOST_ITEMS = 1_000
"""Signals, and changes, of a result."""

_COMPARED = 80
_STATED_SIGNALS, _STATED_CHANGES = 5, 3


class Source(StrEnum):
    """The tool result that a statement cites."""

    TRIAGE = "triage"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and the line of a result that supports it."""

    text: str
    source: Source
    quote: str


@dataclass(frozen=True, slots=True)
class Section:
    """A tool result in lines: what it is about, what was found (the most important first), and what is missing.

    `written` are those of the lines that contain text which workloads can write; all others come from rules, and from
    fields that only the control plane writes.
    """

    head: Sequence[str]
    items: Sequence[str]
    foot: Sequence[str] = ()
    written: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join((*self.head, *self.items, *self.foot))

    @property
    def marks(self) -> EvidenceMarks:
        """The integrity classes of the text."""
        spans: list[tuple[int, int]] = []
        place = 0
        for line in self.text.split("\n"):
            end = place + len(line)
            if line and line not in self.written:
                touches = bool(spans) and spans[-1][1] == place - 1
                spans[-1 if touches else len(spans) :] = [(spans[-1][0] if touches else place, end)]
            place = end + 1
        return EvidenceMarks(Integrity.A, tuple(spans))


@dataclass(frozen=True, slots=True)
class Briefing:
    """Holds the facts about an alert that are known before a model is called.

    Attributes:
        triage: the signals of rules.
        changes: what changed.
        summary: one or two sentences.
        confidence: High where a rule found a fault of the alert's target that is certain.
        statements: each with its citation.
    """

    triage: Section
    changes: Section
    summary: str
    confidence: Confidence
    statements: Sequence[Statement]


def brief(
    snapshot: Snapshot,
    namespace: str,
    subject: AlertSubject,
    window: timedelta,
    mask: Callable[[str], str],
    history: RecordedHistory | None = None,
) -> Briefing:
    """Returns what is known about an alert.

    Args:
        snapshot: the objects.
        namespace: that was read.
        subject: of the alert.
        window: how long before the onset changes count.
        mask: removes secrets from a text; never raises.
        history: recorded changes that the reader may read; None: there are none.
    """
    topology = Topology(snapshot)
    target = choose_target(snapshot, namespace, subject)
    near = sorted(find_faults(topology, target.key), key=lambda one: one.certainty is not Certainty.CERTAIN)
    failing = () if target.key is None else failing_objects(topology, target.key)
    about = [_told(one, mask) for one in near if one.objects[0] in failing]
    others = [_told(one, mask) for one in near if one.objects[0] not in failing]
    report = find_changes(
        topology, namespace, target.key, alerted_at=subject.began, window=window, signals=near, history=history
    )
    report = replace(report, changes=[_masked(one, mask) for one in report.changes])
    where = str(target.key or f"namespace {namespace}")
    gaps = [_line(sentence, mask) for sentence in gaps_text(report.gaps)]
    facts = _Facts(where, target, about, others, report, gaps, _Written(workload_texts(snapshot), mask))
    summary, confidence = _concluded(facts)
    return Briefing(_triage(facts), _changes(facts), summary, confidence, tuple(_statements(facts)))


class _Written:
    """Tells which lines contain text that workloads can write.

    Args:
        texts: such texts by the object that they are about.
        mask: removes secrets from a text.
    """

    def __init__(self, texts: Mapping[ObjectKey, frozenset[str]], mask: Callable[[str], str]) -> None:
        self._texts, self._mask = texts, mask
        self._shown: dict[ObjectKey, Sequence[str]] = {}

    def among(self, lines: Iterable[str], objects: Iterable[ObjectKey]) -> Iterator[str]:
        """Yields those of the lines about some objects."""
        texts = [text for key in objects for text in self._of(key)]
        return (line for line in lines if any(text in line for text in texts))

    def _of(self, key: ObjectKey) -> Sequence[str]:
        if key not in self._shown:
            shown = (_line(text, self._mask) for text in self._texts.get(key, ()))
            self._shown[key] = [text.removesuffix("…")[:_COMPARED] for text in shown]
        return self._shown[key]


@dataclass(frozen=True, slots=True)
class _Facts:
    where: str
    target: Target
    about: Sequence[Signal]
    others: Sequence[Signal]
    report: ChangeReport
    gaps: Sequence[str]
    written: "_Written"

    @property
    def signals(self) -> Sequence[Signal]:
        return (*self.about, *self.others)[:MOST_ITEMS]

    @property
    def candidates(self) -> Sequence[RankedChange]:
        return [one for one in self.report.changes if one.order is Order.CANDIDATE]

    @property
    def no_fault(self) -> str:
        return f"No rule finds a fault in {self.where}."


def _line(text: str, mask: Callable[[str], str], limit: int = LONGEST) -> str:
    line = one_line(clean(mask(text)))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _told(signal: Signal, mask: Callable[[str], str]) -> Signal:
    return replace(signal, text=_line(signal.text, mask), quote=_line(signal.quote, mask))


def _masked(ranked: RankedChange, mask: Callable[[str], str]) -> RankedChange:
    change = ranked.change
    told = replace(change, summary=_line(change.summary, mask), manager=_line(change.manager, mask, 60))
    return replace(ranked, change=told)


def _triage(facts: _Facts) -> Section:
    head = [f"Faults of {facts.where} that rules find in the objects:"]
    if facts.target.note:
        head.insert(0, facts.target.note)
    items, written = [], set[str]()
    for one in facts.signals:
        lines = (f"{one.certainty.value}: {one.text}{_alike(one)}", f"  {_quoted(one)}")
        items.append("\n".join(lines))
        written.update(facts.written.among(lines, one.objects))
    return Section(head, items or [facts.no_fault], facts.gaps, frozenset(written))


def _quoted(signal: Signal) -> str:
    return f'{signal.rule}: "{signal.quote}"'


def _alike(signal: Signal) -> str:
    return f" ({signal.count} alike)" if signal.count > 1 else ""


def _changes(facts: _Facts) -> Section:
    report = facts.report
    if report.onset is None:
        head = f"Nothing says that {facts.where} fails; changes are listed by their weight and time."
    else:
        told = one_line(clean(report.onset.told_by))
        head = f"{facts.where} fails since {_time(report.onset.at)} ({told}). Changes since {_time(report.since)}:"
    items = list(_change_lines(report))
    shown = zip(report.changes, items, strict=False)
    written = frozenset(line for one, item in shown for line in facts.written.among([item], [one.change.object]))
    return Section([head], items or [f"No change since {_time(report.since)} is visible."], facts.gaps, written)


def _change_lines(report: ChangeReport) -> Iterator[str]:
    place = 0
    for one in report.changes[:MOST_ITEMS]:
        change = one.change
        place += one.order is Order.CANDIDATE
        order = {
            Order.CANDIDATE: f"{place}. score {one.score:.2f}",
            Order.UNORDERED: "Unordered (the clocks do not tell whether before or after)",
            Order.CONSEQUENCE: "After the onset",
        }[one.order]
        by = f", by {change.manager}" if change.manager else ""
        when = f"{_time(change.at)}{_before(change.at, report) if one.order is Order.CANDIDATE else ''}"
        yield f"{order}: {when}, {change.type.value} of {change.object}: {change.summary}{by} ({change.source.value})"


def _before(at: datetime, report: ChangeReport) -> str:
    if report.onset is None:
        return ""
    seconds = round((report.onset.at - at).total_seconds())
    return f" ({seconds // 60} min {seconds % 60} s before)" if seconds >= 60 else f" ({seconds} s before)"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _concluded(facts: _Facts) -> tuple[str, Confidence]:
    first, near = next(iter(facts.about), None), next(iter(facts.others), None)
    change = next(iter(facts.candidates), None)
    since = (
        "" if change is None or facts.report.onset is None else f" The likeliest change before it: {_short(change)}."
    )
    if first is not None:
        sure = first.certainty is Certainty.CERTAIN
        return f"{'' if sure else 'Likely: '}{first.text}{since}", Confidence.HIGH if sure else Confidence.MEDIUM
    if near is not None:
        place = "In the namespace" if facts.target.key is None else f"Near {facts.where}"
        return f"{place}: {near.text}{since}", Confidence.LOW
    if since:
        return f"{facts.no_fault}{since}", Confidence.LOW
    if facts.gaps:
        return f"{facts.no_fault} Not everything could be read.", Confidence.INCONCLUSIVE
    if facts.report.onset is None:
        return f"{facts.no_fault} Nothing in the objects says that it fails.", Confidence.LOW
    return f"{facts.no_fault} No change before the onset is visible.", Confidence.INCONCLUSIVE


def _short(ranked: RankedChange) -> str:
    change = ranked.change
    return f"{change.type.value} of {change.object} at {_time(change.at)} ({change.summary})"


def _statements(facts: _Facts) -> Iterator[Statement]:
    for signal in facts.signals[:_STATED_SIGNALS]:
        sure = "" if signal.certainty is Certainty.CERTAIN else "Likely: "
        yield Statement(f"{sure}{signal.text}{_alike(signal)}", Source.TRIAGE, _quoted(signal))
    if not facts.signals:
        yield Statement(facts.no_fault, Source.TRIAGE, facts.no_fault)
    if facts.report.onset is not None:  # candidates come first
        lines = islice(_change_lines(facts.report), _STATED_CHANGES)
        for ranked, line in zip(facts.candidates, lines, strict=False):
            yield Statement(f"Before the onset: {_short(ranked)}.", Source.CHANGES, line)
