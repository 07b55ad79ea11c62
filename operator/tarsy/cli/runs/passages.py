"""Finds a quote in the result of a tool call, with the text around it.

Whether the quote is supported is recorded (`tarsy.engine.findings.citations`: blanks are collapsed, comment openers are
broken as the model saw them); it is searched here in the same way, only to be printed. If it is not found, because one
side was masked, nothing similar is printed instead.
"""

import re
from dataclasses import dataclass

from tarsy.client.plain_text import plain
from tarsy.engine.prompts.fence import readable

AROUND = 240
LINES_AROUND = 2


@dataclass(frozen=True, slots=True)
class Passage:
    """A quote and the text before and after it, cut at line ends where possible."""

    before: str
    quoted: str
    after: str


def passage(text: str, quote: str) -> Passage | None:
    """Finds the first occurrence of `quote` in `text`; None without one."""
    words = [re.escape(word) for word in readable(plain(quote)).split()]
    if not words:
        return None
    text = readable(plain(text))
    found = re.search(r"\s+".join(words), text)
    if found is None:
        return None
    return Passage(_end_of(text[: found.start()]), found[0], _start_of(text[found.end() :]))


def _end_of(text: str) -> str:
    near = text[-AROUND:]
    lines = near.split("\n")[-1 - LINES_AROUND :]
    kept = "\n".join(lines)
    return kept if len(kept) == len(text) else "…" + kept if len(kept) == len(near) else "…\n" + kept


def _start_of(text: str) -> str:
    near = text[:AROUND]
    lines = near.split("\n")[: 1 + LINES_AROUND]
    kept = "\n".join(lines)
    return kept if len(kept) == len(text) else kept + "…" if len(kept) == len(near) else kept + "\n…"
