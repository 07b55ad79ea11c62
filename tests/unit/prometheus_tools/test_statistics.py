"""Tests the figures of a series: gaps, NaN, resets, onsets, seasons, and the smallest series."""

import math
from collections.abc import Sequence

import pytest

from tarsy.prometheus_tools.series import Point
from tarsy.prometheus_tools.statistics import Summary, Threshold, season, summarize

STEP = 60.0


def points(*values: float | None, step: float = STEP) -> list[Point]:
    """Samples at a constant distance; None is a missing one."""
    return [Point(n * step, value) for n, value in enumerate(values) if value is not None]


def summary(found: Sequence[Point], **options: object) -> Summary:
    result = summarize(found, STEP, **options)  # type: ignore[arg-type]
    assert result is not None
    return result


@pytest.mark.parametrize("found", [[], points(math.nan), points(math.inf, -math.inf, math.nan)])
def test_a_series_without_a_finite_sample_has_no_figures(found: list[Point]) -> None:
    assert summarize(found, STEP) is None


def test_one_sample_is_now_peak_and_low_and_tells_no_slope() -> None:
    one = summary(points(5))
    assert (one.last, one.peak, one.trough, one.mean) == (Point(0, 5), Point(0, 5), Point(0, 5), 5)
    assert (one.slope, one.onset, one.season, one.gaps) == (None, None, None, 0)


def test_peak_low_mean_and_slope() -> None:
    found = summary(points(0, 1, 2, 3))
    assert (found.peak.time, found.trough.time, found.mean) == (180, 0, 1.5)
    assert found.slope == pytest.approx(60)


def test_samples_that_are_no_numbers_are_counted_and_left_out() -> None:
    found = summary(points(1, math.nan, 3, math.inf))
    assert (found.count, found.not_numbers, found.mean, found.last) == (2, 2, 2, Point(120, 3))


@pytest.mark.parametrize(
    ("values", "gaps", "longest"),
    [((1, 1, 1), 0, 0), ((1, None, 1), 1, 120), ((1, None, None, 1, 1, None, 1), 2, 180)],
)
def test_gaps_are_counted_with_the_longest(values: tuple[float | None, ...], gaps: int, longest: float) -> None:
    found = summary(points(*values))
    assert (found.gaps, found.longest_gap) == (gaps, longest)


@pytest.mark.parametrize(("distance", "gaps"), [(89.0, 0), (90.0, 0), (91.0, 1)])
def test_a_gap_is_longer_than_one_and_a_half_steps(distance: float, gaps: int) -> None:
    assert summary([Point(0, 1), Point(distance, 1)]).gaps == gaps


@pytest.mark.parametrize(("counter", "resets"), [(True, 2), (False, 0)])
def test_resets_are_counted_of_counters_only(counter: bool, resets: int) -> None:
    assert summary(points(1, 5, 0, 3, 2), counter=counter).resets == resets


@pytest.mark.parametrize(
    ("values", "at"),
    [
        ((1, 1, 1), None),
        ((1, 2, 1), None),  # at the limit is no breach
        ((1, 3, 1), 60),
        ((3, 3, 3), 0),
        ((1, 3, 1, 3, 3), 180),  # the breach that lasts, not the earlier one
        ((1, 3, 3, 1), 60),
    ],
)
def test_the_onset_is_the_begin_of_the_breach(values: tuple[float, ...], at: float | None) -> None:
    onset = summary(points(*values), threshold=Threshold(2)).onset
    assert (onset.time if onset else None) == at


def test_a_breach_may_be_below_the_limit() -> None:
    found = summary(points(1, 1, 0), threshold=Threshold(1, above=False))
    assert found.onset is not None and found.onset.time == 120 and found.breached_now
    assert str(Threshold(1, above=False)) == "< 1"


def test_a_lasting_change_of_level_is_an_onset() -> None:
    onset = summary(points(*[1, 1.1] * 10, *[5, 5.1] * 10)).onset
    assert onset is not None
    assert (onset.time, onset.kind) == (20 * STEP, "change")
    assert (onset.before, onset.after) == (pytest.approx(1.05), pytest.approx(5.05))


@pytest.mark.parametrize(
    "values",
    [
        [1.0] * 20,
        [1.0, 2.0] * 10,
        [1.0] * 10 + [9.0] + [1.0] * 10,  # one outlier
        [1.0, 1.0, 1.0, 5.0, 5.0],  # too short
        [float(n) for n in range(20)],  # a steady climb has no onset
    ],
)
def test_no_onset_without_a_clear_change(values: list[float]) -> None:
    assert summary(points(*values)).onset is None


@pytest.mark.parametrize("length", [5, 6, 7])
def test_a_change_needs_three_samples_on_each_side(length: int) -> None:
    values = [1.0] * 3 + [5.0] * (length - 3)
    assert (summary(points(*values)).onset is not None) is (length >= 6)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 5e299])
def test_figures_of_extreme_values_are_finite(scale: float) -> None:
    found = summary(points(*[scale] * 5, *[2 * scale] * 5))
    assert found.onset is not None and math.isfinite(found.onset.after) and math.isfinite(found.mean)


def test_a_season_is_found_and_a_trend_is_none() -> None:
    assert season([math.sin(n * math.tau / 24) for n in range(96)], STEP) == 24 * STEP
    assert season([float(n) for n in range(96)], STEP) is None
    assert season([1.0] * 96, STEP) is None
    assert season([math.sin(n * math.tau / 24) for n in range(30)], STEP) is None


def test_a_season_is_found_in_a_long_series() -> None:
    found = season([math.sin(n * math.tau / 100) for n in range(1000)], STEP)
    assert found == pytest.approx(100 * STEP, rel=0.06)
