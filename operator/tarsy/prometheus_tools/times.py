"""Reads times and durations as people and models write them: `now`, `-2h`, RFC 3339, Unix seconds."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tarsy.kubernetes_tools.kinds import Refused

MOST_POINTS = 500
"""Samples of a series; a step that gives more is made longer."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdwy]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdwy])")
_UNIX = re.compile(r"\d{1,12}(?:\.\d+)?")
_NICE = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Begin, end and step of a range query, in seconds."""

    start: float
    end: float
    step: float


def read_duration(text: str) -> float:
    """Returns the seconds of `90s`, `1h30m` or `60`. Raises Refused: it is none, or zero."""
    said = text.strip()
    if _UNIX.fullmatch(said):
        seconds = float(said)
    elif _DURATION.fullmatch(said):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(said))
    else:
        raise Refused(f"{text[:40]!r} is no duration: write it as 30s, 5m, 2h or 1d")
    if seconds <= 0:
        raise Refused(f"{text[:40]!r} is no duration above zero")
    return seconds


def read_time(text: str, now: float) -> float:
    """Returns Unix seconds. Raises Refused: it is no time."""
    said = text.strip()
    if said in ("", "now"):
        return now
    if said.startswith("-") or said.startswith("now-"):
        return now - read_duration(said.removeprefix("now").removeprefix("-"))
    if _UNIX.fullmatch(said):
        return float(said)
    try:
        found = datetime.fromisoformat(said.replace("Z", "+00:00").replace("z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Refused(f"{text[:40]!r} is no time: write it as -2h, now, 2026-01-31T12:00:00Z or Unix seconds") from None


def read_window(start: str, end: str, step: str | None, now: float) -> TimeRange:
    """Returns a range with at most MOST_POINTS points. Raises Refused: the end is not after the begin."""
    first, last = read_time(start, now), min(read_time(end, now), now)
    if last <= first:
        raise Refused("`end` must be after `start`, and `start` in the past")
    length = last - first
    wanted = read_duration(step) if step else next((n for n in _NICE if length / n <= MOST_POINTS / 2), length / 250)
    return TimeRange(first, last, max(float(wanted), length / (MOST_POINTS - 1)))
