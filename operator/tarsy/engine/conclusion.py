"""From a model's final text to a structured finding.

The prompt asks for a last fenced block, ```finding, holding JSON. Models forget, so reading is forgiving (a ```json
block with a summary will do, prose around it is kept) and never raises: a text without structure becomes an honest
Inconclusive finding made of its beginning.
"""

import re

import orjson
from pydantic import ValidationError

from tarsy.record.finding import SUMMARY_LIMIT, Finding

_FENCE = re.compile(r"^[ \t]*```[ \t]*(finding|json)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.S | re.M | re.I)


def read_finding(text: str) -> tuple[Finding, str]:
    """Splits a final text into its finding and the analysis without the block."""
    for match in reversed(list(_FENCE.finditer(text))):
        finding = _parse(match[2])
        if finding:
            analysis = (text[: match.start()] + text[match.end() :]).strip()
            return finding, analysis or finding.summary
    return Finding(summary=shorten(text), structured=False), text.strip()


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
