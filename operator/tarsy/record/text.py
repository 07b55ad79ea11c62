"""Removes control characters and lone surrogates from text that is recorded.

Postgres refuses NUL, terminals obey the other control characters, and UTF-8 has no lone surrogates. Text of models and
tools is cleaned where it is received, so that later requests send what is stored; the store cleans all text that it
writes. Nothing is shortened.
"""

import re
import unicodedata
from typing import NamedTuple

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_CONTROL = bytes((*range(0x09), *range(0x0B, 0x20), 0x7F))
_OTHER_CONTROL = re.compile(b"\xc2[\x80-\x9f]")


def clean(text: str) -> str:
    """Returns `text` without control characters (newline and tab stay) and with lone surrogates replaced by U+FFFD."""
    if text.isprintable() or _is_clean(text):
        return text
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]+"
)
_EMOJI = frozenset({"\ufe0e", "\ufe0f", "\ufe0f\u200d", "\u200d"})


class VisibleText(NamedTuple):
    """A text without invisible characters, and how many it had."""

    text: str
    removed: int = 0


def without_invisible(text: str) -> VisibleText:
    """Removes characters that people do not see and models read: zero width, direction, tags, variation selectors.

    What makes emoji of one or several symbols stays. Every character that is removed here is one that masking looks
    through (`tarsy.masking.disguise`), so that no secret becomes readable that was not masked.
    """
    if text.isascii():
        return VisibleText(text)
    removed = 0

    def kept(found: re.Match[str]) -> str:
        nonlocal removed
        before = text[found.start() - 1] if found.start() else ""
        if found[0] in _EMOJI and before and unicodedata.category(before) in ("So", "Sk"):
            return found[0]
        removed += len(found[0])
        return ""

    visible = _INVISIBLE.sub(kept, text)
    return VisibleText(visible, removed)


def _is_clean(text: str) -> bool:
    """Whether there is nothing to remove; of a long text in a tenth of the time that a pattern takes to find out."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    if len(encoded.translate(None, _ASCII_CONTROL)) != len(encoded):
        return False
    return text.isascii() or _OTHER_CONTROL.search(encoded) is None
