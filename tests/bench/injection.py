"""Plays the whole corpus of prompt injections and prints its table: `make bench-injection`. Fails if a defence does."""

import asyncio
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other from there, as under pytest

from injection.corpus import Row, play_all, play_redirects

_COLUMNS = (
    "script",
    "cases",
    "instruction read",
    "acts",
    "leaks",
    "over budget",
    "High on A or X alone",
    "planted, High beside a fact of class K",
    "own task solved with High",
)


def _cells(row: Row) -> list[str]:
    figures = (
        row.cases,
        row.read,
        row.acts,
        row.leaks,
        row.overspent,
        row.high_on_text,
        row.high_beside_facts,
        row.solved,
    )
    return [row.script.value, *map(str, figures)]


def main() -> None:
    """Prints the table; exits with 1 if an attack succeeded."""
    rows = asyncio.run(play_all())
    table = Table(*_COLUMNS)
    for row in rows:
        table.add_row(*_cells(row))
    redirected = Table("place", "runs with a call to the attacker's address, of 2")
    for place, acts in asyncio.run(play_redirects()).items():
        redirected.add_row(place, str(acts))
    Console(width=160).print(table, redirected)
    sys.exit(any(row.broken for row in rows))


if __name__ == "__main__":
    main()
