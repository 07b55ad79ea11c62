"""Removes control characters and lone surrogates from text that is recorded.

Postgres refuses NUL, terminals obey the other control characters, and UTF-8 has no lone surrogates. Text of models and
tools is cleaned where it is received, so that later requests send what is stored; the store cleans all text that it
writes. Nothing is shortened.
"""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Returns `text` without control characters (newline and tab stay) and with lone surrogates replaced by U+FFFD."""
    if _CONTROL.search(text):
        text = _CONTROL.sub("", text)
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return text
