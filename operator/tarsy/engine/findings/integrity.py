"""Limits confidence by who can write the evidence.

A text that workloads can write (class A), or anybody outside (class X), may have been written to be found: a log line
that says "the cause is X". A finding whose claims rest on such text alone is at most Medium. One grounded citation of
class K about the same object is enough for more: then the control plane confirms that this object fails, or changed.

Decision: which claim is the root cause is not known without a model, so the rule looks at all claims. A K citation is
about another object where it names objects, and neither the summary, the alert nor a claim without K evidence names one
of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import orjson

from tarsy.record.finding import Citation, Claim, Confidence, Evidence
from tarsy.record.integrity import Integrity

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*[a-z0-9]")
_HASHES = re.compile(r"(?:-[a-z0-9]{6,10})?-[a-z0-9]{5}$|-[a-f0-9]{8,10}$|-\d+$")
_NO_NAMES = frozenset({"kind", "namespace", "label_selector", "labelselector", "container", "page"})
_WORDS = {
    Integrity.A: "text that workloads can write",
    Integrity.X: "text from outside of the cluster",
}


def limit_by_integrity(
    confidence: Confidence, claims: Iterable[Claim], evidence: Mapping[str, Evidence], about: str
) -> tuple[Confidence, str | None]:
    """Returns the confidence that the classes of the evidence carry, and a sentence where it is lower.

    Args:
        confidence: that the support of the claims carries.
        claims: as checked.
        evidence: the cited calls by the id that citations use.
        about: summary and alert.
    """
    if confidence is not Confidence.HIGH:
        return confidence, None
    confirmed = [claim for claim in claims if claim.grounded and _held(claim, Integrity.K)]
    others = [claim for claim in claims if claim.grounded and not _held(claim, Integrity.K)]
    if not others:
        return (confidence, None) if confirmed else (Confidence.MEDIUM, _sentence(others))
    subject = _mentioned("\n".join([about, *(text for claim in others for text in _texts(claim, evidence))]))
    for claim in confirmed:
        named = {name for citation in _held(claim, Integrity.K) for name in _objects(citation, evidence)}
        if not named or named & subject:
            return confidence, None
    return Confidence.MEDIUM, _sentence(others, elsewhere=bool(confirmed))


def _held(claim: Claim, *classes: Integrity) -> list[Citation]:
    return [one for one in claim.citations if one.supported and one.integrity in (classes or tuple(Integrity))]


def _texts(claim: Claim, evidence: Mapping[str, Evidence]) -> Iterator[str]:
    yield claim.text
    for citation in _held(claim):
        yield citation.quote
        if citation.call_id in evidence:
            yield evidence[citation.call_id].arguments


def _objects(citation: Citation, evidence: Mapping[str, Evidence]) -> set[str]:
    """Returns the names of objects that a citation is about: those that its call asked for, else those it quotes."""
    found = evidence.get(citation.call_id)
    asked = set(_mentioned("\n".join(_leaves(found.arguments)))) if found is not None else set[str]()
    return asked or {name for name in _mentioned(citation.quote) if "-" in name and not name[0].isdigit()}


def _leaves(arguments: str) -> Iterator[str]:
    try:
        given = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return
    if isinstance(given, dict):
        for key, value in given.items():
            if isinstance(value, str) and key.lower() not in _NO_NAMES:
                yield value


def _mentioned(text: str) -> frozenset[str]:
    """Returns the words of a text that may be names of objects; a pod is named by its workload too."""
    found: set[str] = set()
    for name in _NAME.findall(text.lower()):
        while name not in found:
            found.add(name)
            name = _HASHES.sub("", name)
    return frozenset(found)


def _sentence(claims: Iterable[Claim], *, elsewhere: bool = False) -> str:
    held = [citation for claim in claims for citation in _held(claim)]
    classes = sorted({one.integrity for one in held if one.integrity is not None})
    what = " and ".join(_WORDS[one] for one in classes if one in _WORDS) or _WORDS[Integrity.A]
    tools = ", ".join(sorted({citation.tool for citation in held if citation.tool}))
    why = f"its evidence is {what} ({tools})" if tools else f"its evidence is {what}"
    if elsewhere:
        why += ", and what the control plane says is about other objects"
    else:
        why += ", and nothing that the control plane says confirms it"
    return f"Confidence lowered from High to Medium: {why}."
