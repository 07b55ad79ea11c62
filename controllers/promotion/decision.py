"""Decides which revision of a Chain serves, as a pure function.

The inputs are the policy, the revision of the current objects, the stored revisions, the evaluations of the current
revision, and the override of a person. The result is the revision to serve, what to store about the current one, the
condition `Promoted`, and whether an evaluation is missing.

Decision: whatever is missing or in doubt keeps the revision that serves. A Regressed evaluation is not outvoted by
another one of the same revision and suite, or else an evaluation could be repeated until it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tarsy.store.runs.revisions import KnownRevision, RevisionState

SHORT = 16
"""Digits of a digest that name a revision in status and spec."""

_NAMED_CASES = 10

Verdict = Literal["Passed", "Regressed", "Insufficient", "Running", "Blocked"]
_STRONGEST: tuple[Verdict, ...] = ("Regressed", "Passed", "Running", "Blocked", "Insufficient")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Holds the state of the evaluation of one revision by one suite."""

    verdict: Verdict
    run: str
    """Name of the EvalRun."""
    detail: str = ""
    """Sentence of the EvalRun about its verdict."""
    cases: tuple[str, ...] = ()
    """Cases that failed."""
    own: bool = False
    """Whether the operator created the EvalRun."""


@dataclass(frozen=True, slots=True)
class Override:
    """The override of a person: the revision that it names, and why it does not count (None: it does)."""

    revision: str
    by: str
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """Holds the inputs of a decision."""

    policy: Literal["Immediate", "WhenPassed"]
    suite: str
    """Name of the EvalSuite."""
    current: str | None
    """Digest of the revision of the current objects; None: no plan can be made from them."""
    known: Sequence[KnownRevision] = ()
    evaluations: Sequence[Evaluation] = ()
    """Those of the current revision by the suite as it is now."""
    suite_problem: tuple[str, str] | None = None
    """Reason and sentence if the suite cannot evaluate."""
    override: Override | None = None
    plan_problem: str = ""
    """Why no plan can be made."""
    compared: bool = True
    """Whether results of the serving revision are stored, which a candidate is compared with."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a decision."""

    serving: str | None
    """Digest of the revision to serve; None: the newest, as no revision is stored."""
    promoted: bool
    reason: str
    message: str
    state: RevisionState | None = None
    """State of the current revision; None: nothing is stored about it."""
    eval_run: str | None = None
    evaluate: bool = False
    """Whether an EvalRun of the current revision must be created."""


def decide(found: Situation) -> Decision:
    """Decides which revision serves."""
    serving = next((one for one in found.known if one.state is RevisionState.SERVING), None)
    if found.current is None:
        return _without_plan(found, serving)
    if serving is not None and serving.digest == found.current:
        return _unchanged(found, serving)
    if found.policy == "Immediate":
        return _serve(found, found.current, reason="Immediate")
    if serving is None:
        return _serve(found, found.current, reason="FirstRevision")
    return _candidate(found, found.current, serving)


def _candidate(found: Situation, current: str, serving: KnownRevision) -> Decision:
    override = found.override
    if override is not None and override.refusal is None and override.revision == short(current):
        return _serve(found, current, reason="Overridden", user=override.by)
    evaluation = strongest(found.evaluations)
    if evaluation is not None and evaluation.verdict == "Passed":
        return _serve(found, current, reason="Passed", eval_run=evaluation.run)
    before = next((one for one in found.known if one.digest == current), None)
    if evaluation is not None and evaluation.verdict == "Regressed":
        reason, said = "Regressed", f"EvalRun {evaluation.run} regressed{_cases(evaluation)}. {evaluation.detail}"
        state = RevisionState.REJECTED
    elif before is not None and before.state is RevisionState.RETIRED:
        return _serve(found, current, reason="ServedBefore", eval_run=before.eval_run)
    else:
        evaluation = None if _needs_own(found, evaluation) else evaluation
        reason, said = _undecided(found, evaluation)
        state = RevisionState.CANDIDATE
    message = f"New runs use revision {short(serving.digest)}. {said.strip()} {_remedy(found, current, reason)}"
    return Decision(
        serving=serving.digest,
        promoted=False,
        reason=reason,
        message=message.strip(),
        state=state,
        eval_run=evaluation.run if evaluation is not None else None,
        evaluate=_needs_own(found, evaluation),
    )


def _needs_own(found: Situation, decides: Evaluation | None) -> bool:
    """Whether an EvalRun of the operator is missing: one of a user's that decides nothing replaces none."""
    if found.suite_problem is not None or any(one.own for one in found.evaluations):
        return False
    return decides is None or decides.verdict in ("Insufficient", "Blocked")


def _undecided(found: Situation, evaluation: Evaluation | None) -> tuple[str, str]:
    if evaluation is None:
        said = f"Revision {short(found.current or '')} is to be evaluated.{_uncompared(found)}"
        return found.suite_problem or ("Evaluating", said)
    match evaluation.verdict:
        case "Insufficient":
            return "Insufficient", f"EvalRun {evaluation.run} is not sufficient to decide. {evaluation.detail}"
        case "Blocked":
            return "EvaluationBlocked", f"EvalRun {evaluation.run} cannot start. {evaluation.detail}"
        case _:
            said = f"EvalRun {evaluation.run} evaluates revision {short(found.current or '')}.{_uncompared(found)}"
            return "Evaluating", said


def _uncompared(found: Situation) -> str:
    return "" if found.compared else " No results of the serving revision are stored, so only the gate's floors decide."


def _remedy(found: Situation, current: str, reason: str) -> str:
    by_hand = f"or set spec.promotion.override.revision to {short(current)} (needs the verb promote)"
    said = {
        "Evaluating": "",
        "Regressed": f"Fix the failed cases, {by_hand}.",
        "Insufficient": f"Add cases or samples to EvalSuite {found.suite}, {by_hand}.",
        "EvaluationBlocked": "Correct this; the EvalRun is retried automatically, and recreated if you delete it, "
        f"from EvalSuite {found.suite}, {by_hand}.",
    }.get(reason, f"Correct EvalSuite {found.suite} or its EvalRun, {by_hand}.")
    ignored = _ignored(found.override, current)
    return " ".join(part for part in (said, ignored) if part)


def _ignored(override: Override | None, current: str) -> str:
    if override is None:
        return ""
    if override.refusal is not None:
        return f"spec.promotion.override does not count: {override.refusal}."
    if override.revision != short(current):
        return f"spec.promotion.override does not count: it names revision {override.revision}."
    return ""


def _without_plan(found: Situation, serving: KnownRevision | None) -> Decision:
    if serving is None:
        return Decision(
            None, promoted=False, reason="PlanInvalid", message=f"No revision can serve. {found.plan_problem}"
        )
    message = f"New runs use revision {short(serving.digest)}. The current objects do not resolve to a plan."
    return Decision(
        serving.digest, promoted=False, reason="PlanInvalid", message=f"{message} {found.plan_problem}".strip()
    )


def _unchanged(found: Situation, serving: KnownRevision) -> Decision:
    user = (serving.author or {}).get("username") or "A user"
    message = _serves(found, serving.digest, serving.reason, serving.eval_run, user)
    return Decision(serving.digest, promoted=True, reason=serving.reason, message=message)


def _serve(found: Situation, digest: str, *, reason: str, eval_run: str | None = None, user: str = "") -> Decision:
    return Decision(
        digest,
        promoted=True,
        reason=reason,
        message=_serves(found, digest, reason, eval_run, user),
        state=RevisionState.SERVING,
        eval_run=eval_run,
    )


def _serves(found: Situation, digest: str, reason: str, eval_run: str | None, user: str) -> str:
    """Says why a revision serves: the same when it begins to and later, so that the condition is written once."""
    then = f"; the next one must pass EvalSuite {found.suite}" if found.policy == "WhenPassed" else ""
    said = {
        "FirstRevision": f"It was the first revision of the Chain, and serves without an evaluation{then}.",
        "Overridden": f"{user} permitted it to serve without a passed evaluation (spec.promotion.override).",
        "Immediate": "It served when it was applied, without an evaluation.",
        "ServedBefore": "It had served before.",
        "Passed": f"EvalRun {eval_run} passed.",
    }.get(reason, "")
    return f"The newest revision {short(digest)} serves. {said}".strip()


def strongest(evaluations: Iterable[Evaluation]) -> Evaluation | None:
    """Returns the evaluation that decides; None without any."""
    return min(evaluations, key=lambda one: (_STRONGEST.index(one.verdict), one.run), default=None)


def short(digest: str) -> str:
    """Returns the name of a revision in status and spec."""
    return digest[:SHORT]


def _cases(evaluation: Evaluation) -> str:
    if not evaluation.cases:
        return ""
    more = f" and {len(evaluation.cases) - _NAMED_CASES} more" if len(evaluation.cases) > _NAMED_CASES else ""
    return f": {', '.join(evaluation.cases[:_NAMED_CASES])}{more}"
