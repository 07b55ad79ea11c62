"""Computes the statistics of repeated and paired samples, exactly and without a library of numerics.

Decision: exact binomial tests instead of approximations. A suite has tens of cases, where the normal approximation is
wrong by more than the effect that people ask about, and a sum over a few hundred terms costs nothing.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb, exp, lgamma, log

MOST_CASES = 1_000
"""Maximum paired cases of a power calculation, whose time grows with the square of their number."""


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Estimates, without bias, the probability that at least one of k samples passes (Chen et al. 2021, eq. 1).

    Args:
        samples: number of samples taken of one case.
        passed: number of them that passed.
        k: number of samples drawn, at most `samples`.

    Raises:
        ValueError: the counts contradict each other.
    """
    _check(samples, passed, k)
    return 1.0 - comb(samples - passed, k) / comb(samples, k)


def pass_all_k(samples: int, passed: int, k: int) -> float:
    """Estimates, without bias, the probability that all of k samples pass ("pass^k", Yao et al. 2024).

    Args:
        samples: number of samples taken of one case.
        passed: number of them that passed.
        k: number of samples drawn, at most `samples`.

    Raises:
        ValueError: the counts contradict each other.
    """
    _check(samples, passed, k)
    return comb(passed, k) / comb(samples, k)


def mcnemar_exact(worse: int, better: int) -> float:
    """Returns the two-sided p-value of the exact McNemar test of paired cases.

    Args:
        worse: number of cases that passed before and fail now.
        better: number of cases that failed before and pass now.

    Raises:
        ValueError: a count is negative.
    """
    if worse < 0 or better < 0:
        raise ValueError(f"negative counts: {worse}, {better}")
    pairs = worse + better
    if pairs == 0:
        return 1.0
    ways = tail = 1
    for fewer in range(min(worse, better)):
        ways = ways * (pairs - fewer) // (fewer + 1)
        tail += ways
    return min(1.0, float(Fraction(2 * tail, 1 << pairs)))


def mcnemar_power(cases: int, worse: float, better: float, alpha: float = 0.05) -> float:
    """Returns the probability that the exact McNemar test tells that a candidate is worse.

    Args:
        cases: number of paired cases, at most 1,000.
        worse: probability that a case passed before and fails now.
        better: probability that a case failed before and passes now.
        alpha: the test tells a difference when its two-sided p-value is at most this.

    Raises:
        ValueError: the probabilities contradict each other, or there are too many cases.
    """
    if min(worse, better) < 0.0 or worse + better > 1.0:
        raise ValueError(f"probabilities of {worse} and {better} are none of one case")
    if not 0 <= cases <= MOST_CASES:
        raise ValueError(f"{cases} cases, at most {MOST_CASES:,} can be computed")
    changed = worse + better
    return min(
        1.0,
        sum(
            _binomial(cases, pairs, changed) * sum(_binomial(pairs, few, better / changed) for few in range(critical))
            for pairs, critical in enumerate(_critical_counts(cases, alpha))
            if critical
        ),
    )


def detectable_loss(cases: int, better: float = 0.0, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Returns the smallest share of newly failing cases that a suite shows with the given power; None: it shows none.

    Args:
        cases: number of paired cases, at most 1,000.
        better: probability that a case fails before and passes now, by chance.
        alpha: significance of the test.
        power: wanted probability that the test tells.

    Raises:
        ValueError: the probabilities contradict each other, or there are too many cases.
    """
    low, high = 0.0, 1.0 - better
    if mcnemar_power(cases, high, better, alpha) < power:
        return None
    while high - low > 0.001:
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(cases, middle, better, alpha) >= power else (middle, high)
    return high


def cohen_kappa(table: Sequence[Sequence[int]]) -> float | None:
    """Returns the agreement of two raters beyond chance (Cohen 1960); None: it is not defined.

    It is not defined without a rating, and where both raters always chose the same one category.

    Args:
        table: number of items by the category of the first rater (row) and of the second (column).

    Raises:
        ValueError: the table is not square, or a count is negative.
    """
    if any(len(row) != len(table) or min(row) < 0 for row in table):
        raise ValueError("the table of two raters must be square and without negative counts")
    items = sum(sum(row) for row in table)
    by_chance = sum(sum(row) * sum(column) for row, column in zip(table, zip(*table, strict=True), strict=True))
    agreed = sum(table[place][place] for place in range(len(table)))
    if items * items == by_chance:
        return None
    return float(Fraction(agreed * items - by_chance, items * items - by_chance))


@cache
def _critical_counts(cases: int, alpha: float) -> tuple[int, ...]:
    """Returns, for each number of discordant pairs up to `cases`, how many better cases the test stays below."""
    counts = [0]
    for pairs in range(1, cases + 1):
        critical = counts[-1]
        while 2 * critical < pairs and mcnemar_exact(pairs - critical, critical) <= alpha:
            critical += 1
        counts.append(critical)
    return tuple(counts)


def _check(samples: int, passed: int, k: int) -> None:
    if not (0 <= passed <= samples and 1 <= k <= samples):
        raise ValueError(f"{passed} passed of {samples} samples, of which {k} are drawn")


def _binomial(trials: int, hits: int, chance: float) -> float:
    """Returns the probability of exactly this number of hits; by logarithms, since the terms leave a float's range."""
    if chance <= 0.0:
        return 1.0 if hits == 0 else 0.0
    if chance >= 1.0:
        return 1.0 if hits == trials else 0.0
    ways = lgamma(trials + 1) - lgamma(hits + 1) - lgamma(trials - hits + 1)
    return exp(ways + hits * log(chance) + (trials - hits) * log(1.0 - chance))
