"""Cuts from texts what surrounds the words that a list was searched for. Pure: no I/O."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

AROUND: Final = 80
"""Characters that an excerpt shows on each side of the first word that was found."""

_SPACE = re.compile(r"\s+")
_EDGES: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def searched_words(text: str) -> list[str]:
    """Returns the words of a search, without the punctuation around them."""
    return [word for part in text.split() if (word := part.strip(_EDGES))]


def excerpt(texts: Iterable[str], words: Sequence[str]) -> str | None:
    """Returns what surrounds the first word that one of the texts contains, on one line; None if none contains any.

    Args:
        texts: the most telling first.
        words: in any case; the earliest place of any of them counts.
    """
    for text in texts:
        lowered = text.lower()
        places = [place for word in words if (place := lowered.find(word.lower())) >= 0]
        if not places:
            continue
        start, end = max(0, min(places) - AROUND), min(places) + 2 * AROUND
        piece = _SPACE.sub(" ", text[start:end]).strip()
        return f"{'… ' if start else ''}{piece}{' …' if end < len(text) else ''}"
    return None
