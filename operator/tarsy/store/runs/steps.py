"""Makes the statement parameters of each step of a run from the types of the record.

A step is one statement of `writer.sql`. The end of a call and the beginning of the next one of the same execution can
be one statement together (`Step.after`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.run import ExecutionOutcome, ExecutionStart, InteractionState, StageOutcome, StageStart
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus
from tarsy.store import columns
from tarsy.store.text import clean_or_none

_ENDS = ("model_call_finished", "tool_call_finished")
_BEGINNINGS = ("model_call_started", "tool_call_started")
_NONE: frozenset[str] = frozenset()
_SPARE_OF_MODEL_CALL = frozenset({"tools", "superseded_seqs", "superseded_contents"})
_SPARE_OF_TOOL_CALL = frozenset({"approval"})


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run: its statement, the action in words, its parameters and timeline events.

    `execution` is the agent execution that it belongs to; None: it belongs to the run. `spare` are the parameters whose
    values have no effect: a statement without them writes the same.
    """

    query: str
    what: str
    values: Mapping[str, Any]
    events: Sequence[Event] = ()
    execution: UUID | None = None
    spare: frozenset[str] = frozenset()

    def after(self, ended: "Step") -> "Step | None":
        """Returns `ended` and this step as one; None: no statement writes both.

        `ended` is the step of the same execution right before this one.
        """
        if ended.query not in _ENDS or self.query not in _BEGINNINGS:
            return None
        closed = {event.id for event in ended.events if event.status is not EventStatus.STREAMING}
        later = [event for event in self.events if event.status is not EventStatus.STREAMING or event.id not in closed]
        return Step(
            query=f"{ended.query}__{self.query}",
            what=f"{ended.what}, then {self.what}",
            values={**ended.values, **self.values},
            events=[*ended.events, *later],
            execution=self.execution,
            spare=self.spare,
        )


def stage_begun(stage: StageStart) -> Step:
    """Returns the beginning of a stage."""
    values = {
        "id": stage.id,
        "index": stage.index,
        "name": stage.name,
        "kind": stage.kind.value,
        "expected_agents": stage.expected_agents,
        "parallel": stage.parallel,
        "success_policy": stage.success_policy,
    }
    return Step("begin_stage", f"begin stage {stage.name}", values)


def stage_finished(outcome: StageOutcome, events: Sequence[Event]) -> Step:
    """Returns the end of a stage."""
    values = {
        "id": outcome.stage,
        "state": outcome.state.value,
        "word": None if outcome.acted is None else outcome.acted.word.value,
        **columns.failure_columns(outcome.failure),
    }
    return Step("finish_stage", f"finish stage {outcome.stage}", values, events)


def execution_begun(execution: ExecutionStart) -> Step:
    """Returns the beginning of an agent execution."""
    values = {
        "id": execution.id,
        "stage": execution.stage,
        "index": execution.index,
        "agent": execution.agent,
        "display_name": execution.display_name,
        "strategy": execution.strategy,
        "provider": execution.provider,
        "model": execution.model,
        "parent": execution.parent,
        "dispatched_by": execution.dispatched_by,
        "task": clean_or_none(execution.task),
        "hypothesis": clean_or_none(execution.hypothesis),
    }
    what = f"begin execution of agent {execution.display_name}"
    return Step("begin_execution", what, values, execution=execution.id)


def execution_finished(outcome: ExecutionOutcome, events: Sequence[Event]) -> Step:
    """Returns the end of an agent execution."""
    values = {
        "id": outcome.execution,
        "state": outcome.state.value,
        "result": clean_or_none(outcome.result),
        "verdict": None if outcome.verdict is None else outcome.verdict.model_dump(mode="json", by_alias=True),
        **columns.failure_columns(outcome.failure),
    }
    what = f"finish execution {outcome.execution}"
    return Step("finish_execution", what, values, events, outcome.execution)


def model_call_started(
    call: ModelCallStart, events: Sequence[Event], tool_set: str | None, definitions: Sequence[Mapping[str, Any]] | None
) -> Step:
    """Returns boundary (a).

    Args:
        call: the model call.
        events: timeline events of the step.
        tool_set: hash of the definitions of its tools; None: it has none.
        definitions: to be stored under that hash; None: they are stored.
    """
    messages = call.new_messages
    values = {
        "id": call.id,
        "execution": call.execution,
        "number": call.number,
        "kind": call.kind.value,
        "provider": call.provider,
        "model": call.model,
        "strategy": call.strategy,
        "message_count": call.message_count,
        "loop": None if call.loop is None else call.loop.model_dump(mode="json"),
        "tool_set": tool_set,
        "tools": definitions,
        "first_seq": call.first_seq,
        "roles": [message.role.value for message in messages],
        "contents": [clean(message.content) for message in messages],
        "tool_calls": [columns.tool_calls(message) for message in messages],
        "tool_call_ids": [clean_or_none(message.tool_call_id) for message in messages],
        "tool_names": [clean_or_none(message.tool_name) for message in messages],
        "provider_states": [message.provider_state for message in messages],
        "estimated_tokens": call.estimated_tokens,
        "estimated_cost_usd": call.estimated_cost_usd,
        "worst_tokens": call.worst_tokens,
        "worst_cost_usd": call.worst_cost_usd,
        "superseded_seqs": list(call.superseded),
        "superseded_contents": [clean(content) for content in call.superseded.values()],
        "request": columns.request(call.request),
    }
    what = f"write the start of model call {call.number}"
    plain = definitions is None and not call.superseded
    return Step("model_call_started", what, values, events, call.execution, _SPARE_OF_MODEL_CALL if plain else _NONE)


def model_call_finished(result: ModelCallResult, events: Sequence[Event]) -> Step:
    """Returns boundary (b)."""
    message, usage = result.message, result.usage
    state = InteractionState.COMPLETED if result.failure is None else InteractionState.FAILED
    failure = columns.failure_columns(result.failure)
    values = {
        "execution": result.execution,
        "ended_id": result.id,
        "ended_state": (InteractionState.INTERRUPTED if result.interrupted else state).value,
        "ended_duration_ms": result.duration_ms,
        "ended_message_seq": None if message is None else result.message_seq,
        "ended_thinking": clean(result.thinking),
        "ended_response_metadata": dict(result.response_metadata),
        "ended_input_tokens": None if usage is None else usage.input_tokens,
        "ended_output_tokens": None if usage is None else usage.output_tokens,
        "ended_thinking_tokens": None if usage is None else usage.thinking_tokens,
        "ended_cached_tokens": None if usage is None else usage.cached_tokens,
        "ended_failure_reason": failure["failure_reason"],
        "ended_failure_message": failure["failure_message"],
        "ended_usage_complete": usage is not None and usage.complete,
        "ended_content": None if message is None else clean(message.content),
        "ended_tool_calls": None if message is None else columns.tool_calls(message),
        "ended_provider_state": None if message is None else message.provider_state,
        "ended_loop": result.loop.model_dump(mode="json"),
        "ended_role": None if message is None else message.role.value,
        "ended_cost_usd": result.cost_usd,
        "ended_estimated_tokens": result.estimated_tokens,
        "ended_estimated_cost_usd": result.estimated_cost_usd,
    }
    what = f"write the end of model call {result.id}"
    return Step("model_call_finished", what, values, events, result.execution)


def tool_call_started(call: ToolCallStart, events: Sequence[Event]) -> Step:
    """Returns boundary (c)."""
    values = {
        "id": call.id,
        "execution": call.execution,
        "message_seq": call.message_seq,
        "index": call.index,
        "call_attempt": call.attempt,
        "call_id": clean(call.call.id),
        "server": clean(call.server),
        "tool": clean(call.tool),
        "arguments": clean(call.call.arguments),
        "idempotency_key": call.idempotency_key,
        "made": call.made,
        "repeatable": call.repeatable,
        "repeated_of": call.repeated_of,
        "access": call.access.value,
        "refused": call.refused,
        "approval": call.approval,
    }
    what = f"write the start of tool call {call.server}.{call.tool}"
    plain = call.approval is None and call.attempt == 0
    return Step("tool_call_started", what, values, events, call.execution, _SPARE_OF_TOOL_CALL if plain else _NONE)


def tool_call_finished(result: ToolCallResult, events: Sequence[Event]) -> Step:
    """Returns boundary (d)."""
    state = InteractionState.FAILED if result.is_error else InteractionState.COMPLETED
    values = {
        "execution": result.execution,
        "ended_id": result.id,
        "ended_state": (InteractionState.INTERRUPTED if result.interrupted else state).value,
        "ended_duration_ms": result.duration_ms,
        "ended_result": clean(result.result),
        "ended_integrity": columns.integrity_column(result.marks),
        "ended_message_seq": result.message_seq,
        "ended_content": clean(result.message.content),
        "ended_tool_call_id": clean_or_none(result.message.tool_call_id),
        "ended_tool_name": clean_or_none(result.message.tool_name),
        "ended_loop": result.loop.model_dump(mode="json"),
        "ended_role": result.message.role.value,
        **{f"ended_{name}": value for name, value in columns.replay_columns(result.replayed).items()},
    }
    what = f"write the result of tool call {result.id}"
    return Step("tool_call_finished", what, values, events, result.execution)
