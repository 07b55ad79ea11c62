"""Models that say the same thing over and over, and where to cut them (reference section 1.4).

Only a stream that repeats itself at its very end is cut: one that got out of it by itself is left alone. Repetition is
exact, so rows of a table, items of a list, addresses of a dump and timestamps of a log, which differ, are none. Short
patterns (a rule of dashes, a run of zeros) are normal for longer: they must fill most of the window.
"""

from collections.abc import Sequence

EVERY = 2_000
"""Characters between two looks."""
WINDOW = 6_000
"""Characters that a look sees."""
PATTERN = range(30, 501)
"""Lengths of a pattern, in characters."""
TIMES = 5
"""Repetitions that are too many."""
_SHORT_RUN = 5_000


class Repetition:
    """Watches one stream of text."""

    def __init__(self) -> None:
        self._tail = ""
        self._new: list[str] = []
        self._size = 0

    def add(self, text: str) -> int | None:
        """Takes the next piece; the length of the pattern that the stream repeats, or None."""
        self._new.append(text)
        self._size += len(text)
        if self._size < EVERY:
            return None
        self._tail = "".join([self._tail, *self._new])[-WINDOW:]
        self._new, self._size = [], 0
        return find(self._tail)


def find(text: str) -> int | None:
    """The length of the shortest pattern that `text` ends in, repeated too often; None when there is none."""
    for length in range(PATTERN.start, min(PATTERN.stop, len(text) // TIMES + 1)):
        pattern = text[-length:]
        if text.endswith(pattern * TIMES) and (not _short(pattern) or _fills(text, pattern)):
            return length
    return None


def first_only(pieces: Sequence[str], length: int) -> str:
    """The text up to the end of the first repetition of the pattern of `length` that it ends in."""
    text = "".join(pieces)
    start = len(text) - length
    while start > 0 and text[start - 1] == text[start - 1 + length]:
        start -= 1
    return text[: start + length]


def _short(pattern: str) -> bool:
    """Whether the pattern itself is made of a shorter one."""
    return (pattern + pattern).find(pattern, 1) < len(pattern)


def _fills(text: str, pattern: str) -> bool:
    return text.endswith(pattern * -(-_SHORT_RUN // len(pattern)))
