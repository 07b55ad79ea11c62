"""Projects the record of a run onto the status of its Investigation and onto Events; pure functions.

The status is a best-effort picture of the record at one revision: of bounded size, and rebuilt as a whole each time.
Only the transition times of its conditions, and the severity of an alert that is gone, come from the status before.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from tarsy.record.approvals.acted import ModelWord
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.shown_confidence import doubted_confidence
from tarsy.record.reading.conditions import conditions as conditions_of
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord, StageKind, StageProgress, State
from tarsy.resources.meta import set_condition
from tarsy.resources.v1alpha1 import Investigation, InvestigationStatus
from tarsy.resources.v1alpha1.alert import Severity
from tarsy.resources.v1alpha1.common import ConditionType, ObjectRef
from tarsy.resources.v1alpha1.investigation_status import (
    MAX_CHANGES_SHOWN,
    MAX_STAGES,
    FindingSummary,
    LastError,
    ManagedObjectSummary,
    ParkedSummary,
    RecordRef,
    ReplaySummary,
    RungSummary,
    StagePhase,
    StageSummary,
    UsageSummary,
)

_PHASES: dict[State, StagePhase] = {
    State.PENDING: "Pending",
    State.RUNNING: "Running",
    State.COMPLETED: "Succeeded",
    State.FAILED: "Failed",
    State.CANCELLED: "Cancelled",
    State.TIMED_OUT: "TimedOut",
}
_KINDS: Mapping[str, Literal["Investigation", "Synthesis", "ExecutiveSummary", "Action"]] = {
    StageKind.INVESTIGATION: "Investigation",
    StageKind.ESCALATION: "Investigation",
    StageKind.SYNTHESIS: "Synthesis",
    StageKind.EXECUTIVE_SUMMARY: "ExecutiveSummary",
    StageKind.ACTION: "Action",
}
_WORDS: dict[ModelWord, Literal["Yes", "No", "Unknown"]] = {
    ModelWord.YES: "Yes",
    ModelWord.NO: "No",
    ModelWord.UNKNOWN: "Unknown",
}
_CONFIDENCE: dict[Confidence, Literal["High", "Medium", "Low", "Inconclusive"]] = {
    Confidence.HIGH: "High",
    Confidence.MEDIUM: "Medium",
    Confidence.LOW: "Low",
    Confidence.INCONCLUSIVE: "Inconclusive",
}


def project(
    record: InvestigationRecord, investigation: Investigation, now: datetime, severity: Severity | None = None
) -> InvestigationStatus:
    """Makes the status of an accepted investigation.

    Args:
        record: the investigation's record.
        investigation: the object as it is, for its generation and the transition times of its conditions.
        now: the time of a change, with a time zone.
        severity: the alert's, where it is known; else it stays as it was told.
    """
    old, generation = investigation.status, investigation.metadata.generation
    conditions = old.conditions
    for condition in conditions_of(record):
        conditions = set_condition(conditions, condition.model_copy(update={"observed_generation": generation}), now)
    running = next((s for s in reversed(record.stages) if s.state is State.RUNNING), None)
    return InvestigationStatus(
        observed_generation=generation,
        conditions=conditions,
        phase=phase(record),
        parked=_parked(record),
        waited_seconds=round(record.waited_seconds) or None,
        alert_type=record.alert_type,
        severity=severity or old.severity,
        chain=record.chain,
        chain_namespace=record.chain_namespace,
        plan_hash=record.plan_hash,
        attempt=record.attempt,
        progress=progress(record),
        current_stage=_name(running) if running else None,
        stages=tuple(_stage(stage) for stage in record.stages[-MAX_STAGES:]),
        usage=project_usage(record),
        finding=_finding(record),
        outcome=record.incident_outcome.value if record.incident_outcome else None,
        replay=_replay(record),
        retried_by=_retried_by(record),
        last_error=last_error(record),
        queued_at=record.accepted_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        duration=_duration(record),
        record=RecordRef(id=str(record.id), seal=record.seal),
        record_revision=record.revision,
    )


def _retried_by(record: InvestigationRecord) -> ObjectRef | None:
    rerun = record.retried_by
    return None if rerun is None else ObjectRef(name=rerun.name, uid=str(rerun.id))


def project_usage(record: InvestigationRecord) -> UsageSummary:
    """Makes the usage of a run so far."""
    return UsageSummary(
        model_calls=record.model_calls,
        tool_calls=record.tool_calls,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        thinking_tokens=record.usage.thinking_tokens,
        total_tokens=record.usage.total_tokens,
        cost_usd=_cost(record),
    )


def progress(record: InvestigationRecord) -> str:
    """Counts the finished stages of all planned ones, such as 2/4, syntheses and executive summary included."""
    return f"{sum(stage.state.finished for stage in record.stages)}/{record.stages_planned}"


def news(
    record: InvestigationRecord, old: InvestigationStatus
) -> Iterator[tuple[Literal["Normal", "Warning"], str, str]]:
    """Lists what happened since `old` as Events: type, reason, message; stages are in the status alone."""
    if record.parked is not None and (old.parked is None or old.attempt != record.attempt):
        yield "Normal", "Parked", record.parked.sentence
    if round(record.waited_seconds) > (old.waited_seconds or 0) or (old.parked is not None and record.parked is None):
        if not record.state.finished:
            yield "Normal", "Woken", f"The run continues; it has waited for {round(record.waited_seconds)} s in all."
    elif record.attempt > 1 and record.attempt != (old.attempt or 0) and not record.state.finished:
        yield "Warning", "Resumed", f"The run was resumed after its worker was lost (attempt {record.attempt})."
    for change in record.provider_changes:
        if change.revision > (old.record_revision or 0):
            yield "Warning", "ProviderFallback", change.message
    exceeded = record.budget_exceeded
    if exceeded and not any(c.type == ConditionType.BUDGET_EXCEEDED and c.status == "True" for c in old.conditions):
        yield "Warning", "BudgetExceeded", exceeded.message
    if record.state.finished and old.phase != phase(record):
        if record.state is State.COMPLETED:
            finding = record.outcome.finding if record.outcome else None
            yield "Normal", "Succeeded", finding.summary if finding else "The investigation succeeded."
        else:
            failure = record.outcome.failure if record.outcome else None
            yield (
                "Warning",
                phase(record),
                failure.message if failure else f"The investigation has ended: {phase(record)}.",
            )


def _parked(record: InvestigationRecord) -> ParkedSummary | None:
    parked = record.parked
    if parked is None:
        return None
    return ParkedSummary(reason=parked.reason, since=parked.since, until=parked.until, message=parked.sentence)


def _cost(record: InvestigationRecord) -> str | None:
    """Formats US dollars with four decimals; a + marks a cost that is not fully known."""
    if record.cost_usd is None:
        return None
    return f"{record.cost_usd:.4f}{'' if record.cost_complete else '+'}"


def _name(stage: StageProgress) -> str:
    """Truncates a stage's name to the length that the API accepts."""
    return re.sub(r"[^a-z0-9-]", "-", stage.name.lower())[:63].strip("-") or f"stage-{stage.index}"


def _stage(stage: StageProgress) -> StageSummary:
    acted = stage.acted
    contradiction = acted.contradiction if acted is not None else None
    return StageSummary(
        name=_name(stage),
        kind=_KINDS.get(stage.kind, "Investigation"),
        phase=_PHASES[stage.state],
        agents=stage.agents,
        started_at=stage.started_at,
        finished_at=stage.finished_at,
        message=stage.failure.message if stage.failure else contradiction,
        acted=None if acted is None else "Yes" if acted.acted else "No",
        model_says_acted=_WORDS.get(acted.word) if acted is not None else None,
    )


def _finding(record: InvestigationRecord) -> FindingSummary | None:
    finding = record.outcome.finding if record.outcome else None
    if finding is None:
        return None
    return FindingSummary(
        summary=finding.summary,
        confidence=_CONFIDENCE[finding.confidence],
        shown_confidence=doubted_confidence(finding.confidence, record.high_verdicts),
        claims=len(finding.claims) or None,
        supported_claims=finding.supported_claims if finding.claims else None,
        integrity=finding.integrity.value if finding.integrity is not None else None,
        change_in_git=_change_in_git(finding),
    )


def _change_in_git(finding: Finding) -> tuple[ManagedObjectSummary, ...] | None:
    """Names the objects without the change, which shows more of them than readers of the status may read."""
    objects = dict.fromkeys(one for change in finding.changes_for_git for one in change.objects)
    found = [ManagedObjectSummary(object=one.object, managed_by=one.managed_by) for one in objects]
    return tuple(found[:MAX_CHANGES_SHOWN]) or None


def _replay(record: InvestigationRecord) -> ReplaySummary | None:
    report = record.outcome.replay if record.outcome else None
    if report is None:
        return None
    return ReplaySummary(
        coverage=f"{report.coverage:.2f}",
        rungs=RungSummary.model_validate(report.rungs),
        unused_calls=report.unused,
        divergence=report.divergence.sentence if report.divergence else "",
    )


def last_error(record: InvestigationRecord) -> LastError | None:
    """Returns the last error of a run."""
    outcome = record.outcome
    if outcome and outcome.failure:
        return LastError(reason=outcome.failure.reason, message=outcome.failure.message)
    if outcome and outcome.executive_summary_error:
        return LastError(reason="ExecutiveSummaryFailed", message=outcome.executive_summary_error)
    failed = next((s.failure for s in reversed(record.stages) if s.failure), None)
    return LastError(reason=failed.reason, message=failed.message) if failed else None


def _duration(record: InvestigationRecord) -> str | None:
    if record.started_at is None or record.finished_at is None:
        return None
    seconds = round((record.finished_at - record.started_at).total_seconds())
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"
