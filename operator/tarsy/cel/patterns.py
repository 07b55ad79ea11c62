"""Compiles the regular expressions of schemas and CEL with RE2, whose matching time is linear in the text.

They run on UTF-8 bytes: on str the wrapper counts characters at every match, which costs three times the match.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import re2  # type: ignore[import-untyped]


class BadPattern(ValueError):
    """The text is no RE2 pattern."""


class Pattern:
    """A compiled pattern.

    Raises:
        BadPattern: it cannot be compiled.
    """

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text.encode(), options)
        except (re2.error, UnicodeEncodeError) as error:
            told = error.args[0] if error.args else ""
            why = told.decode(errors="replace") if isinstance(told, bytes) else str(error)
            raise BadPattern(f"error parsing regexp: {why}") from None

    def is_in(self, text: str) -> bool:
        """Whether it matches anywhere."""
        return self._compiled.search(text.encode(errors="replace")) is not None

    def every(self, text: str) -> Iterator[str]:
        """Returns the matches from left to right."""
        for match in self._compiled.finditer(text.encode(errors="replace")):
            yield match[0].decode(errors="replace")


@lru_cache(maxsize=1024)
def pattern(text: str) -> Pattern:
    """The pattern of a text; the same one is compiled once.

    Raises:
        BadPattern: it cannot be compiled.
    """
    return Pattern(text)
