"""Checks the citations of a finding against the record of the run.

A citation holds when its call exists in this run and the quote is in that call's stored result: blanks count as one,
everything else letter by letter. Comment openers are compared as broken as a model has seen them. What is masked in the
stored result is masked for the model too, so a quote of it holds masked, and only so. What is masked in what models say
and is not in that result (its server's masking is off, or another) is masked on both sides for the comparison.

A result that a model made up in a replay (`onMiss: Simulate`) supports nothing.

Confidence follows the support. Without one claim that is supported and grounded (`grounding`) nothing above Low is
left; and where a model did cite, but none of its citations holds, what it says about its evidence is made up, so the
finding is Inconclusive. Above Medium it must rest on something that the control plane said (`integrity`).
"""

import re
from collections.abc import Mapping
from functools import cached_property

from tarsy.engine.conversation.masking import Mask, mask_response_text
from tarsy.engine.findings.conclusion import QUOTE_LIMIT
from tarsy.engine.findings.grounding import ungrounded_entities
from tarsy.engine.findings.integrity import limit_by_integrity
from tarsy.engine.prompts.fence import inline, readable
from tarsy.engine.skills.agent_skills import LOAD_SKILL
from tarsy.record.finding import Citation, Claim, Confidence, Evidence, Finding
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.text import clean

SHORTEST_QUOTE = 8
"""Characters of a quote, blanks counted once; a result that is shorter can only be quoted whole."""

_TOLD_PROBLEMS = 5
_SKILL = "a skill is an instruction, so it is not evidence"
_MADE_UP = "the result of this call was made up by a model, so it is not evidence"
_QUOTED_TAG = re.compile(r"""["'\\]+(\[MASKED_[A-Z0-9_]+\])["'\\]+""")


def cited(finding: Finding) -> frozenset[str]:
    """The ids of the calls that a finding cites."""
    return frozenset(citation.call_id for claim in finding.claims for citation in claim.citations)


def check_citations(
    finding: Finding,
    evidence: Mapping[str, Evidence],
    mask: Mask = str,
    *,
    alert: str | None = None,
    history: str = "",
) -> Finding:
    """The finding with what the record says of it.

    Args:
        finding: as the model wrote it, without secrets.
        evidence: the calls of this run among those it cites, by the id it cites them with.
        mask: what took the secrets out of the finding.
        alert: what the alert says, whose names a claim may use; None: the claims are computed from their evidence, and
            their names need no check.
        history: what the model was told about earlier investigations, whose names a claim may not use without evidence.
    """
    results = {ref: _Result(found.result, mask, found.marks, found.later) for ref, found in evidence.items()}
    claims = tuple(_claim(claim, evidence, results) for claim in finding.claims)
    if alert is not None:
        claims = tuple(_grounded(claim, evidence, alert, history) for claim in claims)
    confidence, why = _weigh(finding.confidence, claims)
    confidence, unconfirmed = limit_by_integrity(confidence, claims, evidence, f"{finding.summary}\n{alert or ''}")
    notes = (*finding.notes, *(note for note in (why, unconfirmed) if note is not None))
    return finding.model_copy(update={"claims": claims, "confidence": confidence, "notes": notes})


def problem(finding: Finding) -> str | None:
    """Returns the problem for which a checked finding is sent back: it has no structure, or none of its citations
    holds; else None."""
    if not finding.structured:
        return " ".join(finding.notes)
    citations = [citation for claim in finding.claims for citation in claim.citations]
    if not citations or finding.supported_claims:
        return None
    told = [f"- {inline(c.call_id) or '(empty)'}: {c.reason}" for c in citations[:_TOLD_PROBLEMS]]
    return "\n".join(["none of its citations holds.", *dict.fromkeys(told)])


class _Result:
    """The result of a call, flat, as quotes are looked for in it."""

    def __init__(self, text: str, mask: Mask, marks: EvidenceMarks, later: str | None) -> None:
        self._text, self._mask, self._marks, self._later = text, mask, marks, later
        self.flat = _flat(text)

    def holds(self, flat: str) -> bool:
        """Whether a flat quote is in it."""
        return flat in self.flat or _bare(flat) in self._masked

    def integrity_of(self, flat: str) -> Integrity:
        """Returns the class of a flat quote that holds: K if it is within a span of the control plane."""
        if any(flat in piece for piece in self._control) or any(_bare(flat) in piece for piece in self._masked_control):
            return Integrity.K
        return self._marks.integrity

    def is_replaced(self, flat: str) -> bool:
        """Whether a later result of the same call no longer contains a flat quote."""
        return self._later is not None and not _Result(self._later, self._mask, self._marks, None).holds(flat)

    @cached_property
    def _masked(self) -> str:
        return _bare(_flat(mask_response_text(self._mask, self._text)))

    @cached_property
    def _control(self) -> list[str]:
        return [_flat(piece) for piece in self._marks.pieces(self._text)]

    @cached_property
    def _masked_control(self) -> list[str]:
        masked = (mask_response_text(self._mask, piece) for piece in self._marks.pieces(self._text))
        return [_bare(_flat(piece)) for piece in masked]


def _claim(claim: Claim, evidence: Mapping[str, Evidence], results: Mapping[str, _Result]) -> Claim:
    citations = tuple(_citation(c, evidence.get(c.call_id), results.get(c.call_id)) for c in claim.citations)
    return Claim(text=claim.text, citations=citations, supported=any(c.supported for c in citations))


def _grounded(claim: Claim, evidence: Mapping[str, Evidence], alert: str, history: str) -> Claim:
    """A claim with the names and numbers that nothing it rests on has."""
    if not claim.supported:
        return claim
    quotes = [citation.quote for citation in claim.citations if citation.supported]
    asked = [evidence[c.call_id].arguments for c in claim.citations if c.supported and c.call_id in evidence]
    tools = [citation.tool or "" for citation in claim.citations if citation.supported]
    return claim.model_copy(
        update={"ungrounded": ungrounded_entities(claim.text, [*quotes, *asked, *tools, alert], history)}
    )


def _citation(citation: Citation, found: Evidence | None, result: _Result | None) -> Citation:
    quote = citation.quote[:QUOTE_LIMIT]
    if found is None or result is None:
        return Citation(call_id=citation.call_id, quote=quote, reason="no tool call of this run has this id")
    reason = _MADE_UP if found.made_up else _SKILL if found.tool == LOAD_SKILL else _fault(citation.quote, result)
    flat = _flat(citation.quote)
    return Citation(
        call_id=citation.call_id,
        quote=quote,
        supported=reason is None,
        reason=reason,
        interaction=found.interaction,
        stage=found.stage,
        agent=found.agent,
        tool=found.tool,
        integrity=None if reason is not None else result.integrity_of(flat),
        replaced=reason is None and result.is_replaced(flat),
    )


def _fault(quote: str, result: _Result) -> str | None:
    """Why a quote does not hold in a result; None when it does."""
    if len(quote) > QUOTE_LIMIT:
        return f"the quote is longer than {QUOTE_LIMIT:,} characters"
    flat = _flat(quote)
    if not flat:
        return "the quote is empty"
    if len(flat) < SHORTEST_QUOTE and flat != result.flat:
        return f"the quote is shorter than {SHORTEST_QUOTE} characters"
    return None if result.holds(flat) else "the quote is not in the result of this call"


def _bare(flat: str) -> str:
    """Without the quotation marks that a tag gets where YAML or JSON needs them, and not in other words of the same."""
    return _QUOTED_TAG.sub(r"\1", flat)


def _flat(text: str) -> str:
    return " ".join(readable(clean(text)).split())


def _weigh(confidence: Confidence, claims: tuple[Claim, ...]) -> tuple[Confidence, str | None]:
    """The confidence that the support carries, and a sentence when it is another than the model's."""
    if any(claim.grounded for claim in claims):
        return confidence, None
    if any(claim.supported for claim in claims):
        if confidence not in (Confidence.HIGH, Confidence.MEDIUM):
            return confidence, None
        names = dict.fromkeys(name for claim in claims for name in claim.ungrounded)
        told = ", ".join(inline(name) for name in list(names)[:_TOLD_PROBLEMS])
        carried, why = Confidence.LOW, f"its claims name what neither their quotes nor the alert have ({told})"
    elif any(claim.citations for claim in claims):
        carried, why = Confidence.INCONCLUSIVE, "none of its citations holds"
    elif confidence in (Confidence.HIGH, Confidence.MEDIUM):
        carried, why = Confidence.LOW, "it cites nothing"
    else:
        return confidence, None
    if carried is confidence:
        return confidence, None
    return carried, f"Confidence lowered from {confidence.value} to {carried.value}: {why}."
