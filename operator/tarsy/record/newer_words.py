"""Reads enum values, of which a newer version may have more.

Readers also get what a newer replica wrote, in a rolling upgrade or after a rollback. A word that only tells people
something is passed on as text; a word that decides what happens next is not read this way.
"""

from enum import StrEnum
from typing import TypeVar

_E = TypeVar("_E", bound=StrEnum)


def known_or_text(kind: type[_E], text: str) -> _E | str:
    """Returns the member of that value, or the text itself where this version has none."""
    try:
        return kind(text)
    except ValueError:
        return text
