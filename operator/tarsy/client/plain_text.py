"""Text from outside as a terminal may show it: no escape, nothing that moves the cursor or turns the writing around.

The record strips control characters when it is written; what comes over a network is stripped again, because a terminal
obeys whoever answers. Decision: characters that change the direction of writing go too, or a name could be shown as
another one.
"""

import re

from tarsy.record.text import clean

TURNING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that no terminal is shown, beyond those below the blank."""


def plain(text: str) -> str:
    """`text` without control characters but newline and tab."""
    text = clean(text)
    return text if text.isascii() else TURNING.sub("", text)


def one_line(text: str, limit: int) -> str:
    """`plain(text)` on one line, at most `limit` characters, cut with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
