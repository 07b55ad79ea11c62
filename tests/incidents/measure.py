"""Measures ranking and rules on the corpus of incidents: `python -m tests.incidents.measure`."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other from there, as under pytest

from tarsy.evidence.snapshot import ObjectKey
from tarsy_dev.incidents.corpus import KINDS_OF_INCIDENTS, load_incidents
from tarsy_dev.incidents.rules import Measured, measure


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over incidents; each share is a count of `with_change`, `with_fault`, `signals` or `certain_signals`."""

    incidents: int
    with_change: int
    first: int
    third: int
    with_fault: int
    right: int
    certain_right: int
    certain_other: int
    certain_without_fault: int
    first_right: int
    signals: int
    signals_right: int
    certain_signals: int
    certain_signals_right: int

    @property
    def recall_at_1(self) -> float:
        """Returns the share of true changes at the first place; 0 without any."""
        return _share(self.first, self.with_change)

    @property
    def recall_at_3(self) -> float:
        """Returns the share of true changes at the first three places; 0 without any."""
        return _share(self.third, self.with_change)

    @property
    def rule_recall(self) -> float:
        """Returns the share of visible faults for which there is a right signal; 0 without any."""
        return _share(self.right, self.with_fault)

    @property
    def rule_precision(self) -> float:
        """Returns the share of signals that describe the fault; 0 without any."""
        return _share(self.signals_right, self.signals)

    @property
    def certain_precision(self) -> float:
        """Returns the share of certain signals that describe the fault; 0 without any."""
        return _share(self.certain_signals_right, self.certain_signals)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def totals(measured: Sequence[Measured], kind: str = "", half: str = "") -> Totals:
    """Counts over incidents.

    Args:
        measured: all of them.
        kind: only this kind; empty: all.
        half: only this half; empty: both.
    """
    chosen = [one for one in measured if kind in ("", one.incident.kind) and half in ("", one.incident.half)]
    faulty = [one for one in chosen if one.visible]
    return Totals(
        len(chosen),
        _count(chosen, lambda one: one.incident.change is not None),
        _count(chosen, lambda one: one.rank == 1),
        _count(chosen, lambda one: one.rank is not None and one.rank <= 3),
        len(faulty),
        _count(faulty, lambda one: bool(one.right)),
        _count(faulty, lambda one: any(signal in one.right for signal in one.certain)),
        _count(faulty, lambda one: any(signal not in one.right for signal in one.certain)),
        _count(chosen, lambda one: one.incident.kind == "no-fault" and bool(one.certain)),
        _count(faulty, lambda one: bool(one.signals) and one.signals[0] in one.right),
        sum(len(one.signals) for one in chosen),
        sum(len(one.right) for one in chosen),
        sum(len(one.certain) for one in chosen),
        sum(signal in one.right for one in chosen for signal in one.certain),
    )


def _count(measured: Sequence[Measured], holds: Callable[[Measured], bool]) -> int:
    return sum(map(holds, measured))


def main() -> int:
    """Prints the tables; ends 0 whatever was found."""
    measured = [measure(incident) for incident in load_incidents()]
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(_incidents(measured))
    console.print(_totals(measured))
    return 0


def _incidents(measured: Sequence[Measured]) -> Table:
    table = Table("incident", "half", "kind", "true change", "rank", "first three", "signals (+ right)", expand=True)
    for one in sorted(measured, key=lambda one: (list(KINDS_OF_INCIDENTS).index(one.incident.kind), one.incident.half)):
        change = one.incident.change
        table.add_row(
            one.incident.name,
            one.incident.half,
            one.incident.kind,
            _short(change) if change else "-",
            str(one.rank or ("missed" if change else "-")),
            ", ".join(map(_short, one.ranked[:3])) or "-",
            ", ".join(
                f"{'+' if signal in one.right else ''}{signal.rule} {signal.certainty}" for signal in one.signals
            ),
        )
    return table


def _totals(measured: Sequence[Measured]) -> Table:
    table = Table(
        "kind",
        "half",
        "incidents",
        "recall@1",
        "recall@3",
        "rules only",
        "right signal",
        "right Certain",
        "other Certain",
    )
    groups = [(kind, half) for kind in KINDS_OF_INCIDENTS for half in "AB"]
    for kind, half in [*groups, ("", "A"), ("", "B"), ("", "")]:
        found = totals(measured, kind, half)
        table.add_row(
            kind or "all",
            half or "both",
            str(found.incidents),
            f"{found.first}/{found.with_change}",
            f"{found.third}/{found.with_change}",
            f"{found.first_right}/{found.with_fault}",
            f"{found.right}/{found.with_fault}",
            f"{found.certain_right}/{found.with_fault}",
            str(found.certain_other + found.certain_without_fault),
        )
    return table


def _short(key: ObjectKey) -> str:
    return f"{key.kind}/{key.name}"


if __name__ == "__main__":
    sys.exit(main())
