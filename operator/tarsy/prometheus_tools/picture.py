"""Writes a series as two lines of text, and reads them back from a recorded result, to draw them.

The lines are what the model sees, what is on record, and what terminal and web UI draw: there is one text and no second
store beside it. Text that is no such line is left alone, so a result that was cut or summarized draws less or nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tarsy.prometheus_tools.series import Point, is_number, write_value
from tarsy.prometheus_tools.statistics import SeriesOnset, Summary, Threshold

MOST_VALUES = 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = " "
_SERIES = re.compile(r"series (?P<title>.+)")
_ONSET = re.compile(r"\bonset (?P<time>\S+) \(")
_SHAPE = re.compile(r"  shape (?P<start>\S+) \+(?P<step>[\d.]+)s: (?P<values>.+)")


@dataclass(frozen=True, slots=True)
class Picture:
    """The shape of a series: values at equal distances, None where there is none."""

    title: str
    start: float
    step: float
    values: tuple[float | None, ...]
    onset: float | None = None

    @property
    def onset_at(self) -> int | None:
        """Returns the index of the value at the onset; None without one in sight."""
        if self.onset is None or not self.values:
            return None
        at = int((self.onset - self.start) // self.step)
        return at if 0 <= at < len(self.values) else None


def write_picture(
    title: str, points: Sequence[Point], summary: Summary, start: float, end: float, threshold: Threshold | None
) -> str:
    """Returns a series as text: its title, its figures, its shape.

    Args:
        title: name and labels, on one line.
        points: the samples.
        summary: their figures.
        start: begin of the range in Unix seconds.
        end: end of the range.
        threshold: the limit that the onset is about.
    """
    step, values = shape(points, start, end)
    listed = " ".join("-" if value is None else write_value(value) for value in values)
    figures = " | ".join(_figures(summary, threshold))
    return f"series {title}\n  {figures}\n  shape {write_time(start)} +{step:g}s: {listed}"


def shape(points: Sequence[Point], start: float, end: float) -> tuple[float, tuple[float | None, ...]]:
    """Returns at most MOST_VALUES values at equal distances, each the farthest from the mean of its part.

    The farthest, not the mean: a short peak must stay visible.

    Args:
        points: samples of a series, the oldest first.
        start: beginning of the picture, in seconds of Unix time.
        end: its end.
    """
    finite = [point for point in points if is_number(point.value)]
    step = max(1.0, round((end - start) / MOST_VALUES, 3))
    values: list[float | None] = [None] * MOST_VALUES
    mean = sum(point.value / len(finite) for point in finite)
    for point in finite:
        at = min(MOST_VALUES - 1, max(0, int((point.time - start) // step)))
        now = values[at]
        if now is None or abs(point.value - mean) > abs(now - mean):
            values[at] = point.value
    used = max(1, min(MOST_VALUES, int((end - start) // step) + 1))
    return step, tuple(values[:used])


def read_pictures(text: str) -> tuple[Picture, ...]:
    """Returns the series that a text contains."""
    found: list[Picture] = []
    title, onset = None, None
    for line in text.splitlines():
        if series := _SERIES.fullmatch(line):
            title, onset = series["title"], None
        elif title is not None and (when := _ONSET.search(line)):
            onset = _read_time(when["time"])
        elif title is not None and (drawn := _SHAPE.fullmatch(line)):
            start, step, values = _read_time(drawn["start"]), float(drawn["step"]), _read_values(drawn["values"])
            if start is not None and step > 0 and values:
                found.append(Picture(title, start, step, values, onset))
            title = None
    return tuple(found)


def sparkline(picture: Picture) -> str:
    """Returns the shape as one character per value; a gap is a blank, a flat line is low."""
    known = [value for value in picture.values if value is not None]
    if not known:
        return ""
    low, height = min(known), max(known) - min(known)
    top = len(_BLOCKS) - 1
    return "".join(
        _GAP if value is None else _BLOCKS[round(top * (value - low) / height) if height else 0]
        for value in picture.values
    )


def write_time(seconds: float) -> str:
    """Returns a time as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write_duration(seconds: float) -> str:
    """Returns a duration in its largest unit: `90s`, `5m`, `2.5h`, `3d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds:.3g}s"


def _figures(summary: Summary, threshold: Threshold | None) -> list[str]:
    last, peak, trough = summary.last, summary.peak, summary.trough
    parts = [f"now {write_value(last.value)} at {write_time(last.time)}"]
    if summary.count > 1:
        parts.append(f"peak {write_value(peak.value)} at {write_time(peak.time)}")
        parts.append(f"low {write_value(trough.value)} at {write_time(trough.time)}")
        parts.append(f"mean {write_value(summary.mean)}")
    if summary.slope is not None:
        parts.append(f"slope {'+' if summary.slope > 0 else ''}{write_value(summary.slope)}/h")
    parts += _onset(summary.onset, threshold)
    if threshold is not None and summary.onset is None:
        parts.append(f"never {threshold}")
    elif threshold is not None:
        parts.append(f"now {'still' if summary.breached_now else 'no longer'} {threshold}")
    if summary.season is not None:
        parts.append(f"repeats every {write_duration(summary.season)}")
    if summary.gaps:
        parts.append(f"{summary.gaps} gaps, the longest {write_duration(summary.longest_gap)}")
    if summary.resets:
        parts.append(f"{summary.resets} counter resets")
    if summary.not_numbers:
        parts.append(f"{summary.not_numbers} samples are NaN or infinite")
    return [*parts, f"{summary.count} samples"]


def _onset(onset: SeriesOnset | None, threshold: Threshold | None) -> list[str]:
    if onset is None:
        return []
    what = f"first {threshold}" if onset.kind == "breach" else "change of level"
    return [f"onset {write_time(onset.time)} ({what}: {write_value(onset.before)} -> {write_value(onset.after)})"]


def _read_time(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _read_values(text: str) -> tuple[float | None, ...]:
    try:
        read = [None if word == "-" else float(word) for word in text.split()[:MOST_VALUES]]
    except ValueError:
        return ()
    return tuple(value if value is not None and is_number(value) else None for value in read)
