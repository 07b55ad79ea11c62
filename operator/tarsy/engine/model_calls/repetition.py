"""Detects output of a model that repeats itself, and where to cut it.

Only a stream that repeats itself at its very end is cut: one that got out of it by itself is left alone. Repetition is
exact, so rows of a table, items of a list, addresses of a dump and timestamps of a log, which differ, are none. How
much of it is too much depends on what repeats and on what else the answer holds: a rule of dashes and a few equal lines
stand in many good answers, an answer that holds hardly anything else is no answer.
"""

from collections.abc import Iterator, Sequence

EVERY = 250
"""Characters between two looks."""
WINDOW = 6_000
"""Characters that a look sees."""
PATTERN = range(1, 501)
"""Lengths of a pattern, in characters."""
TIMES = 5
"""Repetitions that are too many."""
SHORT = 30
"""A pattern of fewer characters is a short one: a word, a sign, the cell of a table."""
_LONG_RUN, _SHORT_RUN, _SIGNS_RUN = 1_000, 1_500, 5_000
"""Characters of repetition that are too many beside any other text: of a long pattern, a short one, one without a
letter."""
_END = 8
_NOTHING_ELSE = 300
_SHARE = 0.8
"""Minimum characters of a repetition, if it is this share of the whole output."""


class RepeatedText:
    """Watches one stream of text."""

    def __init__(self) -> None:
        self._tail = ""
        self._new: list[str] = []
        self._size = 0
        self._whole = 0

    def add(self, text: str) -> int | None:
        """Takes the next piece; the length of the pattern that the stream repeats, or None."""
        self._new.append(text)
        self._size += len(text)
        return self._look() if self._size >= EVERY else None

    def end(self) -> int | None:
        """The same of a stream that has ended."""
        return self._look() if self._size else None

    def _look(self) -> int | None:
        self._tail = "".join([self._tail, *self._new])[-WINDOW:]
        self._whole += self._size
        self._new, self._size = [], 0
        return find_repetition(self._tail, self._whole)


def find_repetition(text: str, whole: int | None = None) -> int | None:
    """The length of the shortest pattern that `text` ends in, repeated too often; None when there is none.

    Args:
        text: the end of what was said.
        whole: characters said in all; None: `text` is all.
    """
    said = len(text) if whole is None else whole
    judged: list[tuple[int, int]] = []
    for length in _repeated_once(text, min(PATTERN.stop, len(text) // TIMES + 1)):
        if any(length % shorter == 0 and length <= run for shorter, run in judged):
            continue  # it is made of a shorter one
        run = len(text) - _start(text, length)
        if run >= TIMES * length and run >= _too_long(text[-length:], run, said):
            return length
        judged.append((length, run))
    return None


def _repeated_once(text: str, stop: int) -> Iterator[int]:
    """Yields the lengths below `stop` of the patterns that `text` ends in twice, shortest first.

    Most texts end in none. A pattern of `_END` characters or more is only compared where the last `_END` ones occur.
    """
    for length in range(PATTERN.start, min(_END, stop)):
        if text[-length:] == text[-2 * length : -length]:
            yield length
    if stop <= _END:
        return
    size, last = len(text), text[-_END:]
    place = size - _END
    while (place := text.rfind(last, max(0, size - _END - stop + 1), place + _END - 1)) >= 0:
        length = size - _END - place
        if length >= _END and text[-length:] == text[-2 * length : -length]:
            yield length


def first_only(pieces: Sequence[str], length: int) -> str:
    """The text up to the end of the first repetition of the pattern of `length` that it ends in.

    Nothing is left of a text that is a short pattern only: `iiii` says no more than `i`.
    """
    text = "".join(pieces)
    start = _start(text, length)
    return "" if length < SHORT and not text[:start].strip() else text[: start + length]


def _start(text: str, length: int) -> int:
    """Finds the start of the repeated pattern of `length` at the end of the text."""
    start = len(text) - length
    while start > 0 and text[start - 1] == text[start - 1 + length]:
        start -= 1
    return start


def _too_long(pattern: str, run: int, said: int) -> int:
    """Characters of this pattern that are too many."""
    if run >= _SHARE * said:
        return _NOTHING_ELSE
    if not any(c.isalpha() for c in pattern):
        return _SIGNS_RUN
    return _LONG_RUN if len(pattern) >= SHORT else _SHORT_RUN
