"""Parses durations of configuration and options: 30s, 5m, 2h, 7d, 1w."""

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([1-9]\d{0,5})([smhdw])")


def seconds_of(duration: str) -> float:
    """Returns the seconds of a duration such as `7d`.

    Raises:
        ValueError: the text is not a duration; the message shows the form.
    """
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError(f"{duration!r} is not a duration; write a number and s, m, h, d or w, such as 7d")
    return float(int(found[1]) * _UNITS[found[2]])


def seconds_or_forever(duration: str) -> float | None:
    """Returns the seconds of a duration, or None for `forever`.

    Raises:
        ValueError: the text is neither.
    """
    return None if duration == "forever" else seconds_of(duration)
