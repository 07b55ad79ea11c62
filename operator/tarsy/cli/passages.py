"""Where a quote stands in a tool's result, with some of what is around it.

The record has decided whether the quote holds (`tarsy.engine.findings.citations`: blanks count as one, comment openers
as broken as a model saw them); here its place is looked for in the same way, to be shown. Where it cannot be found as
it stands, because it was masked on one side only, nothing is shown instead of something alike.
"""

import re
from dataclasses import dataclass

from tarsy.client.plain_text import plain
from tarsy.engine.prompts.fence import defuse

AROUND = 240
LINES_AROUND = 2


@dataclass(frozen=True, slots=True)
class Passage:
    """A quoted piece of a text between what stands before and after it, each cut at a line where there is one near."""

    before: str
    quoted: str
    after: str


def passage(text: str, quote: str) -> Passage | None:
    """The first place of `quote` in `text`; None when it is not found."""
    words = [re.escape(word) for word in defuse(plain(quote)).split()]
    if not words:
        return None
    text = defuse(plain(text))
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
