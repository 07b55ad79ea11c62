"""Statistics of evals against published figures, and against enumeration of small cases."""

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evals.statistics import (
    MOST_CASES,
    cohen_kappa,
    detectable_loss,
    mcnemar_exact,
    mcnemar_power,
    pass_all_k,
    pass_at_k,
)
from tarsy.record.judging.interval import Interval, wilson_interval


@pytest.mark.parametrize(
    ("trials", "successes", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3: four examples of 95 % score intervals.
        (263, 81, 0.2553, 0.3662),
        (148, 15, 0.0624, 0.1605),
        (20, 0, 0.0000, 0.1611),
        (29, 1, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_equals_the_published_table(trials: int, successes: int, low: float, high: float) -> None:
    found = wilson_interval(trials, successes)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


def test_without_a_trial_nothing_is_known_of_a_proportion() -> None:
    assert wilson_interval(0, 0) == Interval(0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_wilson_interval_contains_the_proportion(counts: tuple[int, int]) -> None:
    trials, successes = counts
    found = wilson_interval(trials, successes)
    assert 0.0 <= found.low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= found.high <= 1.0


@pytest.mark.parametrize(
    ("worse", "better", "p"),
    [
        (59, 121, 4.4344492637555101e-06),  # the example of mlxtend's exact test
        (0, 5, 0.0625),
        (0, 6, 0.03125),
        (1, 9, 0.021484375),
        (7, 7, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_equals_published_values_in_both_directions(worse: int, better: int, p: float) -> None:
    assert mcnemar_exact(worse, better) == pytest.approx(p, rel=1e-9)
    assert mcnemar_exact(better, worse) == mcnemar_exact(worse, better)


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # Fleiss, Statistical Methods for Rates and Proportions (1981), chapter 13: two raters, three diagnoses.
        (((75, 1, 4), (5, 4, 1), (0, 0, 10)), 0.676),
        # Feinstein and Cicchetti, Journal of Clinical Epidemiology 43 (1990): the same share of agreement, 0.85.
        (((40, 9), (6, 45)), 0.70),
        (((80, 10), (5, 5)), 0.32),
        # Gwet, Inter-Rater Reliability: Dependency on Trait Prevalence (2002): the same share of agreement, 0.60.
        (((45, 15), (25, 15)), 0.1304),
        (((25, 35), (5, 35)), 0.2593),
    ],
)
def test_kappa_equals_published_values_and_is_symmetric(table: tuple[tuple[int, ...], ...], kappa: float) -> None:
    found = cohen_kappa(table)
    assert found == pytest.approx(kappa, abs=5e-3 if kappa in (0.70, 0.32) else 5e-4)
    assert cohen_kappa(tuple(zip(*table, strict=True))) == found


def test_kappa_at_its_ends() -> None:
    assert cohen_kappa(((10, 0), (0, 10))) == 1.0
    assert cohen_kappa(((0, 10), (10, 0))) == -1.0
    assert cohen_kappa(((5, 5), (5, 5))) == 0.0
    assert cohen_kappa(((20, 0), (0, 0))) is None
    assert cohen_kappa(((0, 0), (0, 0))) is None
    for wrong in (((1, 2),), ((1, -1), (0, 1)), ((1,), (1,))):
        with pytest.raises(ValueError, match="square"):
            cohen_kappa(wrong)


def test_mcnemar_of_ten_thousand_pairs_does_not_overflow() -> None:
    assert mcnemar_exact(5_000, 5_000) == 1.0
    assert mcnemar_exact(0, 10_000) == 0.0 or mcnemar_exact(0, 10_000) < 1e-300


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_estimators_equal_an_enumeration_of_all_draws(drawn: tuple[int, int, int]) -> None:
    samples, passed, k = drawn
    results = [True] * passed + [False] * (samples - passed)
    masks = [mask for mask in product((0, 1), repeat=samples) if sum(mask) == k]
    picks = [[r for r, chosen in zip(results, mask, strict=True) if chosen] for mask in masks]
    assert pass_at_k(samples, passed, k) == pytest.approx(sum(any(pick) for pick in picks) / comb(samples, k))
    assert pass_all_k(samples, passed, k) == pytest.approx(sum(all(pick) for pick in picks) / comb(samples, k))


@pytest.mark.parametrize(("samples", "passed", "k"), [(3, 4, 1), (3, -1, 1), (3, 2, 0), (3, 2, 4), (0, 0, 1)])
def test_contradicting_counts_are_refused(samples: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        pass_at_k(samples, passed, k)
    with pytest.raises(ValueError, match="samples"):
        pass_all_k(samples, passed, k)


@pytest.mark.parametrize(("worse", "better"), [(0.3, 0.0), (0.25, 0.1), (0.1, 0.1)])
def test_power_equals_an_enumeration_of_all_outcomes(worse: float, better: float) -> None:
    cases, told = 12, 0.0
    for lost in range(cases + 1):
        for won in range(cases - lost + 1):
            ways = comb(cases, lost) * comb(cases - lost, won)
            chance = ways * worse**lost * better**won * (1 - worse - better) ** (cases - lost - won)
            if lost > won and mcnemar_exact(lost, won) <= 0.05:
                told += chance
    assert mcnemar_power(cases, worse, better) == pytest.approx(told)


def test_power_of_five_cases_is_none_and_six_lost_cases_are_told() -> None:
    assert mcnemar_power(5, 1.0, 0.0) == 0.0
    assert mcnemar_power(6, 1.0, 0.0) == 1.0
    assert detectable_loss(5) is None
    assert detectable_loss(6) is not None


def test_the_largest_suite_is_computed() -> None:
    assert 0.005 < (detectable_loss(MOST_CASES) or 1.0) < 0.01


def test_more_cases_show_a_smaller_loss() -> None:
    forty, hundred = detectable_loss(40, better=0.02), detectable_loss(100, better=0.02)
    assert forty is not None
    assert hundred is not None
    assert hundred < forty
    assert mcnemar_power(40, forty, 0.02) >= 0.8 > mcnemar_power(40, forty - 0.01, 0.02)


@pytest.mark.parametrize(("cases", "worse", "better"), [(10, -0.1, 0.0), (10, 0.7, 0.4), (MOST_CASES + 1, 0.1, 0.0)])
def test_power_of_what_is_no_suite_is_refused(cases: int, worse: float, better: float) -> None:
    with pytest.raises(ValueError, match=r"cases|probabilities"):
        mcnemar_power(cases, worse, better)
