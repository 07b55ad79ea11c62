"""Spans of time as people write them: 30s, 5m, 2h, 7d, 1w."""

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"([1-9]\d{0,5})([smhdw])")


def seconds_of(span: str) -> float:
    """Seconds of a span of time such as `7d`.

    Raises:
        ValueError: it is no such span; says what is.
    """
    found = _SPAN.fullmatch(span)
    if found is None:
        raise ValueError(f"{span!r} is no span of time; write a number and s, m, h, d or w, as in 7d")
    return float(int(found[1]) * _UNITS[found[2]])


def seconds_or_forever(span: str) -> float | None:
    """As `seconds_of`; None for `forever`.

    Raises:
        ValueError: it is neither.
    """
    return None if span == "forever" else seconds_of(span)
