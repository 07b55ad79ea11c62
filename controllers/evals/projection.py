"""Projects the results of an EvalRun onto its status.

Watches nothing, decides nothing, writes nothing: a status is a pure function of the stored results.
"""

from collections.abc import Mapping
from datetime import datetime

from tarsy.controllers.evals.judging import agreement_of
from tarsy.evals.agreement import JudgeAgreement
from tarsy.evals.cases import EvalTerms
from tarsy.evals.expectations import Outcome
from tarsy.evals.suite_verdict import run_verdict
from tarsy.evals.verdict import SuiteVerdict
from tarsy.resources.meta import Condition, Conditions, ConditionStatus, set_condition
from tarsy.resources.v1alpha1 import EvalRun, EvalRunStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.eval_run import (
    MAX_NAMED_CASES,
    EvalPhase,
    JudgeStatus,
    MeasuredCandidate,
    OutcomeCounts,
)
from tarsy.store.judging.eval_rows import CaseTotals, EvalRunRecord, EvalUsage
from tarsy.store.judging.judge_calls import JudgeUsage

CANCELLED = "Cancelled"
"""Verdict of a run that was cancelled."""

_PHASES: Mapping[str, EvalPhase] = {
    "Passed": "Passed",
    "Regressed": "Regressed",
    "Insufficient": "Insufficient",
    CANCELLED: "Cancelled",
}


def waiting(run: EvalRun, reason: str, message: str, now: datetime) -> EvalRunStatus:
    """Makes the status of a run that has not begun.

    Args:
        run: the object.
        reason: why it waits, for the conditions.
        message: the same as a sentence, with the remedy.
        now: the current time.
    """
    conditions = _conditions(run, ("False", reason, message), ("Unknown", reason, "The run has not begun."), now)
    return EvalRunStatus(
        observed_generation=run.metadata.generation, conditions=conditions, phase="Pending", summary=message
    )


def ended_before(run: EvalRun, reason: str, message: str, now: datetime) -> EvalRunStatus:
    """Makes the status of a run that never begins.

    Args:
        run: the object.
        reason: why it does not, for the conditions.
        message: the same as a sentence.
        now: the current time.
    """
    conditions = _conditions(run, ("True", reason, message), ("False", reason, message), now)
    return EvalRunStatus(
        observed_generation=run.metadata.generation,
        conditions=conditions,
        phase="Cancelled",
        summary=message,
        finished_at=run.status.finished_at or now,
    )


def project(
    run: EvalRun,
    record: EvalRunRecord,
    terms: EvalTerms,
    totals: list[CaseTotals],
    usage: EvalUsage,
    judged: JudgeUsage | None,
    now: datetime,
) -> EvalRunStatus:
    """Makes the status of a run that has begun.

    Args:
        run: the object.
        record: the run as stored.
        terms: the frozen terms.
        totals: its samples by case.
        usage: of its samples.
        judged: usage of its judge; None: it has none.
        now: the current time.
    """
    agreement = agreement_of(record)
    found = run_verdict(terms, totals, agreement)
    asked = terms.samples * len(terms.cases)
    samples = OutcomeCounts(
        total=asked,
        passed=sum(one.passed for one in totals),
        failed=sum(one.failed for one in totals),
        inconclusive=sum(one.inconclusive for one in totals),
    )
    ended = samples.passed + samples.failed + samples.inconclusive
    done, passed = _states(record, ended, asked)
    cost = None if usage.cost_usd is None else f"{usage.cost_usd:f}{'' if usage.cost_complete else '+'}"
    failed = [row.name for row in found.rows if row.outcome is Outcome.FAILED]
    over = record.verdict is not None
    return EvalRunStatus(
        observed_generation=run.metadata.generation,
        conditions=_conditions(run, done, passed, now),
        phase=_PHASES.get(record.verdict or "", "Running"),
        candidate=MeasuredCandidate(
            chain=record.chain, chain_namespace=record.chain_namespace, revision=record.revision
        ),
        suite_digest=record.suite_digest,
        progress=f"{ended}/{asked}",
        samples=samples,
        cases=_cases(found) if over else None,
        pass_rate=_rate(found) if over else None,
        failed_cases=tuple(failed[:MAX_NAMED_CASES]) if over else (),
        regressed_cases=found.regressed[:MAX_NAMED_CASES] if over else (),
        total_tokens=usage.tokens,
        cost_usd=cost,
        judge=None if judged is None else _judge(agreement, judged),
        summary=record.summary,
        power=found.power if over else None,
        started_at=record.started_at,
        finished_at=record.finished_at,
    )


def _judge(agreement: JudgeAgreement | None, usage: JudgeUsage) -> JudgeStatus:
    cost = None if usage.cost_usd is None else f"{usage.cost_usd:f}{'' if usage.cost_complete else '+'}"
    known = JudgeStatus(calls=usage.calls, failed_calls=usage.failed, total_tokens=usage.tokens, cost_usd=cost)
    if agreement is None:
        return known
    return known.model_copy(
        update={
            "role": agreement.role,
            "agreement": None if agreement.kappa is None else f"{agreement.kappa:.2f}",
            "answers": agreement.answers,
            "message": agreement.sentence[:512],
        }
    )


def _states(
    record: EvalRunRecord, ended: int, asked: int
) -> tuple[tuple[ConditionStatus, str, str], tuple[ConditionStatus, str, str]]:
    """Returns status, reason and message of Complete, then of Passed."""
    if record.verdict is None:
        text = f"{ended} of {asked} samples have ended."
        return ("False", "Running", text), ("Unknown", "Running", text)
    said = record.summary or ""
    ok: ConditionStatus = "True" if record.verdict == "Passed" else "False"
    return ("True", record.verdict, said), (ok, record.verdict, said)


def _cases(found: SuiteVerdict) -> OutcomeCounts:
    def count(outcome: Outcome) -> int:
        return sum(row.outcome is outcome for row in found.rows)

    return OutcomeCounts(
        total=len(found.rows),
        passed=count(Outcome.PASSED),
        failed=count(Outcome.FAILED),
        inconclusive=count(Outcome.INCONCLUSIVE),
        flaky=len(found.flaky),
    )


def _rate(found: SuiteVerdict) -> str | None:
    if found.pass_rate is None:
        return None
    return f"{found.pass_rate:.0%} ({found.interval.low:.0%}-{found.interval.high:.0%})"


def _conditions(
    run: EvalRun,
    complete: tuple[ConditionStatus, str, str],
    passed: tuple[ConditionStatus, str, str],
    now: datetime,
) -> Conditions:
    known = run.status.conditions
    for kind, (status, reason, message) in ((ConditionType.COMPLETE, complete), (ConditionType.PASSED, passed)):
        item = Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            observed_generation=run.metadata.generation,
        )
        known = set_condition(known, item, now)
    return known
