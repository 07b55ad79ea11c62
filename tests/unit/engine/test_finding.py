"""Findings out of what models write: forgiving, never raising, in linear time."""

import random
import time

import pytest

from for_each import for_each
from tarsy.engine.findings.conclusion import read_finding, shorten_text, without_block
from tarsy.record.finding import SUMMARY_LIMIT, Confidence


def block(body: str, word: str = "finding") -> str:
    return f"Before.\n\n```{word}\n{body}\n```\n\nAfter."


@pytest.mark.parametrize(
    "text",
    [
        block('{"summary": "It broke", "confidence": "High"}'),
        block('{"summary": "It broke", "confidence": " HIGH "}'),
        block('{"summary": "It broke", "confidence": "high", "extra": 1, "structured": false}', "json"),
        block('{"summary": "It broke", "confidence": "high"}', " Finding "),
        block('{"summary": "It broke", "confidence": "high"}').replace("\n", "\r\n"),
        block('{"summary": "It broke", "confidence": "high"}').replace("```", "  ```"),
        block("[1]", "json") + "\n" + block('{"summary": "It broke", "confidence": "high"}'),
        block('{"summary": "It broke", "confidence": "high"}') + "\n" + block('{"other": 1}', "json"),
        "```json\nnever closed\n" + block('{"summary": "It broke", "confidence": "high"}'),
    ],
)
def test_a_block_with_a_summary_is_a_finding(text: str) -> None:
    finding, analysis = read_finding(text)

    assert finding.structured
    assert (finding.summary, finding.confidence) == ("It broke", Confidence.HIGH)
    assert "Before." in analysis and "After." in analysis
    assert "It broke" not in analysis


@pytest.mark.parametrize(
    ("text", "analysis", "kept"),
    [
        pytest.param(block('{"summary": "s"}'), "Before.\n\n\nAfter.", '{"summary": "s"}', id="block"),
        pytest.param(block("{]"), "Before.\n\n\nAfter.", "{]", id="a block that cannot be read"),
        pytest.param('```finding\n{"summary": "s"}', "s", '{"summary": "s"}', id="nothing else"),
        pytest.param(' {"summary": "s"}', "s", '{"summary": "s"}', id="bare JSON"),
        pytest.param(block("[1]", "json"), block("[1]", "json"), "", id="JSON that is no finding"),
        pytest.param("  As it is.\n", "  As it is.\n", "", id="none"),
    ],
)
def test_people_read_a_text_without_the_block_for_programs(text: str, analysis: str, kept: str) -> None:
    shown, left_out = without_block(text)
    assert shown == analysis
    assert kept in left_out and bool(kept) == bool(left_out)


def test_claims_keep_their_citations() -> None:
    body = '{"summary": "s", "claims": [{"text": "t", "citations": [{"callId": "c1", "quote": "q"}]}]}'

    finding, _ = read_finding(block(body))

    assert finding.confidence is Confidence.INCONCLUSIVE
    assert (finding.claims[0].citations[0].call_id, finding.claims[0].citations[0].quote) == ("c1", "q")


def test_a_text_that_is_only_its_block_is_its_own_analysis() -> None:
    finding, analysis = read_finding('```finding\n{"summary": "It broke"}\n```')

    assert analysis == finding.summary == "It broke"


MALFORMED = [
    "",
    "   \n ",
    "```",
    "```finding",
    "```finding\n```",
    block(""),
    block("null"),
    block("[]"),
    block("{"),
    block("{}"),
    block('{"summary": ""}'),
    block('{"summary": "  "}'),
    block('{"summary": 5}'),
    block('{"summary": null}'),
    block('{"summary": ["a"]}'),
    block('{"summary": "s", "confidence": "certain"}'),
    block('{"summary": "s", "confidence": 0.9}'),
    block('{"summary": "s", "claims": "none"}'),
    block('{"summary": "s", "claims": [{"citations": []}]}'),
    block('{"summary": "s", "claims": [{"text": "t", "citations": [{"callId": 1, "quote": 2}]}]}'),
    block('{"summary": "\ud800"}'),
    block('{"summary": NaN}'),
    block("[" * 100_000),
    block('{"a":' * 5_000),
    block('{"summary": "s"}', "yaml"),
    block('{"summary": "s"} {"summary": "t"}'),
    'inline ```finding {"summary": "s"}``` text',
]


@for_each("text", MALFORMED)
def test_what_cannot_be_read_is_an_honest_inconclusive_finding(text: str) -> None:
    finding, analysis = read_finding(text)

    assert not finding.structured
    assert finding.confidence is Confidence.INCONCLUSIVE
    assert analysis == text.strip()
    assert len(finding.summary) <= SUMMARY_LIMIT


PIECES = [
    "```",
    "finding",
    "json",
    "\n",
    " ",
    "{",
    "}",
    '"summary"',
    ":",
    '"x"',
    "[",
    "]",
    ",",
    "\\",
    "\u2028",
    "\r",
    "é",
]


@for_each("seed", range(20))
def test_no_text_makes_reading_raise(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        text = "".join(chance.choices(PIECES, k=chance.randrange(60)))
        finding, analysis = read_finding(text)
        assert len(finding.summary) <= SUMMARY_LIMIT
        assert isinstance(analysis, str)


MEGABYTE = 1 << 20
HOSTILE = ["```json\n", "```finding\n{\n", "```json\n```\n", "`", " ", "\n", "\t\n", "a", "```\n", "``` finding \n  "]


@pytest.mark.sweep("another megabyte")
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(piece: str) -> None:
    started = time.process_time()
    read_finding(piece * (MEGABYTE // len(piece)))
    assert time.process_time() - started < 10.0  # quadratic would be hours


@pytest.mark.parametrize("length", [1, SUMMARY_LIMIT - 1, SUMMARY_LIMIT, SUMMARY_LIMIT + 1, 10 * SUMMARY_LIMIT])
def test_a_shortened_text_fits_and_says_that_it_was_cut(length: int) -> None:
    for text in ("x" * length, ("word " * length)[:length]):
        short = shorten_text(text)
        assert len(short) <= SUMMARY_LIMIT
        assert short.endswith("…") == (len(text.strip()) > SUMMARY_LIMIT)


def test_a_short_form_is_the_first_paragraph_on_one_line() -> None:
    assert shorten_text("\n one\n  two \n\nthree") == "one two"
