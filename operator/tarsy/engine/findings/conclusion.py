"""Reads a structured finding from the final text of a model.

The prompt asks for a last fenced block, ```finding, holding JSON. Models forget, so reading is forgiving (a ```json
block with a summary will do, prose around it is kept, so is a block that was never closed, or JSON without a block) and
never raises: a text without structure becomes an honest Inconclusive finding made of its beginning. Only what a model
may say is read; whether its citations hold is not for it to say (`tarsy.engine.findings.citations`).
"""

import re
from dataclasses import dataclass

import orjson
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from tarsy.record.finding import SUMMARY_LIMIT, Citation, Claim, Confidence, Finding
from tarsy.record.timeline import TimelineEvent

MAX_CLAIMS = 32
MAX_CITATIONS = 4
CLAIM_LIMIT = 2000
"""Claims of a finding, citations of a claim, characters of a claim: what is beyond is left out."""

QUOTE_LIMIT = 1000
ID_LIMIT = 100

_OPENING = re.compile(r"(?:final answer:[ \t]*)?```[ \t]*(finding|json)", re.I)
_CLOSING = "```"
CALL_ID = re.compile(r"\bcall_[0-9a-f]{12}\b")
"""The id of a call, wherever it stands."""


class _Citation(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    call_id: str = Field(validation_alias=AliasChoices("callId", "call_id"))
    quote: str


class _Claim(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    text: str
    citations: list[_Citation] = []


class _Written(BaseModel):
    """Parses the finding that a model writes."""

    model_config = ConfigDict(extra="ignore")

    summary: str
    confidence: Confidence = Confidence.INCONCLUSIVE
    claims: list[_Claim] = []


@dataclass(frozen=True, slots=True)
class _Block:
    """A fenced block: where it stands in the text, whether it is labelled a finding, and what is between its fences."""

    start: int
    end: int
    labelled: bool
    body: str


def read_finding(text: str) -> tuple[Finding, str]:
    """Splits a final text into its finding and the analysis without the block; no citation of it is checked yet."""
    problem = "The final answer held no finding block."
    for block in reversed(_blocks(text)):
        read = _parse(block.body)
        if isinstance(read, Finding):
            analysis = (text[: block.start] + text[block.end :]).strip()
            return read, analysis or read.summary
        if block.labelled:
            problem = read
    if text.lstrip().startswith("{") and isinstance(read := _parse(text), Finding):
        return read, read.summary
    return Finding(summary=shorten_text(text), structured=False, notes=(problem,)), text.strip()


def without_block(text: str) -> tuple[str, str]:
    """A final text as people read it, and the structured blocks that are left out of it, as they were written."""
    if text.lstrip().startswith("{") and isinstance(read := _parse(text), Finding):
        return read.summary, text.strip()
    blocks = [block for block in _blocks(text) if block.labelled or isinstance(_parse(block.body), Finding)]
    analysis = text
    for block in reversed(blocks):
        analysis = analysis[: block.start] + analysis[block.end :]
    if not blocks:
        return text, ""
    return analysis.strip() or read_finding(text)[0].summary, "\n\n".join(text[b.start : b.end] for b in blocks).strip()


def whole_text(event: TimelineEvent) -> str:
    """The final text of an event as it was written, blocks included."""
    block = event.metadata.get("finding")
    return f"{event.content}\n\n{block}" if block else event.content


def readable_text(text: str) -> str:
    """A final text as another model is told it: its prose, and its finding in words with its citations.

    Models copy what they see: a block of JSON in what an earlier stage said comes back as a block.
    """
    finding, _ = read_finding(text)
    prose = without_block(text)[0].strip()
    if not finding.structured:
        return prose
    told = [] if prose == finding.summary else [prose]
    lines = [f"Finding, confidence {finding.confidence.value}: {finding.summary}"]
    for claim in finding.claims:
        cited = "; ".join(f'callId {c.call_id}: "{c.quote}"' for c in claim.citations)
        lines.append(f"- {claim.text}{f' ({cited})' if cited else ''}")
    return "\n\n".join([*told, "\n".join(lines)])


def finding_value(text: str, key: str) -> str | None:
    """Returns a text that the finding of a final answer has beside what is read of it; None: it has none.

    Args:
        text: the final answer.
        key: in the finding's block.
    """
    bodies = [block.body for block in reversed(_blocks(text))]
    if text.lstrip().startswith("{"):
        bodies.append(text)
    for body in bodies:
        if isinstance(_parse(body), Finding):
            value = orjson.loads(body).get(key)
            return value if isinstance(value, str) and value.strip() else None
    return None


def with_finding(text: str, finding: Finding) -> str:
    """A final text with its finding, or what was meant to be one, replaced by `finding` as a model would write it."""
    _, analysis = read_finding(text)
    for block in reversed([b for b in _blocks(analysis) if b.labelled]):
        analysis = (analysis[: block.start] + analysis[block.end :]).strip()
    written = {
        "summary": finding.summary,
        "confidence": finding.confidence.value,
        "claims": [
            {"text": c.text, "citations": [{"callId": q.call_id, "quote": q.quote} for q in c.citations]}
            for c in finding.claims
        ],
    }
    return f"{analysis or finding.summary}\n\n```finding\n{orjson.dumps(written).decode()}\n```"


def _blocks(text: str) -> list[_Block]:
    """The ```finding and ```json blocks, line by line: a regular expression would be quadratic in unclosed ones."""
    blocks: list[_Block] = []
    opened: tuple[int, int, bool] | None = None
    place = 0
    for line in text.splitlines(keepends=True):
        start, place, words = place, place + len(line), line.strip()
        if found := _OPENING.fullmatch(words):
            opened = (start, place, found[1].lower() == "finding")
        elif opened and words == _CLOSING:
            blocks.append(_Block(opened[0], place, opened[2], text[opened[1] : start]))
            opened = None
    if opened:
        blocks.append(_Block(opened[0], place, opened[2], text[opened[1] :]))
    return blocks


def _parse(block: str) -> Finding | str:
    """The finding of a block, or a sentence that says why it is none."""
    try:
        data = orjson.loads(block)
    except orjson.JSONDecodeError as error:
        return f"The finding block is not JSON: {error.msg} at line {error.lineno}."
    if not isinstance(data, dict) or not isinstance(data.get("summary"), str) or not data["summary"].strip():
        return 'The finding block is not a JSON object with a "summary".'
    if isinstance(data.get("confidence"), str):
        data["confidence"] = data["confidence"].strip().capitalize()
    try:
        return _finding(_Written.model_validate(data))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return f"The finding block has a wrong value at {where}."


def _finding(written: _Written) -> Finding:
    notes = []
    if len(written.claims) > MAX_CLAIMS:
        notes.append(f"{len(written.claims) - MAX_CLAIMS} claims beyond the first {MAX_CLAIMS} were left out.")
    claims = written.claims[:MAX_CLAIMS]
    if any(len(claim.citations) > MAX_CITATIONS for claim in claims):
        notes.append(f"Citations beyond the first {MAX_CITATIONS} of a claim were left out.")
    return Finding(
        summary=shorten_text(written.summary),
        confidence=written.confidence,
        claims=tuple(
            Claim(
                text=shorten_text(claim.text, CLAIM_LIMIT),
                citations=tuple(
                    # One character more than may hold: a quote that was cut here must not become one that holds.
                    Citation(call_id=_call_id(c.call_id[:ID_LIMIT]), quote=c.quote[: QUOTE_LIMIT + 1])
                    for c in claim.citations[:MAX_CITATIONS]
                ),
            )
            for claim in claims
        ),
        notes=tuple(notes),
    )


def _call_id(text: str) -> str:
    """The id of a call, also where a model copied more of the line that names it."""
    found = CALL_ID.search(text)
    return found[0] if found else text.strip()


def shorten_text(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """The first paragraph of `text` on one line, at most `limit` characters, cut at a word with an ellipsis."""
    line = " ".join(text.strip().split("\n\n", 1)[0].split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rsplit(" ", 1)[0].rstrip() + "…"
