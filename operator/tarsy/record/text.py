"""Text as it may be recorded: without control characters and without halves of surrogate pairs.

Postgres refuses NUL, terminals obey the others, and UTF-8 has no lone surrogates. What a model or a tool says passes
here where it comes in, so that what is sent next time is what is stored; the store applies the same rule to all it
writes (DESIGN section 7: "control characters are stripped on write"). Nothing is shortened.
"""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without control characters (newline and tab stay) and with lone surrogates replaced by U+FFFD."""
    if _CONTROL.search(text):
        text = _CONTROL.sub("", text)
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return text
