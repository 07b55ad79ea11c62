"""Converts rows of Postgres to types of the record."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import asyncpg

from tarsy.record.approvals.acted import ExecutedCall, ModelWord, StageActed
from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.dispatch import HypothesisVerdict
from tarsy.record.finding import Evidence, Finding
from tarsy.record.first_attempt import FirstAttempt, HandedOnCall
from tarsy.record.history import BudgetExceeded, BudgetLimit, PastCall, RunHistory
from tarsy.record.ids import call_ref
from tarsy.record.integrity import read_marks
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.replay import ReplayReport, Rung
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.newer_words import known_or_text
from tarsy.record.run import (
    ALERT_DATA,
    DesiredState,
    ExecutionRecord,
    Failure,
    InteractionState,
    InvestigationRecord,
    LoopState,
    OtherRun,
    ParkedRun,
    ProviderChange,
    RunOutcome,
    StageKind,
    StageProgress,
    State,
    ToolCallRecord,
)
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.usage import Usage

_INCIDENT_OUTCOMES = frozenset(IncidentOutcome)


def failure_of_row(row: asyncpg.Record) -> Failure | None:
    """Returns the failure of a row, if it has one."""
    if row["failure_reason"] is None:
        return None
    return Failure(row["failure_reason"], row["failure_message"])


def budget_exceeded(row: asyncpg.Record) -> BudgetExceeded | None:
    """Returns the limit of its budget that a run reached, if it did."""
    if row["budget_limit"] is None:
        return None
    return BudgetExceeded(known_or_text(BudgetLimit, row["budget_limit"]), row["budget_message"])


def evidence(row: asyncpg.Record) -> Evidence:
    """Converts the row of a closed tool call."""
    return Evidence(
        row["id"],
        row["stage"],
        row["agent"],
        row["tool"],
        row["result"],
        row["arguments"],
        read_marks(row["integrity"]),
        made_up=row["rung"] == Rung.SIMULATED,
    )


def changes_for_git(found: Iterable[asyncpg.Record]) -> list[ChangeForGit]:
    """Converts the changes in the metadata of events."""
    return [ChangeForGit.model_validate(row["change"]) for row in found]


def told_result(row: asyncpg.Record) -> ToldResult:
    """Converts the row of a closed tool call with a result."""
    ref, marks = call_ref(row["idempotency_key"]), read_marks(row["integrity"])
    return ToldResult(row["id"], ref, row["tool"], row["arguments"], row["result"], marks, tuple(row["place"]))


def history(row: asyncpg.Record, calls: Iterable[asyncpg.Record]) -> RunHistory:
    """Converts a row and its tool calls to a history."""
    return RunHistory(
        seconds=row["seconds"],
        waited_seconds=row["waited_seconds"],
        tokens=row["tokens"],
        cost_usd=row["cost_usd"],
        tool_calls=row["tool_calls"],
        estimated=row["estimated"],
        model_seconds=row["model_seconds"],
        tool_seconds=row["tool_seconds"],
        exceeded=budget_exceeded(row),
        stages=frozenset(row["stages"] or ()),
        calls=tuple(PastCall(**call) for call in calls),
        action_calls=row["action_calls"],
    )


def message(row: asyncpg.Record) -> Message:
    """Converts a row to a message, exactly as it was stored."""
    return Message(
        role=Role(row["role"]),
        content=row["content"],
        tool_calls=tuple(ToolCall(**call) for call in row["tool_calls"] or ()),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        provider_state=row["provider_state"],
    )


def execution(
    identity: UUID,
    row: asyncpg.Record,
    messages: Sequence[asyncpg.Record],
    unanswered: Iterable[asyncpg.Record],
    superseded: Iterable[asyncpg.Record],
) -> ExecutionRecord:
    """Converts an execution with its conversation, in which parallel tool calls may have left a gap.

    Args:
        identity: id of the execution.
        row: of `begin_execution`.
        messages: in order.
        unanswered: tool calls without a tool message.
        superseded: contents that are sent instead of those of messages.
    """
    whole = next((i for i, found in enumerate(messages) if found["seq"] != i), len(messages))
    return ExecutionRecord(
        id=identity,
        state=State(row["state"]),
        started_at=row["started_at"],
        messages=tuple(message(found) for found in messages[:whole]),
        ahead={found["seq"]: message(found) for found in messages[whole:]},
        loop=LoopState.model_validate(row["loop"]),
        model_calls=row["model_calls"],
        unanswered=tuple(ToolCallRecord(**{**left, "state": InteractionState(left["state"])}) for left in unanswered),
        superseded={found["seq"]: found["content"] for found in superseded},
        result=row["result"],
        failure=failure_of_row(row),
        verdict=None if row["verdict"] is None else HypothesisVerdict.model_validate(row["verdict"]),
    )


def timeline_event(row: asyncpg.Record) -> TimelineEvent:
    """Converts a row to a timeline event with the names of its stage and agent."""
    return TimelineEvent(
        id=row["id"],
        type=known_or_text(EventType, row["type"]),
        status=known_or_text(EventStatus, row["status"]),
        content=row["content"],
        metadata=row["metadata"],
        stage=row["stage"],
        execution=row["execution"],
        model_call=row["model_call"],
        tool_call=row["tool_call"],
        seq=row["seq"],
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        stage_name=row["stage_name"],
        agent_name=row["agent_name"],
        parent_name=row["parent_name"],
    )


def first_attempt(calls: Iterable[asyncpg.Record], usage: asyncpg.Record) -> FirstAttempt:
    """Converts the tool calls of a first attempt, and the row with the tokens of its model calls."""
    handed_on = [
        HandedOnCall(
            server=row["server"],
            tool=row["tool"],
            arguments=row["arguments"],
            result=row["result"],
            marks=None if row["integrity"] is None else read_marks(row["integrity"]),
        )
        for row in calls
    ]
    return FirstAttempt(handed_on, usage["input_tokens"], usage["output_tokens"])


def stage_view(row: asyncpg.Record) -> StageProgress:
    """Converts a row to the progress of a stage."""
    return StageProgress(
        index=row["index"],
        name=row["name"],
        kind=known_or_text(StageKind, row["kind"]),
        state=State(row["state"]),
        agents=row["expected_agents"],
        agents_finished=row["agents_finished"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        failure=failure_of_row(row),
        acted=stage_acted(row, over=State(row["state"]).finished),
    )


def stage_acted(row: asyncpg.Record, *, over: bool) -> StageActed | None:
    """Returns what a stage of kind Action did; None for other stages.

    Args:
        row: with its kind, the word of its model, its actions, and whether its run is a replay.
        over: whether the stage has ended.
    """
    if row["kind"] != StageKind.ACTION:
        return None
    word = ModelWord.UNKNOWN if row["word"] is None else known_or_text(ModelWord, row["word"])
    return StageActed(
        word=word if isinstance(word, ModelWord) else ModelWord.UNKNOWN,
        calls=executed_calls(row["actions"]),
        replay=row["replay"],
        over=over,
    )


def executed_calls(found: Sequence[Mapping[str, str]] | None) -> tuple[ExecutedCall, ...]:
    """Converts calls that were sent after people approved them."""
    return tuple(ExecutedCall(call_ref(one["key"]), one["tool"], one["state"]) for one in found or ())


def _escalated(stages: Sequence[StageProgress]) -> int:
    """Counts the stages that nobody plans: second attempts, each with its synthesis, where there is one."""
    again = {stage.index for stage in stages if stage.kind is StageKind.ESCALATION}
    return len(again) + sum(stage.kind is StageKind.SYNTHESIS and stage.index - 1 in again for stage in stages)


def usage_of_row(row: asyncpg.Record) -> Usage:
    """Returns the usage of a row with token columns."""
    return Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        thinking_tokens=row["thinking_tokens"],
        cached_tokens=row["cached_tokens"],
        complete=row["usage_complete"],
    )


def investigation(
    row: asyncpg.Record,
    stages: Iterable[StageProgress],
    changes: Iterable[ProviderChange] = (),
    calibration_floor: float | None = None,
) -> InvestigationRecord:
    """Converts an investigation.

    Args:
        row: with the columns of `reads.sql`.
        stages: its stages.
        changes: its changes of provider, oldest first.
        calibration_floor: below which High is not relied on; None: not known.
    """
    state, shown = State(row["state"]), tuple(stages)
    return InvestigationRecord(
        id=row["id"],
        namespace=row["namespace"],
        name=row["name"],
        alert_type=row["alert_type"],
        chain=row["chain"],
        chain_namespace=row["chain_namespace"],
        plan_hash=row["plan_hash"],
        stages_planned=row["stages_planned"] + _escalated(shown),
        state=state,
        desired_state=DesiredState(row["desired_state"]),
        attempt=row["attempt"],
        revision=row["revision"],
        published_revision=row["published_revision"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline=row["deadline"],
        usage=usage_of_row(row),
        model_calls=row["model_calls"],
        interrupted_model_calls=row["interrupted_model_calls"],
        tool_calls=row["tool_calls"],
        stages=shown,
        outcome=_outcome(row, state) if state.finished else None,
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        budget_exceeded=budget_exceeded(row),
        provider_changes=tuple(changes),
        parent=row["parent"],
        published_digest=row["published_digest"],
        seal=None if row["seal"] is None else row["seal"].hex(),
        replay=row["replay"],
        parked=_parked(row) if state is State.PARKED else None,
        waited_seconds=row["waited_seconds"],
        held_for=row["held_for"] if state is State.PENDING else None,
        incident_outcome=incident_outcome(row["incident_outcome"]),
        high_verdicts=_high_verdicts(row["high_verdicts"], calibration_floor),
        retry_of=_other_run(row["retry_of"]),
        retried_by=_other_run(row["retried_by"]),
        evidence_missing=tuple(
            f"{name}: {reason}" for name, reason in sorted(row["evidence_missing"].items()) if name != ALERT_DATA
        ),
        alert_cut=row["evidence_missing"].get(ALERT_DATA),
    )


def incident_outcome(stored: str | None) -> IncidentOutcome | None:
    """Returns a stored outcome; None: there is none, or a newer version wrote another word."""
    return IncidentOutcome(stored) if stored in _INCIDENT_OUTCOMES else None


def _other_run(stored: Sequence[str] | None) -> OtherRun | None:
    return None if stored is None else OtherRun(UUID(stored[0]), stored[1])


def _high_verdicts(counted: Sequence[int] | None, floor: float | None) -> HighVerdicts | None:
    return None if counted is None or floor is None else HighVerdicts(counted[0], counted[1], floor)


def _parked(row: asyncpg.Record) -> ParkedRun:
    return ParkedRun(row["parked_for"], row["parked_at"], row["wake_at"], row["parked_note"] or "")


def _outcome(row: asyncpg.Record, state: State) -> RunOutcome:
    finding = row["finding"]
    return RunOutcome(
        state=state,
        final_analysis=row["final_analysis"],
        finding=None if finding is None else Finding.model_validate(finding),
        executive_summary=row["executive_summary"],
        executive_summary_error=row["executive_summary_error"],
        failure=failure_of_row(row),
        replay=None if row["replay_report"] is None else ReplayReport.model_validate(row["replay_report"]),
    )
