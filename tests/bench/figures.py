"""Figures: what a benchmark says, as a table for people and as JSON for programs."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `aim` is what its issue hopes for, in words; `detail` is only in the JSON.

    `beside` is the same figure of what it is compared with, where there is such a thing.
    """

    name: str
    value: float
    unit: str
    aim: str = ""
    detail: Any = None
    beside: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark found; `how` says what was run and what was counted.

    `columns` names the two things that are compared, where its figures have a `beside`.
    """

    how: str
    figures: Sequence[Figure]
    columns: tuple[str, str] | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def spread(name: str, values: Sequence[float], unit: str, aim: str = "") -> list[Figure]:
    """Median and 95th percentile of a series."""
    series = [round(value, 3) for value in values]
    return [
        Figure(f"{name}, p50", statistics.median(values), unit, detail=series),
        Figure(f"{name}, p95", percentile(values, 0.95), unit, aim),
    ]


def best_cpu(work: Callable[[], object], rounds: int) -> float:
    """Seconds of processor time of the quickest of so many rounds; never 0."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return max(best, 1e-9)


def show(console: Console, name: str, result: Result) -> None:
    """Prints a benchmark's figures."""
    table = Table(title=name, caption=result.how, title_justify="left", caption_justify="left", title_style="bold")
    table.add_column("figure")
    for column in result.columns or ("value",):
        table.add_column(column, justify="right")
    if result.columns:
        table.add_column("ratio", justify="right")
    table.add_column("unit")
    table.add_column("aim")
    for figure in result.figures:
        values = [_shown(figure.value)]
        if result.columns:
            values += [_shown(figure.beside), _shown(figure.value / figure.beside)] if figure.beside else ["", ""]
        table.add_row(figure.name, *values, figure.unit, figure.aim)
    console.print(table)


def _shown(value: float) -> str:
    return f"{value:,.4g}"
