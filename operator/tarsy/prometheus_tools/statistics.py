"""Computes what an engineer reads off a graph: peak, trough, now, slope, onset, gaps, resets, season.

Decision: figures and a few decisive points reach the model instead of all samples: ten series of a day would take the
context window otherwise, and models count and compare long rows of numbers badly. Everything here is a pure function of
the points. NaN and infinite samples are counted and left out of all figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from tarsy.prometheus_tools.series import Point, is_number

SMALLEST_SEGMENT = 3
"""Points on each side of a change, so that one outlier is no change."""
CLEAR_CHANGE = 4.0
"""Difference of the means of both sides, in standard deviations around them."""
CLEAR_SEASON = 0.6
"""Autocorrelation of a season."""
SEASON_CYCLES = 3
MOST_SEASON_POINTS = 240


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit, such as that of an alert rule: breached above it, or below it."""

    value: float
    above: bool = True

    def breached(self, value: float) -> bool:
        """Reports whether a value is beyond the limit."""
        return value > self.value if self.above else value < self.value

    def __str__(self) -> str:
        return f"{'>' if self.above else '<'} {self.value:g}"


@dataclass(frozen=True, slots=True)
class SeriesOnset:
    """The moment from which a series is different: the first breach of a threshold, or a lasting change of level."""

    time: float
    kind: Literal["breach", "change"]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a series. Times are Unix seconds; `slope` is per hour; None means that the points do not tell."""

    count: int
    first: Point
    last: Point
    peak: Point
    trough: Point
    mean: float
    slope: float | None
    onset: SeriesOnset | None
    season: float | None
    gaps: int
    longest_gap: float
    resets: int
    not_numbers: int
    breached_now: bool | None = None


def summarize(
    points: Sequence[Point], step: float, *, threshold: Threshold | None = None, counter: bool = False
) -> Summary | None:
    """Returns the figures of a series; None if it has no finite sample.

    Args:
        points: the samples in the order of time.
        step: seconds between two of them; more than one and a half of it is a gap.
        threshold: the limit whose first breach is the onset; None: a lasting change of level is.
        counter: whether the series only grows but for resets, which are counted then.
    """
    finite = [point for point in points if is_number(point.value)]
    if not finite:
        return None
    values = [point.value for point in finite]
    gaps = [b.time - a.time for a, b in pairwise(finite) if b.time - a.time > 1.5 * step]
    return Summary(
        count=len(finite),
        first=finite[0],
        last=finite[-1],
        peak=max(finite, key=lambda point: point.value),
        trough=min(finite, key=lambda point: point.value),
        mean=math.fsum(value / len(values) for value in values),
        slope=slope_per_hour(finite),
        onset=first_breach(finite, threshold) if threshold else level_change(finite),
        season=season(values, step) if not gaps else None,
        gaps=len(gaps),
        longest_gap=max(gaps, default=0.0),
        resets=sum(b < a for a, b in pairwise(values)) if counter else 0,
        not_numbers=len(points) - len(finite),
        breached_now=threshold.breached(values[-1]) if threshold else None,
    )


def slope_per_hour(points: Sequence[Point]) -> float | None:
    """Returns the least-squares slope per hour; None for fewer than two moments."""
    if len(points) < 2:
        return None
    middle = math.fsum(point.time for point in points) / len(points)
    mean = math.fsum(point.value / len(points) for point in points)
    across = math.fsum((point.time - middle) ** 2 for point in points)
    if across == 0:
        return None
    along = math.fsum((point.time - middle) * (point.value - mean) for point in points)
    return 3600 * along / across


def first_breach(points: Sequence[Point], threshold: Threshold) -> SeriesOnset | None:
    """Returns the begin of the breach that lasts until the end, else of the first one; None without a breach."""
    beyond = [threshold.breached(point.value) for point in points]
    if True not in beyond:
        return None
    start = beyond.index(True)
    if beyond[-1]:
        start = len(beyond) - next((n for n, bad in enumerate(reversed(beyond)) if not bad), len(beyond))
    before = points[start - 1].value if start else points[start].value
    return SeriesOnset(points[start].time, "breach", before, points[start].value)


def level_change(points: Sequence[Point]) -> SeriesOnset | None:
    """Returns the lasting change of level that explains most of the variance; None if none is clear."""
    values, count = [point.value for point in points], len(points)
    if count < 2 * SMALLEST_SEGMENT:
        return None
    scale = max(map(abs, values)) or 1.0
    scaled = [value / scale for value in values]  # keeps squares finite
    sums = [0.0, *accumulate(scaled)]
    squares = [0.0, *accumulate(value * value for value in scaled)]
    whole = range(SMALLEST_SEGMENT, count - SMALLEST_SEGMENT + 1)

    def scatter(start: int, end: int) -> float:
        return max(0.0, squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start))

    cut = min(whole, key=lambda at: scatter(0, at) + scatter(at, count))
    before, after = sums[cut] / cut, (sums[count] - sums[cut]) / (count - cut)
    deviation = math.sqrt((scatter(0, cut) + scatter(cut, count)) / count)
    if abs(after - before) <= max(CLEAR_CHANGE * deviation, 1e-6):
        return None
    return SeriesOnset(points[cut].time, "change", before * scale, after * scale)


def season(values: Sequence[float], step: float) -> float | None:
    """Returns the period in seconds after which a series repeats itself; None if it does not within a third of it."""
    stride = -(-len(values) // MOST_SEASON_POINTS)
    sampled = values[::stride]
    count = len(sampled)
    scale = max(map(abs, sampled), default=0.0) or 1.0
    centred = [value / scale - math.fsum(sampled) / scale / count for value in sampled]
    power = math.fsum(value * value for value in centred) / max(count, 1)
    if count < 4 * SEASON_CYCLES or power < 1e-9:
        return None
    lags = range(1, count // SEASON_CYCLES + 1)
    correlation = [
        math.fsum(a * b for a, b in zip(centred, centred[lag:], strict=False)) / (count - lag) / power for lag in lags
    ]
    # A trend is like itself at short lags: a season shows as a peak after the correlation has once been lost.
    lost = next((n for n, value in enumerate(correlation) if value < 0), None)
    if lost is None:
        return None
    best = max(range(lost, len(correlation)), key=correlation.__getitem__)
    return lags[best] * stride * step if correlation[best] >= CLEAR_SEASON else None
