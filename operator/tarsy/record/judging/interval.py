"""Computes the interval of a share that was counted."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a proportion; both ends are in [0, 1]."""

    low: float
    high: float


def wilson_interval(trials: int, successes: int, confidence: float = 0.95) -> Interval:
    """Returns the score interval of a proportion (Wilson 1927), without a continuity correction.

    Args:
        trials: number of trials; without a trial the interval is [0, 1].
        successes: number of them that succeeded.
        confidence: in (0, 1).

    Raises:
        ValueError: the counts contradict each other, or the confidence is outside of (0, 1).
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    scale = 1.0 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * sqrt(share * (1.0 - share) / trials + z * z / (4 * trials * trials))
    # At no and at all successes an end is the share itself, but for the rounding of the sums.
    return Interval(min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))
