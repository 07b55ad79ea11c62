"""Strips control characters from text before a terminal shows it.

The record strips them when it is written; responses from a network are stripped again, because a terminal interprets
escapes of any server. Decision: characters that change the direction of writing are stripped too, else one name could
be shown as another.
"""

import re
import unicodedata

from tarsy.record.text import clean

TURNING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that no terminal is shown, beyond those below the blank."""

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Mn", "Me"})
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")


def plain(text: str) -> str:
    """Returns `text` without control characters except newline and tab."""
    text = clean(text)
    return text if text.isascii() else TURNING.sub("", text)


def one_line(text: str, limit: int) -> str:
    """Returns `plain(text)` on one line of at most `limit` characters, cut with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def revealed(text: str) -> str:
    """Returns a line of text with every character that people do not see, or only see on another, as its code."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_seen(char) else f"<U+{ord(char):04X}>" for char in text)


def _is_seen(char: str) -> bool:
    return char in " \t" or (unicodedata.category(char) not in _UNSEEN and char not in _FILLERS)
