"""Removes control characters and lone surrogates from text that is recorded.

Postgres refuses NUL, terminals obey the other control characters, and UTF-8 has no lone surrogates. Text of models and
tools is cleaned where it is received, so that later requests send what is stored; the store cleans all text that it
writes. Nothing is shortened.
"""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_CONTROL = bytes((*range(0x09), *range(0x0B, 0x20), 0x7F))
_OTHER_CONTROL = re.compile(b"\xc2[\x80-\x9f]")


def clean(text: str) -> str:
    """Returns `text` without control characters (newline and tab stay) and with lone surrogates replaced by U+FFFD."""
    if text.isprintable() or _is_clean(text):
        return text
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def _is_clean(text: str) -> bool:
    """Whether there is nothing to remove; of a long text in a tenth of the time that a pattern takes to find out."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    if len(encoded.translate(None, _ASCII_CONTROL)) != len(encoded):
        return False
    return text.isascii() or _OTHER_CONTROL.search(encoded) is None
