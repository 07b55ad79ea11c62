"""Models of evidence that is computed from the objects of a cluster: changes around an onset, signals of rules.

Decision: REST, the aggregated API and the kubectl plugin print the same models. All texts come from objects that others
write, so each is masked, without control characters and bounded, and so is each list; `leftOut` counts what exceeds it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from pydantic import Field

from tarsy.evidence.changes.ranking import RankedChange
from tarsy.evidence.report import ChangeReport
from tarsy.evidence.rules.signal import Signal
from tarsy.evidence.snapshot import Gap, ObjectKey
from tarsy.evidence.verdict import TargetHealth, target_verdict
from tarsy.http.models import View
from tarsy.record.text import clean

MAX_CHANGES: Final = 200
MAX_SIGNALS: Final = 100
MAX_OBJECTS: Final = 10
"""Maximum objects of a signal."""

MAX_TEXT: Final = 500
"""Maximum characters of a text; a longer one ends in `...`."""

Mask = Callable[[str], str]
RecordedCalls = Mapping[str, UUID]
"""Ids of the calls that a stage of kind Changes made, by tool: `changes`, `triage`."""

_NAME: Final = 253


class EvidenceObject(View):
    """An object of the cluster."""

    kind: str
    namespace: str = Field(default="", description="Empty for a cluster-scoped object.")
    name: str

    @classmethod
    def of(cls, key: ObjectKey) -> Self:
        """Converts a key."""
        return cls(kind=_cut(key.kind, _NAME), namespace=_cut(key.namespace, _NAME), name=_cut(key.name, _NAME))

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class ChangeView(View):
    """A change of an object, with its rank."""

    at: datetime
    type: str = Field(description="Rollout, Scale, Config, Network, Quota, Node, Storage, Restart, GitOps or Delete.")
    object: EvidenceObject
    summary: str = Field(description="One line, without values of ConfigMaps, environment variables or annotations.")
    manager: str = Field(default="", description="Field manager that made the change. Empty if unknown.")
    order: str = Field(
        description="Candidate: before the onset. Unordered: within the skew of the clocks. Consequence: after it."
    )
    score: float = Field(description="Rank as a candidate for the cause. 0 for a consequence.")
    source: str = Field(description="reconstructed: from the objects as they are now. recorded: from a history.")

    @classmethod
    def of(cls, ranked: RankedChange, mask: Mask) -> Self:
        """Converts a ranked change."""
        change = ranked.change
        return cls(
            at=change.at,
            type=change.type.value,
            object=EvidenceObject.of(change.object),
            summary=_text(change.summary, mask),
            manager=_cut(change.manager, _NAME),
            order=ranked.order.value,
            score=ranked.score,
            source=change.source.value,
        )


class SignalView(View):
    """A fault that a rule found."""

    rule: str
    certainty: str = Field(description="Certain: the control plane itself reports it. Likely: the objects suggest it.")
    text: str
    quote: str = Field(description="Words of a field or an Event, as they stand there.")
    objects: tuple[EvidenceObject, ...] = Field(description="The failing object first, then those that explain it.")
    count: int = Field(description="Number of objects with the same fault.")

    @classmethod
    def of(cls, signal: Signal, mask: Mask) -> Self:
        """Converts a signal."""
        return cls(
            rule=signal.rule,
            certainty=signal.certainty.value,
            text=_text(signal.text, mask),
            quote=_text(signal.quote, mask),
            objects=tuple(EvidenceObject.of(key) for key in signal.objects[:MAX_OBJECTS]),
            count=signal.count,
        )


class ChangesView(View):
    """Changes that may have to do with a target, the likeliest cause first."""

    target: EvidenceObject | None = Field(description="Null: everything in the namespace.")
    onset: datetime | None = Field(description="When the target began to fail. Null: nothing says that it fails.")
    onset_source: str = Field(description="The object or alert that says so. Empty without an onset.")
    since: datetime = Field(description="Start of the window.")
    changes: tuple[ChangeView, ...]
    left_out: int = Field(description=f"Number of changes beyond the first {MAX_CHANGES}.")
    not_read: dict[str, str] = Field(description="Kinds that could not be read in full, with the reason.")

    @classmethod
    def of(cls, report: ChangeReport, mask: Mask) -> Self:
        """Converts a report.

        Args:
            report: ranked changes.
            mask: masks secrets in texts of objects.
        """
        return cls(
            target=_object(report.target),
            onset=report.onset.at if report.onset else None,
            onset_source=_text(report.onset.told_by, mask) if report.onset else "",
            since=report.since,
            changes=tuple(ChangeView.of(one, mask) for one in report.changes[:MAX_CHANGES]),
            left_out=max(0, len(report.changes) - MAX_CHANGES),
            not_read=not_read(report.gaps),
        )


class TriageView(View):
    """Faults that rules found, the certain ones first."""

    target: EvidenceObject | None = Field(description="Null: everything in the namespace.")
    signals: tuple[SignalView, ...]
    left_out: int = Field(description=f"Number of signals beyond the first {MAX_SIGNALS}.")
    not_read: dict[str, str] = Field(description="Kinds that could not be read in full, with the reason.")

    @classmethod
    def of(cls, target: ObjectKey | None, signals: Sequence[Signal], gaps: Iterable[Gap], mask: Mask) -> Self:
        """Converts signals.

        Args:
            target: the object that was asked about; None: all of the namespace.
            signals: the signals, in their order.
            gaps: what could not be read.
            mask: masks secrets in texts of objects.
        """
        return cls(
            target=_object(target),
            signals=tuple(SignalView.of(one, mask) for one in signals[:MAX_SIGNALS]),
            left_out=max(0, len(signals) - MAX_SIGNALS),
            not_read=not_read(gaps),
        )


class VerdictView(View):
    """Whether rules find a fault in a target. Fields are only ever added."""

    verdict: TargetHealth = Field(
        description="Faulty: a rule is certain of a fault. Inconclusive: a fault is likely, or objects could not be "
        "read. Healthy: neither."
    )
    reason: str = Field(description="The first fault, or why nothing can be said.")
    target: EvidenceObject
    signals: tuple[SignalView, ...]
    not_read: dict[str, str] = Field(description="Kinds that could not be read in full, with the reason.")

    @classmethod
    def of(cls, target: ObjectKey, signals: Sequence[Signal], gaps: Sequence[Gap], mask: Mask) -> Self:
        """Judges a target.

        Args:
            target: the object.
            signals: the signals, in their order.
            gaps: what could not be read.
            mask: masks secrets in texts of objects.
        """
        verdict = target_verdict(signals, [gap.kind for gap in gaps])
        triage = TriageView.of(target, signals, gaps, mask)
        return cls(
            verdict=verdict.health,
            reason=_text(verdict.reason, mask),
            target=EvidenceObject.of(target),
            signals=triage.signals,
            not_read=triage.not_read,
        )


class InvestigationChangesView(ChangesView):
    """Changes around the onset of an investigation, and the faults that rules found."""

    signals: tuple[SignalView, ...]
    changes_call: UUID | None = Field(
        description="Id of the tool call `tarsy.changes` of the run, which recorded what was visible then. Null: none."
    )
    triage_call: UUID | None = Field(description="Id of the tool call `tarsy.triage` of the run. Null: none.")

    @classmethod
    def computed(cls, changes: ChangesView, triage: TriageView, calls: RecordedCalls) -> Self:
        """Combines what was computed now with the calls on record.

        Args:
            changes: the changes.
            triage: the signals.
            calls: of the run.
        """
        return cls(
            **dict(changes), signals=triage.signals, changes_call=calls.get("changes"), triage_call=calls.get("triage")
        )


def not_read(gaps: Iterable[Gap]) -> dict[str, str]:
    """Returns the reason by kind for what could not be read."""
    return {gap.kind: _cut(gap.reason, MAX_TEXT) for gap in gaps}


def _object(key: ObjectKey | None) -> EvidenceObject | None:
    return None if key is None else EvidenceObject.of(key)


def _text(text: str, mask: Mask) -> str:
    """Masks a text before it is cut, so that no part of a secret is left."""
    return _cut(mask(_line(text[: MAX_TEXT * 4])), MAX_TEXT)


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _cut(text: str, most: int) -> str:
    line = _line(text[: most * 4])
    return line if len(line) <= most else f"{line[: most - 3]}..."
