"""Compares the figures of two runs: `python -m tests.bench compare OLD NEW`, two files written with `--out`.

Figures of two machines, or of two days on a shared one, differ for many reasons. A figure with something beside it is
therefore compared by its ratio, of which the machine is the smaller part; the others as they are.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs; None where a run did not have it. `unit` is "ratio" for one with something beside it."""

    benchmark: str
    figure: str
    unit: str
    old: float | None
    new: float | None

    @property
    def factor(self) -> float | None:
        """New over old; None where one of the two is missing or the old one is 0."""
        return self.new / self.old if self.old and self.new is not None else None


def main(arguments: Sequence[str]) -> int:
    """Prints the table; 2 where a file is not one of figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench compare", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    reports = []
    for path in (options.old, options.new):
        try:
            reports.append(_figures(json.loads(path.read_text())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"{path} holds no figures of `python -m tests.bench --out`: {error!r}", file=sys.stderr)
            return 2
    table = Table("benchmark", "figure", "unit", "old", "new", "new / old")
    for change in changes(*reports):
        numbers = (change.old, change.new, change.factor)
        shown = ["" if number is None else f"{number:,.4g}" for number in numbers]
        table.add_row(change.benchmark, change.figure, change.unit, *shown)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return 0


Figures = dict[tuple[str, str], tuple[str, float]]
"""Unit and value of each figure, by benchmark and name."""


def changes(old: Figures, new: Figures) -> Iterator[Change]:
    """Each figure of either run, in the order of the new one, those that only the old one had at the end."""
    for key in dict.fromkeys((*new, *old)):
        before, after = old.get(key), new.get(key)
        unit = (after or before or ("", 0.0))[0]
        yield Change(*key, unit, before and before[1], after and after[1])


def _figures(report: dict[str, Any]) -> Figures:
    found: Figures = {}
    for benchmark, result in report["benchmarks"].items():
        for figure in result.get("figures", ()):
            value, beside = figure["value"], figure.get("beside")
            found[benchmark, figure["name"]] = ("ratio", value / beside) if beside else (figure["unit"], value)
    return found
