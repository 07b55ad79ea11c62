"""Converts rows of Postgres to types of the trace."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from tarsy.record.dispatch import HypothesisVerdict
from tarsy.record.ids import call_ref
from tarsy.record.judging.replay import Rung
from tarsy.record.messages import Access
from tarsy.record.newer_words import known_or_text
from tarsy.record.reading.trace import AgentDetail, CallOwner, ModelCallTrace, QuestionTrace, StageDetail, ToolCallTrace
from tarsy.record.run import DesiredState, Failure, InteractionState, ModelCallKind, StageKind, State
from tarsy.record.usage import Usage
from tarsy.store import rows


def _usage(row: asyncpg.Record, complete: bool = True) -> Usage:
    return Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        thinking_tokens=row["thinking_tokens"] or 0,
        cached_tokens=row["cached_tokens"] or 0,
        complete=complete,
    )


def question_trace(row: asyncpg.Record) -> QuestionTrace:
    """Converts a row to a question with its outcome."""
    return QuestionTrace(
        id=row["id"],
        name=row["name"],
        place=row["place"],
        question=row["question"],
        author=row["author"],
        via=row["via"],
        state=State(row["state"]),
        desired_state=DesiredState(row["desired_state"]),
        revision=row["revision"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        answer=row["answer"],
        usage=_usage(row, row["usage_complete"]),
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        failure=rows.failure_of_row(row),
    )


def stage_trace(agents: Sequence[asyncpg.Record]) -> StageDetail:
    """Converts the rows of the agents of a stage to the stage."""
    first = agents[0]
    reason = first["stage_failure_reason"]
    return StageDetail(
        id=first["stage"],
        index=first["stage_index"],
        name=first["stage_name"],
        kind=known_or_text(StageKind, first["kind"]),
        state=State(first["stage_state"]),
        started_at=first["stage_started_at"],
        finished_at=first["stage_finished_at"],
        expected_agents=first["expected_agents"],
        parallel=first["parallel"],
        success_policy=first["success_policy"],
        failure=None if reason is None else Failure(reason, first["stage_failure_message"]),
        acted=rows.stage_acted(first, over=State(first["stage_state"]).finished),
        agents=[_agent(row) for row in agents if row["id"] is not None],
    )


def _agent(row: asyncpg.Record) -> AgentDetail:
    return AgentDetail(
        id=row["id"],
        index=row["index"],
        agent=row["agent"],
        display_name=row["display_name"],
        strategy=row["strategy"],
        provider=row["provider"],
        model=row["model"],
        state=State(row["state"]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        failure=rows.failure_of_row(row),
        model_calls=row["model_calls"],
        tool_calls=row["tool_calls"],
        usage=_usage(row, row["usage_complete"]),
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        parent=row["parent"],
        dispatched_by=None if row["dispatched_by"] is None else call_ref(str(row["dispatched_by"])),
        task=row["task"],
        hypothesis=row["hypothesis"],
        verdict=None if row["verdict"] is None else HypothesisVerdict.model_validate(row["verdict"]),
        iterations=row["iterations"],
    )


def _timed(row: asyncpg.Record) -> dict[str, Any]:
    return {
        "id": row["id"],
        "execution": row["execution"],
        "state": known_or_text(InteractionState, row["state"]),
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "duration_ms": row["duration_ms"],
    }


def model_call_trace(row: asyncpg.Record) -> ModelCallTrace:
    """Converts a row to a model call in brief."""
    return ModelCallTrace(
        **_timed(row),
        number=row["number"],
        kind=known_or_text(ModelCallKind, row["kind"]),
        provider=row["provider"],
        model=row["model"],
        strategy=row["strategy"],
        usage=None if row["input_tokens"] is None else _usage(row),
        cost_usd=row["cost_usd"],
        failure=rows.failure_of_row(row),
    )


def tool_call_trace(row: asyncpg.Record) -> ToolCallTrace:
    """Converts a row to a tool call in brief."""
    return ToolCallTrace(
        **_timed(row),
        server=row["server"],
        tool=row["tool"],
        message_seq=row["message_seq"],
        index=row["index"],
        attempt=row["attempt"],
        made=row["made"],
        repeated_of=row["repeated_of"],
        refused=row["refused"],
        access=known_or_text(Access, row["access"]),
        ref=call_ref(row["idempotency_key"]),
        rung=None if row["rung"] is None else known_or_text(Rung, row["rung"]),
        cassette_line=row["cassette_line"],
    )


def call_owner(row: asyncpg.Record) -> CallOwner:
    """Returns the stage and agent that made a call."""
    return CallOwner(row["stage_name"], row["agent_name"], row["run_name"] if row["parent"] else None)
