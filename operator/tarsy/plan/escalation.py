"""Checks and evaluates `Chain.spec.stages[].escalate.when`: whether a finding asks for a second attempt of its stage.

Decision: our CEL has no types before it is evaluated, so a chain is checked by evaluating the expression on sample
findings, of each confidence and outcome, with and without claims and flaws. An operator on a wrong type, an unknown
field and a value that is neither true nor false are found this way when the chain is applied.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from tarsy.cel import CelSyntaxError, compile_program
from tarsy.plan.approval_expressions import NotEvaluated, evaluate
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.record.finding import Confidence, Finding
from tarsy.record.integrity import Integrity
from tarsy.record.reading.flaws import Flaw, flaws_of_finding
from tarsy.record.run import State
from tarsy.resources.v1alpha1.chain import Chain

VARIABLES: Final = ("confidence", "claims", "outcome", "flaws")
OUTCOMES: Final[Mapping[State, str]] = {
    State.COMPLETED: "Completed",
    State.FAILED: "Failed",
    State.TIMED_OUT: "TimedOut",
}
"""Outcomes of a first attempt that may lead to a second one."""

_FLAWS = (Flaw.UNSUPPORTED_CLAIMS, Flaw.UNGROUNDED_CLAIMS, Flaw.CONTRADICTED_CLAIMS, Flaw.UNSTRUCTURED)
_MISTAKES = ("no such overload", "no such key", "no such field", "no such attribute")
"""Beginnings of errors that no finding can be blamed for; others, such as an index out of range, depend on it."""


def asks_for_escalation(when: str, state: State, finding: Finding | None) -> bool:
    """Whether the first attempt of a stage is to be followed by a second one.

    Args:
        when: the expression.
        state: in which the first attempt ended; only those of `OUTCOMES` are asked about.
        finding: of the first attempt, checked; None: it has none.

    Raises:
        NotEvaluated: the expression has no value that is true or false.
    """
    value = evaluate(when, variables_of(state, finding))
    if not isinstance(value, bool):
        raise NotEvaluated("its value is not a boolean")
    return value


def variables_of(state: State, finding: Finding | None) -> Mapping[str, Any]:
    """Returns the variables of the expression, by name; arguments are those of `asks_for_escalation`."""
    claims = () if finding is None else finding.claims
    return {
        "confidence": (Confidence.INCONCLUSIVE if finding is None else finding.confidence).value,
        "claims": [
            {
                "text": claim.text,
                "supported": claim.supported,
                "grounded": claim.grounded,
                "contradicted": claim.contradicted,
                "citations": len(claim.citations),
                "integrity": _integrity(finding, index),
            }
            for index, claim in enumerate(claims)
        ],
        "outcome": OUTCOMES[state],
        "flaws": [] if finding is None else [flaw.value for flaw in flaws_of_finding(finding)],
    }


def escalation_errors(chain: Chain) -> list[PlanError]:
    """Returns what is wrong with the expressions of a chain, by field."""
    at = FieldPath.of(chain) / "stages"
    return [
        (at[index] / "escalate" / "when").error(
            f"is not a CEL expression over {', '.join(VARIABLES)} that is true or false: {problem}"
        )
        for index, stage in enumerate(chain.spec.stages)
        if stage.escalate is not None and (problem := _problem(stage.escalate.when)) is not None
    ]


def _integrity(finding: Finding | None, index: int) -> str:
    """The strongest class of the evidence of one claim; empty without any."""
    if finding is None:
        return ""
    found = finding.model_copy(update={"claims": (finding.claims[index],)}).integrity
    return "" if found is None else found.value


def _problem(when: str) -> str | None:
    try:
        compile_program(when, VARIABLES)
    except CelSyntaxError as error:
        return str(error)
    failures: list[str | None] = []
    for sample in _samples():
        failure = None
        try:
            value = evaluate(when, sample)
            if not isinstance(value, bool):
                failure = f"for a finding of confidence {sample['confidence']} its value is {_kind(value)}; compare it"
                return failure
        except NotEvaluated as error:
            failure = str(error)
            if failure.startswith(_MISTAKES):
                return failure
        failures.append(failure)
    return None if None in failures else failures[0]


def _kind(value: object) -> str:
    kinds = {int: "a number", float: "a number", str: "a text", list: "a list", dict: "a map"}
    return kinds.get(type(value), "of another type")


def _samples() -> Iterator[Mapping[str, Any]]:
    one = {"text": "The disk is full.", "citations": 1, "grounded": True, "contradicted": False}
    held = {**one, "supported": True, "integrity": Integrity.K.value}
    bare = {**one, "supported": False, "grounded": False, "citations": 0, "integrity": ""}
    claims: Sequence[Sequence[Mapping[str, Any]]] = ((), (held,), (held, bare, bare))
    flaws: Sequence[Sequence[str]] = ((), tuple(flaw.value for flaw in _FLAWS))
    for confidence, told, outcome, found in product(Confidence, claims, OUTCOMES.values(), flaws):
        yield {"confidence": confidence.value, "claims": list(told), "outcome": outcome, "flaws": list(found)}
