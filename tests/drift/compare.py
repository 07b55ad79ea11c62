"""Compares two answers to a case; determines the exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What is to be said of one case."""

    SAME = "same"
    EXPLAINED = "differs, explained"
    UNEXPLAINED = "differs, unexplained"
    STALE = "explained, but the same"


@dataclass(frozen=True)
class Outcome:
    """One case on both APIs."""

    id: str
    real: Sequence[str]
    embedded: Sequence[str]
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """What is to be said of it."""
        if list(self.real) == list(self.embedded):
            return Verdict.STALE if self.reason else Verdict.SAME
        return Verdict.EXPLAINED if self.reason else Verdict.UNEXPLAINED

    @property
    def fails(self) -> bool:
        """Whether somebody has to do something about it."""
        return self.verdict in (Verdict.UNEXPLAINED, Verdict.STALE)


def outcomes(
    real: Mapping[str, Sequence[str]], embedded: Mapping[str, Sequence[str]], explained: Mapping[str, str]
) -> list[Outcome]:
    """Each case that ran on both, in order.

    Args:
        real, embedded: case id to the answer's lines.
        explained: case id to the reason why the answers may differ.
    """
    return [Outcome(case, answer, embedded[case], explained.get(case, "")) for case, answer in real.items()]


def counts(found: Sequence[Outcome]) -> dict[Verdict, int]:
    """How many there are of each."""
    return {verdict: sum(outcome.verdict is verdict for outcome in found) for verdict in Verdict}


def side_by_side(outcome: Outcome, width: int, most: int = 40) -> Iterator[str]:
    """The lines that differ, the real API's on the left.

    Args:
        width: of the whole, in characters.
        most: how many lines are shown before the rest is only counted.
    """
    half = (width - 3) // 2
    rows: list[tuple[str, str]] = []
    matcher = difflib.SequenceMatcher(a=list(outcome.real), b=list(outcome.embedded), autojunk=False)
    for what, left, left_end, right, right_end in matcher.get_opcodes():
        if what == "equal":
            continue
        for step in range(max(left_end - left, right_end - right)):
            rows.append(
                (
                    outcome.real[left + step] if left + step < left_end else "",
                    outcome.embedded[right + step] if right + step < right_end else "",
                )
            )
    for left_text, right_text in rows[:most]:
        for part in range(0, max(len(left_text), len(right_text), 1), half):
            yield f"{left_text[part : part + half]:<{half}} | {right_text[part : part + half]}".rstrip()
    if len(rows) > most:
        yield f"... and {len(rows) - most} lines more"
