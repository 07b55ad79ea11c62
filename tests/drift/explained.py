"""Reads the table of explanations: reasons, each with the cases whose answers differ for it.

The same table stands in the README of the embedded API; a unit test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).parent / "explained.yaml"


@dataclass(frozen=True)
class Explanation:
    """Why some cases differ; `reason` is Markdown, one line."""

    reason: str
    cases: tuple[str, ...]


def load(path: Path = FILE) -> list[Explanation]:
    """All explanations, in the order of the file."""
    return [
        Explanation(" ".join(each["reason"].split()), tuple(each["cases"])) for each in yaml.safe_load(path.read_text())
    ]


def by_case(explanations: list[Explanation]) -> dict[str, str]:
    """Case id to reason; two for one case are both told."""
    found: dict[str, str] = {}
    for explanation in explanations:
        for case in explanation.cases:
            found[case] = f"{found[case]}; {explanation.reason}" if case in found else explanation.reason
    return found


def markdown(explanations: list[Explanation]) -> Iterator[str]:
    """The rows of the README's table."""
    for explanation in explanations:
        yield f"| {explanation.reason} | {', '.join(f'`{case}`' for case in explanation.cases)} |"
