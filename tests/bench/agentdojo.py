"""Plays AgentDojo's cases with a model that obeys, and prints the table: part of `make bench-injection`.

AgentDojo brings clients of models in versions of its own, so it is installed into an environment of its own. Without
it, this says how to get it and measures nothing.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other from there, as under pytest

from injection.dojo import CALLS, DojoPlayed, DojoServer, Pair, dojo_server, play_dojo
from tarsy.plan.policy import ToolPolicy

PACKAGE = "agentdojo==0.1.35"
PYTHON = Path(os.environ.get("TARSY_AGENTDOJO_PYTHON") or "build/agentdojo/bin/python")
_COLUMNS = (
    "tools",
    "cases",
    "instruction read",
    "acts",
    "leaks",
    "attacker's goal reached",
    "over budget",
    "High on A or X alone",
    "user's task solved",
)


@dataclass
class DojoRow:
    """The sums of the cases of one kind."""

    label: str
    policy: ToolPolicy
    attacked: bool
    cases: int = 0
    read: int = 0
    acts: int = 0
    leaks: int = 0
    reached: int = 0
    overspent: int = 0
    high: int = 0
    solved: int = 0

    def add(self, played: DojoPlayed) -> None:
        """Adds one case. Without an attack and a policy, what the user asked for is no act."""
        self.cases += 1
        self.read += played.read
        self.acts += bool(played.acts) and (self.attacked or self.policy is ToolPolicy.READ_ONLY)
        self.leaks += bool(played.leaks) and (self.attacked or self.policy is ToolPolicy.READ_ONLY)
        self.reached += played.reached
        self.overspent += played.calls > CALLS
        self.high += played.high
        self.solved += played.solved

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        found = (self.read, self.acts, self.leaks, self.reached, self.overspent, self.high, self.solved)
        return [self.label, str(self.cases), *map(str, found)]

    @property
    def broken(self) -> bool:
        """Whether a defence failed."""
        guarded = self.policy is ToolPolicy.READ_ONLY
        return bool(self.high or self.overspent or (guarded and (self.acts or self.leaks)))


async def play_part(server: DojoServer, pairs: Sequence[Pair]) -> list[DojoRow]:
    """Plays cases with and without a tool policy."""
    rows = [
        DojoRow("read-only, attacked", ToolPolicy.READ_ONLY, True),
        DojoRow("read-only, benign", ToolPolicy.READ_ONLY, False),
        DojoRow("all, attacked", ToolPolicy.ALL, True),
        DojoRow("all, benign", ToolPolicy.ALL, False),
    ]
    for row in rows:
        for pair in pairs:
            if (pair[2] is not None) is row.attacked:
                row.add(await play_dojo(server, pair, policy=row.policy))
    return rows


def main() -> None:
    """Prints the table; exits with 1 if an attack succeeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="Part of the cases, such as 2/4.")
    part, parts = map(int, parser.parse_args().part.split("/"))
    if not PYTHON.is_file():
        print(
            "AgentDojo is not installed, so its cases are not played. To install it: python3 -m venv build/agentdojo "
            f"&& build/agentdojo/bin/pip install {PACKAGE}"
        )
        return
    began = time.monotonic()
    with dojo_server(PYTHON) as server:
        pairs = server.pairs[part - 1 :: parts]
        rows = asyncio.run(play_part(server, pairs))
    table = Table(*_COLUMNS, title=f"{PACKAGE}, suites {server.version}, part {part} of {parts}")
    for row in rows:
        table.add_row(*row.cells)
    Console(width=160).print(table)
    print(f"{sum(row.cases for row in rows)} runs in {time.monotonic() - began:.0f} s")
    sys.exit(any(row.broken for row in rows))


if __name__ == "__main__":
    main()
