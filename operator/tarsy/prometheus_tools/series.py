"""Reads the results of Prometheus' query API into series of points."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NAME = "__name__"
LARGEST = 1e300
"""Greatest magnitude of a sample that figures are made of, so that no sum of them is infinite."""


@dataclass(frozen=True, slots=True)
class Point:
    """A sample: Unix time in seconds, and its value, which may be NaN or infinite."""

    time: float
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """The points of a set of labels, in the order of time."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        """Returns name and labels as PromQL writes them, quotes and line breaks escaped."""
        return write_labels(self.labels)


def read_series(data: Mapping[str, Any]) -> tuple[Series, ...]:
    """Returns the series of a result of type vector, matrix, scalar or string; of a string no points.

    Raises ValueError: it is none of them.
    """
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar" and isinstance(result, list):
        return (Series({}, tuple(_points([result]))),)
    if kind == "string":
        return ()
    if kind in ("vector", "matrix") and isinstance(result, list):
        return tuple(
            Series({str(k): str(v) for k, v in (item.get("metric") or {}).items()}, tuple(_points(_samples(item))))
            for item in result
        )
    raise ValueError(f"unknown type of result {str(kind)[:40]!r}")


def is_number(value: float) -> bool:
    """Reports whether figures can be made of a value: it is not NaN, infinite, or beyond LARGEST."""
    return abs(value) <= LARGEST


def write_labels(labels: Mapping[str, str]) -> str:
    """Returns labels as a selector: `up{job="a"}`. Values are escaped, so that one series is always one line."""
    name = labels.get(NAME, "")
    inside = ",".join(f"{key}={quote(value)}" for key, value in sorted(labels.items()) if key != NAME)
    return f"{name}{{{inside}}}" if inside or not name else name


def quote(text: str) -> str:
    """Returns a string literal of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + '"'


def write_value(value: float) -> str:
    """Returns a value with four significant digits; NaN and the infinities as words."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def _samples(item: Mapping[str, Any]) -> Iterable[Any]:
    # Native histograms have neither: they are series without samples here.
    return [item["value"]] if "value" in item else item.get("values") or ()


def _points(values: Iterable[Any]) -> Iterable[Point]:
    for time, value in values:
        yield Point(float(time), float(value))
