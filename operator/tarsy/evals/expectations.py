"""Judges a finished run against the expectation of a case, without a model.

Decision: an entity is blamed when a supported claim names it in a sentence that does not rule it out. Prose is read
with a short list of phrases and never with a model, so the same record always has the same verdict. What cannot be
judged (a run that did not finish, too little coverage of a replay) is Inconclusive, never Passed and never Failed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from tarsy.cel import CEL_ERRORS, CelSyntaxError, Program, compile_program
from tarsy.cel.budget import PER_EXPRESSION, CostBudget
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.resources.v1alpha1.expectation import Expectation, ExpectedVerdict, Fact

COVERAGE_MIN = 0.7
"""Smallest share of tool calls that a replay answered from its recording, where a case sets none."""

FACT_SECONDS = 1.0
"""Time limit of one CEL expression."""

FACT_VARIABLES = ("claims", "finding", "calls", "steps", "costUSD")

_CLAUSE = re.compile(r"[!?;\n]+|\.(?=\s|$)|,?\s+(?=but\b|while\b|whereas\b|although\b)")
_KINDS = frozenset(
    f"{kind}{plural}"
    for kind in (
        "pod", "deployment", "service", "statefulset", "daemonset", "replicaset", "job", "cronjob", "node", "configmap",
        "secret", "ingress", "namespace", "container",
    )
    for plural in ("", "s", "es")
)  # fmt: skip
"""Kinds that stand before a name in lower case; another word there is a namespace."""

_RULED_OUT = re.compile(
    r"\b(?:healthy|unaffected|uninvolved|unrelated|ruled out|rules out|not (?:the |a )?(?:root )?(?:cause|culprit|fault"
    r"|problem|issue|involved|affected|responsible|related)|no (?:fault|problem|issue|error|sign|evidence)s?"
    r"|running normally|works? as expected|within (?:its |their )?limits|symptom|victim)\b",
    re.IGNORECASE,
)
_NO_FAULT = re.compile(
    r"\b(?:no (?:active |current |ongoing )?(?:fault|incident|problem|issue|outage)s?|nothing is (?:wrong|broken)"
    r"|false (?:alarm|positive)|(?:is|are|looks?|all|everything(?: is)?) healthy|has recovered|have recovered"
    r"|works? as (?:expected|intended)|expected behaviou?r|no action (?:is )?(?:needed|required))\b",
    re.IGNORECASE,
)


class Outcome(StrEnum):
    """Outcome of a check, of a sample or of a case."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call of a run: `server.tool`, and whether its result was an error."""

    tool: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run as data.

    Attributes:
        finding: its finding; None: it ended without one.
        calls: its tool calls, in order.
        steps: number of its model calls.
        cost_usd: cost of its model calls in US dollars; None: not known completely.
        coverage: share of its tool calls that the replay answered from the recording; None: not a replay.
        failure: sentence that explains why it did not end well; None: it completed.
    """

    finding: Finding | None
    calls: Sequence[MadeCall] = ()
    steps: int = 0
    cost_usd: Decimal | None = None
    coverage: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """One check and its outcome, with a sentence for people."""

    name: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Outcome of a sample. `confident_wrong`: a finding with confidence High blames the wrong thing."""

    outcome: Outcome
    checks: tuple[Checked, ...]
    confident_wrong: bool = False


def judge(run: FinishedRun, expectation: Expectation, coverage_min: float = COVERAGE_MIN) -> Judgement:
    """Judges one run of a case.

    Args:
        run: the finished run.
        expectation: of the case.
        coverage_min: smallest coverage of a replay, from 0 to 1; below it the sample is Inconclusive.
    """
    if run.failure is not None or run.finding is None:
        why = run.failure or "The run ended without a finding."
        return Judgement(Outcome.INCONCLUSIVE, (Checked("finished", Outcome.INCONCLUSIVE, why),))
    if run.coverage is not None and run.coverage < coverage_min:
        why = (
            f"The recording answered {run.coverage:.0%} of the tool calls, and {coverage_min:.0%} are needed; record "
            "the case again, or lower coverageMin."
        )
        return Judgement(Outcome.INCONCLUSIVE, (Checked("coverage", Outcome.INCONCLUSIVE, why),))
    wrong = list(_blame_checks(run.finding, expectation))
    checks = [*wrong, *_fact_checks(run, run.finding, expectation), *_conduct_checks(run, run.finding, expectation)]
    failed = any(check.outcome is Outcome.FAILED for check in wrong)
    confident = expectation.no_confident_wrong and failed and run.finding.confidence is Confidence.HIGH
    if confident:
        text = "The finding is wrong and has confidence High."
        checks.append(Checked("confidentWrong", Outcome.FAILED, text))
    return Judgement(worst_outcome(checks), tuple(checks), confident)


def compile_fact(fact: Fact) -> Program:
    """Compiles the expression of a fact.

    Raises:
        CelSyntaxError: it is no CEL expression, or it names something unknown.
    """
    return compile_program(fact.expression, FACT_VARIABLES)


def invalid_facts(expectation: Expectation) -> list[tuple[int, str]]:
    """Returns the index of each fact that cannot be compiled, with a sentence."""
    found = []
    for index, fact in enumerate(expectation.facts):
        try:
            compile_fact(fact)
        except CelSyntaxError as error:
            found.append((index, str(error)))
    return found


def verdict_of(finding: Finding) -> ExpectedVerdict:
    """Returns the verdict of a finding; a cause that no supported claim explains is Inconclusive."""
    if finding.confidence is Confidence.INCONCLUSIVE:
        return "Inconclusive"
    if _NO_FAULT.search(finding.summary):
        return "NoFault"
    return "Cause" if finding.supported_claims else "Inconclusive"


def blamed(entity: str, claims: Sequence[Claim]) -> bool:
    """Returns whether a supported claim blames an entity.

    Args:
        entity: KIND/NAME or NAME; `*` at the end stands for the rest of a name.
        claims: claims of a finding; unsupported ones are ignored.
    """
    clauses = (clause for claim in claims if claim.supported for clause in _CLAUSE.split(claim.text))
    return any(_names(clause, entity) and not _RULED_OUT.search(clause) for clause in clauses)


def _names(text: str, entity: str) -> bool:
    """Returns whether a text names an entity as a whole word; where it writes KIND/NAME, the kind must agree."""
    kind = entity.rpartition("/")[0].lower()
    for match in _name_pattern(entity).finditer(text):
        prefix = match["prefix"] or ""
        other = prefix.lower() in _KINDS or prefix[:1].isupper()
        if not kind or not other or prefix.lower() in (kind, f"{kind}s"):
            return True
    return False


@lru_cache(maxsize=4096)
def _name_pattern(entity: str) -> re.Pattern[str]:
    name = entity.rpartition("/")[2]
    word = re.escape(name.removesuffix("*")) + ("[a-z0-9.-]*" if name.endswith("*") else "")
    return re.compile(rf"(?<![\w./-])(?:(?P<prefix>[\w-]+)/)*{word}(?![\w-]|\.\w)", re.IGNORECASE)


def _blame_checks(finding: Finding, expectation: Expectation) -> Iterator[Checked]:
    if expectation.verdict is not None:
        found = verdict_of(finding)
        text = f"The verdict is {found}, and {expectation.verdict} is expected."
        yield _check("verdict", found == expectation.verdict, text)
    for entity in expectation.root_cause.entities if expectation.root_cause is not None else ():
        if blamed(entity, finding.claims):
            yield Checked("rootCause", Outcome.PASSED, f"A supported claim blames {entity}.")
        else:
            named = _names("\n".join([finding.summary, *(c.text for c in finding.claims)]), entity)
            more = "; it is only named without support" if named else ""
            yield Checked("rootCause", Outcome.FAILED, f"No supported claim blames {entity}{more}.")
    for entity in expectation.distractors:
        if blamed(entity, finding.claims):
            yield Checked("distractors", Outcome.FAILED, f"A supported claim blames {entity}, which is no cause.")
        else:
            yield Checked("distractors", Outcome.PASSED, f"No supported claim blames {entity}.")


def _fact_checks(run: FinishedRun, finding: Finding, expectation: Expectation) -> Iterator[Checked]:
    if not expectation.facts:
        return
    values = {
        "claims": [
            {"text": claim.text, "tools": sorted({c.tool for c in claim.citations if c.supported and c.tool})}
            for claim in finding.claims
            if claim.supported
        ],
        "finding": {"summary": finding.summary, "confidence": finding.confidence.value},
        "calls": [{"tool": call.tool, "failed": call.failed} for call in run.calls],
        "steps": run.steps,
        "costUSD": None if run.cost_usd is None else float(run.cost_usd),
    }
    for fact in expectation.facts:
        said = fact.message or f"{fact.expression} is false."
        try:
            holds = compile_fact(fact).evaluate(values, CostBudget(PER_EXPRESSION, seconds=FACT_SECONDS))
        except CEL_ERRORS as error:
            text = f"{fact.expression} has no value for this run: {error}."
            yield Checked("facts", Outcome.FAILED, text)
            continue
        if isinstance(holds, bool):
            yield Checked(
                "facts", *((Outcome.PASSED, f"{fact.expression} is true.") if holds else (Outcome.FAILED, said))
            )
        else:
            yield Checked("facts", Outcome.FAILED, f"{fact.expression} is no condition; write a comparison.")


def _conduct_checks(run: FinishedRun, finding: Finding, expectation: Expectation) -> Iterator[Checked]:
    if expectation.tools is not None:
        called = {call.tool for call in run.calls}
        for tool in expectation.tools.required:
            yield _check("tools", tool in called, f"{tool} was {'called' if tool in called else 'not called'}.")
    if expectation.citations is not None:
        yield _precision_check(finding, expectation.citations.precision_min)
    limits = expectation.limits
    if limits is not None and limits.steps is not None:
        text = f"The run made {run.steps} model calls, at most {limits.steps} are allowed."
        yield _check("steps", run.steps <= limits.steps, text)
    if limits is not None and limits.cost_usd is not None:
        if run.cost_usd is None:
            text = "The cost of the run is not known completely; set rates on its LLMProviders."
            yield Checked("cost", Outcome.INCONCLUSIVE, text)
        else:
            text = f"The run cost {run.cost_usd:f} US dollars, at most {limits.cost_usd} are allowed."
            yield _check("cost", run.cost_usd <= Decimal(str(limits.cost_usd)), text)


def _precision_check(finding: Finding, least: float) -> Checked:
    """Checks the share of citations that hold. Claims without any citation have precision 0."""
    citations = [citation for claim in finding.claims for citation in claim.citations]
    if not finding.claims:
        return Checked("citations", Outcome.PASSED, "The finding makes no claim that needs a citation.")
    hold = sum(citation.supported for citation in citations)
    precision = hold / len(citations) if citations else 0.0
    text = f"{hold} of {len(citations)} citations hold ({precision:.0%}), at least {least:.0%} are needed."
    return _check("citations", precision >= least, text)


def _check(name: str, holds: bool, sentence: str) -> Checked:
    return Checked(name, Outcome.PASSED if holds else Outcome.FAILED, sentence)


def worst_outcome(checks: Sequence[Checked]) -> Outcome:
    """Returns the outcome of several checks together: Failed before Inconclusive before Passed."""
    outcomes = {check.outcome for check in checks}
    for outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE):
        if outcome in outcomes:
            return outcome
    return Outcome.PASSED
