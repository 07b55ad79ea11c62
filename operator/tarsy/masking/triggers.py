"""Finds the lines of a text in which rules may match, and the rules, so that no rule reads any other line.

One pass finds the next line with a trigger; a set then tells which triggers it and the next two kilobytes contain. They
are examined together because a call costs more than reading them; text without triggers costs the first pass only.

Triggers that count characters are searched apart. In one automaton with the others, each position in a word times each
position in a count is a state: base64 took 80 MB and was read at 6 MB/s.
"""

import re
from collections.abc import Iterator, Sequence

from tarsy.masking.engine import FirstLook, Prefilter

_PIECE = 2_048  # bytes that are read together
# A trigger ends at most one character after the margin of its next line.
_MARGIN = re.compile(rb"[ \t>|]*+.", re.DOTALL)

Piece = tuple[int, int, tuple[int, ...]]


class Triggers:
    """Triggers of rules.

    Args:
        patterns: RE2 syntax, and whether the pattern counts characters.
    """

    def __init__(self, patterns: Sequence[tuple[bytes, bool]]) -> None:
        words = {index: pattern for index, (pattern, counts) in enumerate(patterns) if not counts}
        self._words, self._literals = FirstLook(words), Prefilter(words)
        self._counts = FirstLook({index: pattern for index, (pattern, counts) in enumerate(patterns) if counts})

    def among(self, text: bytes) -> tuple[int, ...]:
        """Returns the indexes of the triggers that a text contains."""
        return self._words.among(text) + self._counts.among(text)

    def likely(self, text: bytes) -> tuple[int, ...]:
        """Returns the indexes of the triggers that a text contains, and of some that it does not if it is short."""
        return self.among(text) if len(text) > _PIECE else self._literals.among(text) + self._counts.among(text)

    def pieces(self, text: bytes) -> Iterator[Piece]:
        """Yields the pieces of whole lines that contain triggers: start, end, indexes of the triggers.

        A short text is one piece, to which more triggers are counted than it contains (`likely`).
        """
        last = 0
        size = len(text)
        if size <= _PIECE:
            if there := self.likely(text):
                yield 0, size, there
            return
        word, count = self._words.first(text, 0), self._counts.first(text, 0)
        while last < size:
            begin, end = word if word[0] <= count[0] else count
            if begin >= size:
                return
            start = max(last, text.rfind(b"\n", last, begin) + 1)
            last = text.find(b"\n", max(end, start + _PIECE) - 1) + 1 or size
            margin = _MARGIN.match(text, last)
            lines = text[start : margin.end() if margin else last]
            there = self._words.among(lines) if word[0] < last else ()
            if count[0] < last:
                there += self._counts.among(lines)
            if there:
                yield start, last, there
            if word[0] < last:
                word = self._words.first(text, last - 1)  # a trigger may begin with the break
            if count[0] < last:
                count = self._counts.first(text, last - 1)
