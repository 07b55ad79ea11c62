"""From a model's final text to a structured finding.

The prompt asks for a last fenced block, ```finding, holding JSON. Models forget, so reading is forgiving (a ```json
block with a summary will do, prose around it is kept) and never raises: a text without structure becomes an honest
Inconclusive finding made of its beginning.
"""

import re
from dataclasses import dataclass

import orjson
from pydantic import ValidationError

from tarsy.record.finding import SUMMARY_LIMIT, Finding

_OPENING = re.compile(r"```[ \t]*(finding|json)", re.I)
_CLOSING = "```"


@dataclass(frozen=True, slots=True)
class _Block:
    """A fenced block: where it stands in the text, and what is between its fences."""

    start: int
    end: int
    body: str


def read_finding(text: str) -> tuple[Finding, str]:
    """Splits a final text into its finding and the analysis without the block."""
    for block in reversed(_blocks(text)):
        finding = _parse(block.body)
        if finding:
            analysis = (text[: block.start] + text[block.end :]).strip()
            return finding, analysis or finding.summary
    return Finding(summary=shorten(text), structured=False), text.strip()


def _blocks(text: str) -> list[_Block]:
    """The ```finding and ```json blocks, line by line: a regular expression would be quadratic in unclosed ones."""
    blocks: list[_Block] = []
    opened: tuple[int, int] | None = None
    place = 0
    for line in text.splitlines(keepends=True):
        start, place, words = place, place + len(line), line.strip()
        if _OPENING.fullmatch(words):
            opened = (start, place)
        elif opened and words == _CLOSING:
            blocks.append(_Block(opened[0], place, text[opened[1] : start]))
            opened = None
    return blocks


def _parse(block: str) -> Finding | None:
    try:
        data = orjson.loads(block)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("summary"), str) or not data["summary"].strip():
        return None
    data["summary"] = shorten(data["summary"])
    if isinstance(data.get("confidence"), str):
        data["confidence"] = data["confidence"].strip().capitalize()
    data.pop("structured", None)
    try:
        return Finding.model_validate(data)
    except ValidationError:
        return None


def shorten(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """The first paragraph of `text` on one line, at most `limit` characters, cut at a word with an ellipsis."""
    line = " ".join(text.strip().split("\n\n", 1)[0].split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rsplit(" ", 1)[0].rstrip() + "…"
