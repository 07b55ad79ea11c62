"""Compares answers of two APIs: the differences that count, and how they are shown."""

import pytest
from tests.drift.compare import Outcome, Verdict, counts, outcomes, side_by_side


@pytest.mark.parametrize(
    ("real", "embedded", "reason", "verdict", "fails"),
    [
        (["a"], ["a"], "", Verdict.SAME, False),
        (["a"], ["b"], "newer", Verdict.EXPLAINED, False),
        (["a"], ["b"], "", Verdict.UNEXPLAINED, True),
        (["a"], ["a"], "newer", Verdict.STALE, True),
        (["a", "b"], ["b", "a"], "", Verdict.UNEXPLAINED, True),
    ],
)
def test_a_difference_needs_an_explanation_and_an_explanation_a_difference(
    real: list[str], embedded: list[str], reason: str, verdict: Verdict, fails: bool
) -> None:
    outcome = Outcome("x/y", real, embedded, reason)
    assert (outcome.verdict, outcome.fails) == (verdict, fails)


def test_each_case_is_counted_once() -> None:
    found = outcomes({"a": ["1"], "b": ["1"], "c": ["1"]}, {"a": ["1"], "b": ["2"], "c": ["2"]}, {"c": "newer"})
    assert counts(found) == {Verdict.SAME: 1, Verdict.EXPLAINED: 1, Verdict.UNEXPLAINED: 1, Verdict.STALE: 0}


def test_lines_that_differ_stand_side_by_side_and_the_others_are_left_out() -> None:
    outcome = Outcome("x/y", ["status 200", "same", "a = 1"], ["status 404", "same"])
    assert list(side_by_side(outcome, 23)) == ["status 200 | status 404", "a = 1      |"]


def test_long_differences_are_cut_with_a_count() -> None:
    outcome = Outcome("x/y", [f"line {at}" for at in range(5)], [])
    assert list(side_by_side(outcome, 40, most=2))[-1] == "... and 3 lines more"
