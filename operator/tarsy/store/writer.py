"""Writes the steps of one attempt of a run, each in one fenced statement.

`RunWriter` implements the engine's `Recorder` port without importing it. A statement first locks the lease row of the
attempt; when there is none, nothing is written and `LeaseLost` is raised. The id of a row derives from its place in the
run, so a step that is written twice, because an answer was lost or a worker died, is still one row.

`model_calls` of an investigation counts calls that returned (answered or failed); calls that did not return, or were
cut, are `interrupted_model_calls`. Their sum is billed; a call that was cut before it was sent is in neither.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.finding import Evidence
from tarsy.record.history import BudgetExceeded, RunHistory
from tarsy.record.messages import ToolDefinition
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
    InteractionState,
    LeaseLost,
    StageOutcome,
    StageRecord,
    StageStart,
    State,
)
from tarsy.record.text import clean
from tarsy.record.timeline import Event, TimelineEvent
from tarsy.store import columns, database, rows
from tarsy.store.errors import StoreError
from tarsy.store.queries import load
from tarsy.store.text import clean_or_none
from tarsy.store.wakeups import RUN_CHANNEL, NotifyFunction, silent


class RunWriter:
    """Records one attempt of one investigation; safe for the parallel agents of the run."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        investigation: UUID,
        attempt: int,
        *,
        remaining: Callable[[], float],
        notify: NotifyFunction = silent,
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            investigation: the run.
            attempt: as claimed; the fencing token.
            remaining: returns the seconds that a step may wait for Postgres, called before each try.
            notify: sends a wake-up after the commit of each change.
        """
        self._pool = pool
        self._investigation = investigation
        self._attempt = attempt
        self._remaining = remaining
        self._notify = notify
        self._sql = load("writer")
        self._tool_sets: set[str] = set()

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """Creates the stage, or returns the one of an earlier attempt."""
        row = await self._step(
            "begin_stage",
            f"begin stage {stage.name}",
            (),
            {
                "id": stage.id,
                "index": stage.index,
                "name": stage.name,
                "kind": stage.kind.value,
                "expected_agents": stage.expected_agents,
                "parallel": stage.parallel,
                "success_policy": stage.success_policy,
            },
        )
        return StageRecord(stage.id, State(row["state"]), rows.failure_of_row(row))

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the stage; one that is closed stays as it is."""
        await self._step(
            "finish_stage",
            f"finish stage {outcome.stage}",
            events,
            {
                "id": outcome.stage,
                "state": outcome.state.value,
                **columns.failure_columns(outcome.failure),
            },
        )

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """Creates the execution, or returns the one of an earlier attempt with its model calls and events closed."""
        row = await self._step(
            "begin_execution",
            f"begin execution of agent {execution.display_name}",
            (),
            {
                "id": execution.id,
                "stage": execution.stage,
                "index": execution.index,
                "agent": execution.agent,
                "display_name": execution.display_name,
                "strategy": execution.strategy,
                "provider": execution.provider,
                "model": execution.model,
            },
        )
        messages: Sequence[asyncpg.Record] = ()
        unanswered: Sequence[asyncpg.Record] = ()
        superseded: Sequence[asyncpg.Record] = ()
        if row["existed"]:
            messages = await self._fetch("messages", "load the conversation", execution=execution.id)
            unanswered = await self._fetch(
                "unanswered", "load unanswered tool calls", execution=execution.id, investigation=self._investigation
            )
            superseded = await self._fetch("superseded", "load compacted messages", execution=execution.id)
        return rows.execution(execution.id, row, messages, unanswered, superseded)

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution; one that is closed stays as it is."""
        await self._step(
            "finish_execution",
            f"finish execution {outcome.execution}",
            events,
            {
                "id": outcome.execution,
                "state": outcome.state.value,
                "result": clean_or_none(outcome.result),
                **columns.failure_columns(outcome.failure),
            },
        )

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Writes boundary (a): a model call begins, with the messages that are new in it."""
        tool_set, definitions = self._tool_set(call.tools)
        messages = call.new_messages
        await self._step(
            "model_call_started",
            f"write the start of model call {call.number}",
            events,
            {
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
                "superseded_seqs": list(call.superseded),
                "superseded_contents": [clean(content) for content in call.superseded.values()],
                "request": columns.request(call.request),
            },
        )
        if tool_set is not None:
            self._tool_sets.add(tool_set)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Writes boundary (b): the answer of a model call, its cost, and the state of the loop after it."""
        message, usage = result.message, result.usage
        state = InteractionState.COMPLETED if result.failure is None else InteractionState.FAILED
        await self._step(
            "model_call_finished",
            f"write the end of model call {result.id}",
            events,
            {
                "id": result.id,
                "execution": result.execution,
                "state": (InteractionState.INTERRUPTED if result.interrupted else state).value,
                "duration_ms": result.duration_ms,
                "message_seq": None if message is None else result.message_seq,
                "thinking": clean(result.thinking),
                "response_metadata": dict(result.response_metadata),
                "input_tokens": None if usage is None else usage.input_tokens,
                "output_tokens": None if usage is None else usage.output_tokens,
                "thinking_tokens": None if usage is None else usage.thinking_tokens,
                "cached_tokens": None if usage is None else usage.cached_tokens,
                **columns.failure_columns(result.failure),
                "usage_complete": usage is not None and usage.complete,
                "content": None if message is None else clean(message.content),
                "tool_calls": None if message is None else columns.tool_calls(message),
                "provider_state": None if message is None else message.provider_state,
                "loop": result.loop.model_dump(mode="json"),
                "role": None if message is None else message.role.value,
                "cost_usd": result.cost_usd,
                "estimated_tokens": result.estimated_tokens,
                "estimated_cost_usd": result.estimated_cost_usd,
            },
        )

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> None:
        """Writes boundary (c): a tool call begins."""
        await self._step(
            "tool_call_started",
            f"write the start of tool call {call.server}.{call.tool}",
            events,
            {
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
            },
        )

    async def tool_call_answered(self, call: UUID, result: str, duration_ms: int, events: Sequence[Event] = ()) -> None:
        """Writes the full result of a tool call that stays open until its summary is made.

        Args:
            call: id of the tool call.
            result: as the tool returned it.
            duration_ms: of the tool call, in milliseconds.
            events: written in the same transaction.
        """
        await self._step(
            "tool_call_answered",
            f"write the answer of tool call {call}",
            events,
            {"id": call, "duration_ms": duration_ms, "result": clean(result)},
        )

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Writes boundary (d): the full result of a tool call, and the message for the model."""
        state = InteractionState.FAILED if result.is_error else InteractionState.COMPLETED
        await self._step(
            "tool_call_finished",
            f"write the result of tool call {result.id}",
            events,
            {
                "id": result.id,
                "execution": result.execution,
                "state": (InteractionState.INTERRUPTED if result.interrupted else state).value,
                "duration_ms": result.duration_ms,
                "result": clean(result.result),
                "message_seq": result.message_seq,
                "content": clean(result.message.content),
                "tool_call_id": clean_or_none(result.message.tool_call_id),
                "tool_name": clean_or_none(result.message.tool_name),
                "loop": result.loop.model_dump(mode="json"),
                "role": result.message.role.value,
            },
        )

    async def write_events(self, events: Sequence[Event]) -> None:
        """Creates or replaces timeline events outside of a step."""
        if events:
            await self._step("write_events", "write timeline events", events, {})

    async def stage_timeline(self, stage: UUID) -> Mapping[UUID, Sequence[TimelineEvent]]:
        """Returns the events of a stage by execution, in order."""
        by_execution: dict[UUID, list[TimelineEvent]] = {}
        what = f"read the timeline of stage {stage}"
        for row in await self._fetch("stage_timeline", what, investigation=self._investigation, stage=stage):
            if row["execution"] is not None:
                by_execution.setdefault(row["execution"], []).append(rows.timeline_event(row))
        return by_execution

    async def evidence(self, call_ids: Collection[str]) -> Mapping[str, Evidence]:
        """Returns the stored results of those of `call_ids` that are closed tool calls of this run."""
        if not call_ids:
            return {}
        wanted = sorted({clean(call_id) for call_id in call_ids})
        found = await self._fetch(
            "evidence", "read the tool results", investigation=self._investigation, call_ids=wanted
        )
        return {
            row["cited"]: Evidence(row["id"], row["stage"], row["agent"], row["tool"], row["result"]) for row in found
        }

    async def pin_tools(self, found: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
        """Returns the tool digests that the run saw first of each server; stores `found` of servers new to it."""
        servers = sorted(found)
        tools = [dict(found[server]) for server in servers]
        row = await self._step("pin_tools", "pin tool definitions", (), {"servers": servers, "tools": tools})
        pins: Mapping[str, Mapping[str, str]] = row["pins"] or {}
        return pins

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """Notes missing tool servers, as reason by name."""
        if missing:
            await self._step("degrade_evidence", "note missing tool servers", (), {"missing": dict(missing)})

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """Notes a limit that the run reached; the first one stays."""
        what = "note that a limit is reached"
        values = {"budget_limit": exceeded.limit.value, "budget_message": exceeded.message}
        await self._step("budget_exceeded", what, events, values)

    async def history(self) -> RunHistory:
        """Returns usage and tool calls of the run, of all its attempts."""
        (row,) = await self._fetch("history", "read the history", investigation=self._investigation)
        calls = await self._fetch("past_calls", "read the tool calls", investigation=self._investigation)
        return rows.history(row, calls)

    def _tool_set(self, tools: Sequence[ToolDefinition]) -> tuple[str | None, list[dict[str, Any]] | None]:
        """Returns the hash of the definitions, and the definitions when this writer has not stored them yet."""
        if not tools:
            return None, None
        definitions, digest = columns.tool_set(tools)
        return digest, None if digest in self._tool_sets else definitions

    async def _step(self, query: str, what: str, events: Sequence[Event], values: Mapping[str, Any]) -> asyncpg.Record:
        run = {"investigation": self._investigation, "attempt": self._attempt}
        statement = self._sql[query](**run, **columns.event_columns(events), **values)

        async def write(connection: asyncpg.Connection) -> asyncpg.Record | None:
            return await connection.fetchrow(*statement)

        where = f"{what} of investigation {self._investigation}"
        row = await database.call(self._pool, where, write, remaining=self._remaining)
        if row is None:
            raise LeaseLost(f"Attempt {self._attempt} of investigation {self._investigation} does not hold the lease.")
        if not row["found"]:
            raise StoreError(f"Cannot {where}: its stage, execution or call was never begun.")
        self._notify(RUN_CHANNEL, str(self._investigation))
        return row

    async def _fetch(self, query: str, what: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql[query](**values))
            return found

        return await database.call(
            self._pool, f"{what} of investigation {self._investigation}", fetch, remaining=self._remaining
        )
