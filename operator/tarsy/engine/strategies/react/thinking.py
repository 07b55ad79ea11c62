"""Separates `<think>` blocks: reasoning of a model that its server left in the text.

What is inside is thought and holds no headers: a model rehearses its answer there. A block that is never closed ends
at the first header; one that is never opened (servers that put the opening tag into the prompt) began with the text.
"""

import re
from dataclasses import dataclass

_TAG = re.compile(r"<(/?)think(?:ing)?>", re.I)


@dataclass(frozen=True, slots=True)
class Untangled:
    """The text without its blocks, their contents, and where in the text an unclosed block begins."""

    text: str
    thoughts: tuple[str, ...] = ()
    open_at: int | None = None


def untangle(text: str) -> Untangled:
    """Takes the blocks out of `text`."""
    tags = list(_TAG.finditer(text))
    if not tags:
        return Untangled(text)
    kept: list[str] = []
    thoughts: list[str] = []
    position, opened = 0, None
    for number, tag in enumerate(tags):
        if tag[1]:
            if opened is not None:
                thoughts.append(text[opened : tag.start()])
                opened = None
                position = tag.end()
            elif number == 0 and text[tag.end() :].strip():
                thoughts.append(text[: tag.start()])
                position = tag.end()
            else:
                kept.append(text[position : tag.start()])
                position = tag.end()
        elif opened is None:
            kept.append(text[position : tag.start()])
            opened = position = tag.end()
    before = "\n".join(kept)
    rest = text[position:]
    whole = before + ("\n" if before else "") + rest
    open_at = None if opened is None else len(whole) - len(rest)
    return Untangled(whole, tuple(thought.strip() for thought in thoughts if thought.strip()), open_at)
