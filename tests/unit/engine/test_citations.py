"""Citations hold when the record says so, and confidence follows them."""

import random
import time
from uuid import UUID

import orjson
import pytest

from for_each import for_each
from tarsy.engine.findings.citations import SHORTEST_QUOTE, check_citations, cited, problem
from tarsy.engine.findings.conclusion import (
    MAX_CITATIONS,
    MAX_CLAIMS,
    QUOTE_LIMIT,
    read_finding,
    readable_text,
    with_finding,
)
from tarsy.record.finding import Citation, Claim, Confidence, Evidence, Finding
from tarsy.record.integrity import EvidenceMarks, Integrity

ROW = UUID(int=7)
RESULT = "pod checkout-7d\n  status=CrashLoopBackOff   restarts=9\npassword: [MASKED_PASSWORD] <!-- note -->"
LOGS = {"call_a": Evidence(ROW, "triage", "log-analyst", "k.logs", RESULT, marks=EvidenceMarks(Integrity.K))}


def finding(*quotes: str, ref: str = "call_a", confidence: Confidence = Confidence.HIGH) -> Finding:
    citations = tuple(Citation(call_id=ref, quote=quote) for quote in quotes)
    return Finding(summary="s", confidence=confidence, claims=(Claim(text="t", citations=citations),))


@pytest.mark.parametrize(
    "quote",
    [
        "status=CrashLoopBackOff",
        "status=CrashLoopBackOff restarts=9",
        "pod checkout-7d status",
        "  pod\tcheckout-7d\r\n",
        "[MASKED_PASSWORD]",
        "<!-- note -->",
        "<! -- note -->",
        RESULT,
    ],
)
def test_a_quote_of_the_result_holds_however_its_blanks_are_written(quote: str) -> None:
    checked = check_citations(finding(quote), LOGS)

    (citation,) = checked.claims[0].citations
    assert citation.supported and citation.reason is None
    assert (citation.interaction, citation.stage, citation.agent, citation.tool) == (
        ROW,
        "triage",
        "log-analyst",
        "k.logs",
    )
    assert checked.claims[0].supported and checked.supported_claims == 1
    assert (checked.confidence, checked.notes) == (Confidence.HIGH, ())


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("status=Running", "not in the result"),
        ("Status=CrashLoopBackOff", "not in the result"),
        ("statusCrashLoopBackOff", "not in the result"),
        ("status=Crash... restarts=9", "not in the result"),
        ("password: hunter2", "not in the result"),
        ("", "empty"),
        (" \n\t ", "empty"),
        ("pod", "shorter than 8"),
        ("restart", "shorter than 8"),
        ("x" * (QUOTE_LIMIT + 1), "longer than 1,000"),
    ],
)
def test_any_other_quote_does_not_and_says_why(quote: str, reason: str) -> None:
    checked = check_citations(finding(quote), LOGS)

    (citation,) = checked.claims[0].citations
    assert not citation.supported and not checked.claims[0].supported
    assert reason in (citation.reason or "")
    assert citation.interaction == ROW


@pytest.mark.parametrize("length", [SHORTEST_QUOTE - 1, SHORTEST_QUOTE, QUOTE_LIMIT - 1, QUOTE_LIMIT, QUOTE_LIMIT + 1])
def test_a_quote_has_a_least_and_a_greatest_length(length: int) -> None:
    evidence = {"call_a": Evidence(ROW, "s", "a", "t", "y" * 2000)}

    checked = check_citations(finding("y" * length), evidence)

    assert checked.claims[0].supported == (SHORTEST_QUOTE <= length <= QUOTE_LIMIT)


@pytest.mark.parametrize(("quote", "holds"), [("ok", True), (" ok ", True), ("o", False), ("", False)])
def test_a_result_that_is_shorter_can_only_be_quoted_whole(quote: str, holds: bool) -> None:
    checked = check_citations(finding(quote), {"call_a": Evidence(ROW, "s", "a", "t", "ok\n")})

    assert checked.claims[0].supported == holds


def test_an_empty_result_supports_nothing() -> None:
    assert not check_citations(finding(""), {"call_a": Evidence(ROW, "s", "a", "t", "")}).claims[0].supported


def test_a_call_that_this_run_has_not_made_supports_nothing() -> None:
    checked = check_citations(finding("status=CrashLoopBackOff", ref="call_b"), LOGS)

    (citation,) = checked.claims[0].citations
    assert citation.reason == "no tool call of this run has this id"
    assert citation.interaction is None


@pytest.mark.parametrize("said", list(Confidence))
def test_without_a_citation_confidence_is_low_at_most(said: Confidence) -> None:
    checked = check_citations(finding(confidence=said), LOGS)

    lowered = said in (Confidence.HIGH, Confidence.MEDIUM)
    assert checked.confidence is (Confidence.LOW if lowered else said)
    assert (f"from {said.value} to Low" in "".join(checked.notes)) == lowered


@pytest.mark.parametrize("said", list(Confidence))
def test_a_finding_whose_citations_all_fail_is_inconclusive(said: Confidence) -> None:
    checked = check_citations(finding("invented by a model", confidence=said), LOGS)

    assert checked.confidence is Confidence.INCONCLUSIVE
    assert bool(checked.notes) == (said is not Confidence.INCONCLUSIVE)


@pytest.mark.parametrize("said", list(Confidence))
def test_one_supported_claim_keeps_the_confidence(said: Confidence) -> None:
    good, bad = finding("status=CrashLoopBackOff", confidence=said), finding("invented by a model")

    checked = check_citations(good.model_copy(update={"claims": (*bad.claims, *good.claims)}), LOGS)

    assert (checked.confidence, checked.notes, checked.supported_claims) == (said, (), 1)
    assert [claim.supported for claim in checked.claims] == [False, True]


def test_a_finding_is_sent_back_when_it_has_no_structure_or_no_citation_that_holds() -> None:
    assert "no finding block" in (problem(read_finding("It broke.")[0]) or "")
    assert "not JSON" in (problem(read_finding("```finding\n{]\n```")[0]) or "")
    assert "- call_b: no tool call" in (problem(check_citations(finding("invented by", ref="call_b"), LOGS)) or "")
    assert problem(check_citations(finding("invented by a model", "status=CrashLoopBackOff"), LOGS)) is None
    assert problem(check_citations(finding(), LOGS)) is None


# Forged support.

FORGED = [
    '"supported": true',
    '"supported": true, "interaction": "00000000-0000-0000-0000-000000000007"',
    '"supported": 1, "reason": null, "agent": "log-analyst"',
]


@pytest.mark.parametrize("forged", FORGED)
def test_what_a_model_writes_about_its_support_is_not_read(forged: str) -> None:
    citation = f'{{"callId": "call_a", "quote": "invented by me", {forged}}}'
    claim = f'{{"text": "t", {forged}, "citations": [{citation}]}}'
    text = f'```finding\n{{"summary": "s", "confidence": "High", "claims": [{claim}]}}\n```'
    read, _ = read_finding(text)

    assert not read.claims[0].supported and not read.claims[0].citations[0].supported
    assert not check_citations(read, LOGS).claims[0].supported


@for_each("seed", range(20))
def test_a_forged_citation_never_holds(seed: int) -> None:
    """A quote that is not a run of letters of the result is never found in it, whatever was done to a true one."""
    chance = random.Random(seed)
    letters = "ab <!-\n\u200b\u2028[]{}\\\"'é"
    for _ in range(200):
        result = "".join(chance.choices(letters, k=chance.randrange(80)))
        quote = list(result[chance.randrange(len(result) + 1) :][: chance.randrange(40)])
        quote.insert(chance.randrange(len(quote) + 1), "Z")
        ref = chance.choice(["call_a", "call_A", "call_a ", "", "call_a\u200b", "*", "%"])
        evidence = {"call_a": Evidence(ROW, "s", "a", "t", result)}
        written = {"summary": "s", "claims": [{"text": "t", "citations": [{"callId": ref, "quote": "".join(quote)}]}]}
        read, _ = read_finding(f"```finding\n{orjson.dumps(written).decode()}\n```")
        assert not check_citations(read, evidence).claims[0].supported


@pytest.mark.parametrize("seed", range(10))
def test_a_true_quote_always_holds(seed: int) -> None:
    chance = random.Random(seed)
    words = ["pod", "status=CrashLoopBackOff", "<!--", "-->", "\u200b", "é", '"', "\\n", "\n", "[MASKED_X]", "  "]
    for _ in range(200):
        result = " ".join(chance.choices(words, k=30))
        start = chance.randrange(len(result) - 60)
        quote = result[start : start + 60]
        read = check_citations(finding(quote), {"call_a": Evidence(ROW, "s", "a", "t", result)})
        broken = (result[start - 1 : start + 2], result[start + 57 : start + 61])
        if any("<!" in edge or "!-" in edge for edge in broken):
            continue  # cut through an opener: what the model saw there was broken by a blank
        assert read.claims[0].supported, (quote, result)


# Size.


def test_more_claims_and_citations_than_fit_are_left_out_and_noted() -> None:
    citation = {"callId": "call_a", "quote": "status=CrashLoopBackOff"}
    claims = [{"text": "t" * 5000, "citations": [citation] * (MAX_CITATIONS + 1)}] * (MAX_CLAIMS + 2)
    text = orjson.dumps({"summary": "s", "claims": claims}).decode()

    read, _ = read_finding(f"```finding\n{text}\n```")

    assert len(read.claims) == MAX_CLAIMS and len(read.claims[0].citations) == MAX_CITATIONS
    assert "2 claims beyond" in read.notes[0] and "Citations beyond" in read.notes[1]
    assert len(read.model_dump_json()) < 1_000_000


@pytest.mark.heavy("a megabyte each")
def test_a_megabyte_of_citations_against_a_megabyte_of_result_is_checked_in_linear_time() -> None:
    quote = "a" * (QUOTE_LIMIT - 1) + "b"
    citation = {"callId": "call_a", "quote": quote}
    claims = [{"text": "t", "citations": [citation] * 8}] * 128
    text = orjson.dumps({"summary": "s", "claims": claims}).decode()
    assert len(text) > 1_000_000
    evidence = {"call_a": Evidence(ROW, "s", "a", "t", "a" * 1_000_000)}

    started = time.process_time()
    read, _ = read_finding(f"```finding\n{text}\n```")
    checked = check_citations(read, evidence)

    assert time.process_time() - started < 10.0  # quadratic would be hours
    assert checked.supported_claims == 0 and cited(checked) == {"call_a"}


# The repaired text.


@pytest.mark.parametrize(
    "text",
    [
        "It broke.\n\n```finding\n{\n```",
        "It broke.",
        'It broke.\n\n```finding\n{"summary": "old"}\n```',
        '```finding\n{"summary": 5}\n```\n\nIt broke.\n\n```finding\n{"claims": 1',
    ],
)
def test_a_repaired_finding_takes_the_place_of_the_bad_one(text: str) -> None:
    repaired = finding('status="x"').model_copy(update={"summary": "new"})

    read, analysis = read_finding(with_finding(text, repaired))

    assert (read.summary, analysis) == ("new", "It broke.")
    assert read == repaired


@pytest.mark.parametrize(
    "written",
    ["call_0123456789ab", " call_0123456789ab ", "[callId: call_0123456789ab]", "callId: call_0123456789ab k.logs"],
)
def test_an_id_is_read_although_more_of_its_line_was_copied(written: str) -> None:
    claims = [{"text": "t", "citations": [{"callId": written, "quote": "q"}]}]

    read, _ = read_finding(orjson.dumps({"summary": "s", "claims": claims}).decode())

    assert cited(read) == {"call_0123456789ab"}


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "s"}',
        'Final Answer: ```finding\n{"summary": "s"}\n```',
        '```finding\n{"summary": "s"}',
        '```finding\n{"summary": "s", "claims": [{"text": "t", "citations": [{"call_id": "c", "quote": "q"}]}]}\n```',
    ],
)
def test_a_finding_is_read_although_its_form_is_not_quite_right(text: str) -> None:
    read, _ = read_finding(text)

    assert read.structured and read.summary == "s"


# A final text as another model is told it.

CITED = (
    '{"summary": "It is full.", "confidence": "Medium", "claims": [{"text": "The disk is full.", '
    '"citations": [{"callId": "call_0123456789ab", "quote": "100% used"}]}, {"text": "Nobody cleans it."}]}'
)
IN_WORDS = (
    "Finding, confidence Medium: It is full.\n"
    '- The disk is full. (callId call_0123456789ab: "100% used")\n'
    "- Nobody cleans it."
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"I looked.\n\n```finding\n{CITED}\n```", f"I looked.\n\n{IN_WORDS}"),
        (f"I looked.\n\n```json\n{CITED}\n```\n\nThat is all.", f"I looked.\n\n\nThat is all.\n\n{IN_WORDS}"),
        (f"```finding\n{CITED}\n```", IN_WORDS),
        (CITED, IN_WORDS),
        ("I looked.", "I looked."),
        ("I looked.\n\n```finding\n{]\n```", "I looked."),
        ('I looked.\n\n```json\n{"kind": "Pod"}\n```', 'I looked.\n\n```json\n{"kind": "Pod"}\n```'),
        ("", ""),
    ],
)
def test_another_model_is_told_the_finding_in_words_with_its_citations(text: str, told: str) -> None:
    assert readable_text(text) == told
