"""Writes the steps of one attempt of a run, each in one fenced statement.

`RunWriter` implements the engine's `Recorder` port without importing it. Inside `holding`, the end of a call is written
with the next step of its execution (`held_steps`). Tools and missing servers are noted without it, since no call
decides about them: an agent that begins does not wait for the writes of those beside it. A statement first locks the
lease row of the attempt; when there is none, nothing is written and `LeaseLost` is raised. The id of a row derives from
its place in the run, so a step that is written twice, because an answer was lost or a worker died, is still one row.

`model_calls` of an investigation counts calls that returned (answered or failed); calls that did not return, or were
cut, are `interrupted_model_calls`. Their sum is billed; a call that was cut before it was sent is in neither.
"""

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.approvals.acted import ExecutedCall
from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.approvals.provenance import RESULTS_A_PAGE, ToldResult
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, OfferedTools, ToolCallResult, ToolCallStart
from tarsy.record.finding import Evidence
from tarsy.record.first_attempt import MOST_CALLS, FirstAttempt
from tarsy.record.history import BudgetExceeded, RunHistory
from tarsy.record.messages import ToolDefinition, ToolOutcome
from tarsy.record.quota import QuotaRefused
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
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
from tarsy.store.quotas import note_refusal, refusal_of
from tarsy.store.runs import steps
from tarsy.store.runs.held_steps import HOLD_SECONDS, HeldSteps
from tarsy.store.runs.steps import Step
from tarsy.store.runs.wakeups import RUN_CHANNEL, NotifyFunction, silent
from tarsy.store.runs.written_results import WrittenResults
from tarsy.store.sealing import seal


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
        hold_seconds: float = HOLD_SECONDS,
        alone: bool = False,
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            investigation: the run.
            attempt: as claimed; the fencing token.
            remaining: returns the seconds that a step may wait for Postgres, called before each try.
            notify: sends a wake-up after the commit of each change.
            hold_seconds: time for which the end of a call waits for the next step of its execution, in `holding`.
            alone: whether no other writer has recorded a result that its agents may know of, or will.
        """
        self._pool = pool
        self._investigation = investigation
        self._attempt = attempt
        self._remaining = remaining
        self._notify = notify
        self._sql = load("writer")
        self._reads = load("run_reads")
        self._steps = HeldSteps(self._write, hold_seconds)
        self._results = WrittenResults(complete=alone)
        self._tool_sets: set[str] = set()
        self._hashed: dict[UUID, tuple[tuple[ToolDefinition, ...], str]] = {}
        self._has_written = False

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Holds the end of each call for the next step of its execution (`held_steps`) until the block ends.

        Raises:
            BaseExceptionGroup: a held step could not be written, `LeaseLost` and `StoreError` among its errors.
        """
        async with self._steps.opened():
            yield

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """Creates the stage, or returns the one of an earlier attempt."""
        row = await self._steps.write(steps.stage_begun(stage))
        self._results.stage_begun(stage)
        return StageRecord(stage.id, State(row["state"]), rows.failure_of_row(row))

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the stage; one that is closed stays as it is."""
        await self._steps.write(steps.stage_finished(outcome, events))

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """Creates the execution, or returns the one of an earlier attempt with its model calls and events closed."""
        row = await self._steps.write(steps.execution_begun(execution))
        self._results.execution_begun(execution)
        messages: Sequence[asyncpg.Record] = ()
        unanswered: Sequence[asyncpg.Record] = ()
        superseded: Sequence[asyncpg.Record] = ()
        if row["existed"]:
            messages = await self._fetch("messages", "load the conversation", execution=execution.id)
        if row["left_open"]:
            unanswered = await self._fetch(
                "unanswered", "load unanswered tool calls", execution=execution.id, investigation=self._investigation
            )
        if row["compacted"]:
            superseded = await self._fetch("superseded", "load compacted messages", execution=execution.id)
        return rows.execution(execution.id, row, messages, unanswered, superseded)

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution; one that is closed stays as it is."""
        await self._steps.write(steps.execution_finished(outcome, events))

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Writes boundary (a): a model call begins, with the messages that are new in it.

        Raises:
            QuotaRefused: a quota has no room for its worst case; nothing of this step is written.
        """
        tool_set, definitions = self._tool_set(call.execution, call.tools)
        try:
            await self._steps.write(steps.model_call_started(call, events, tool_set, definitions))
        except QuotaRefused as refused:
            await note_refusal(self._pool, refused.refusal)
            raise
        if tool_set is not None:
            self._tool_sets.add(tool_set)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Writes boundary (b), soon: the answer of a model call, its cost, and the state of the loop after it."""
        await self._steps.hold(steps.model_call_finished(result, events))

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> bool:
        """Writes boundary (c): a tool call begins, with the approval that it consumes; False: it may not be sent."""
        row = await self._steps.write(steps.tool_call_started(call, events))
        self._results.call_begun(call)
        return bool(row["made"])

    async def tool_call_answered(
        self, call: UUID, answer: ToolOutcome, duration_ms: int, events: Sequence[Event] = ()
    ) -> None:
        """Writes the full result of a tool call that stays open until its summary is made.

        Args:
            call: id of the tool call.
            answer: as the tool returned it.
            duration_ms: of the tool call, in milliseconds.
            events: written in the same transaction.
        """
        values = {
            "id": call,
            "duration_ms": duration_ms,
            "result": clean(answer.content),
            "integrity": columns.integrity_column(answer.marks),
            **columns.replay_columns(answer.replayed),
        }
        what = f"write the answer of tool call {call}"
        await self._steps.write(Step("tool_call_answered", what, values, events, _execution(events)))

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Writes boundary (d), soon: the full result of a tool call, and the message for the model."""
        try:
            await self._steps.hold(steps.tool_call_finished(result, events))
        except BaseException:
            self._results.unknown()
            raise
        self._results.call_ended(result)

    async def write_events(self, events: Sequence[Event]) -> None:
        """Creates or replaces timeline events outside of a step."""
        if events:
            step = Step("write_events", "write timeline events", {}, events, _execution(events))
            await self._steps.write(step)

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
        return {row["cited"]: rows.evidence(row) for row in found}

    async def is_confirmed(self) -> bool:
        """Returns whether a tool call of this run has a result of which the control plane wrote at least a part."""
        (row,) = await self._fetch("is_confirmed", "read the classes of results", investigation=self._investigation)
        found: bool = row["confirmed"]
        return found

    async def changes_for_git(self) -> Sequence[ChangeForGit]:
        """Returns the changes of calls that were refused because GitOps manages their objects, in order."""
        found = await self._fetch("changes_for_git", "read the changes for Git", investigation=self._investigation)
        return rows.changes_for_git(found)

    async def actions(self, stage: UUID) -> Sequence[ExecutedCall]:
        """Returns the calls of a stage that were sent after people approved them, in order."""
        found = await self._fetch("actions", "read the actions", investigation=self._investigation, stage=stage)
        return rows.executed_calls(found[0]["calls"]) if found else ()

    async def first_attempt(self, stages: Collection[UUID]) -> FirstAttempt:
        """Returns the tool calls and the usage of stages that are a first attempt."""
        values = {"investigation": self._investigation, "stages": sorted(stages)}
        calls = await self._fetch("handed_on", "read the first attempt", **values, limit=MOST_CALLS)
        (usage,) = await self._fetch("usage_of_stages", "read the usage of the first attempt", **values)
        return rows.first_attempt(calls, usage)

    async def told_results(
        self, execution: UUID, known: Collection[UUID] = (), *, sensitive: bool = False
    ) -> Sequence[ToldResult]:
        """Returns the next page of results that the model of an execution may know of.

        Args:
            execution: of the agent.
            known: ids of those that the caller has.
            sensitive: only those whose text must not leave.
        """
        kept = self._results.told(execution, known, sensitive=sensitive)
        if kept is not None:
            return kept
        await self._steps.write_result(execution)  # what else is held has no result that this agent knows of
        with self._steps.reading(execution):
            found = await self._select(
                "told_results",
                "read the results of tools",
                investigation=self._investigation,
                execution=execution,
                known=list(known),
                sensitive=sensitive,
                limit=RESULTS_A_PAGE,
            )
        return [rows.told_result(row) for row in found]

    async def pin_tools(
        self, found: Mapping[str, Mapping[str, str]], offered: OfferedTools
    ) -> Mapping[str, Mapping[str, str]]:
        """Returns the tool digests that the run saw first of each server; stores `found` of servers new to it.

        Args:
            found: digests of tools, by server.
            offered: what an agent is offered.
        """
        servers = sorted(found)
        tool_set, definitions = self._tool_set(offered.execution, offered.tools)
        values = {
            "servers": servers,
            "pins": [dict(found[server]) for server in servers],
            "execution": offered.execution,
            "instructions": {name: clean(text) for name, text in offered.instructions.items()} or None,
            "tool_set": tool_set,
            "tools": definitions,
        }
        row = await self._write(Step("pin_tools", "pin tool definitions", values), None)
        if tool_set is not None:
            self._tool_sets.add(tool_set)
        pins: Mapping[str, Mapping[str, str]] = row["pins"] or {}
        return pins

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """Notes missing tool servers, as reason by name."""
        if missing:
            await self._write(Step("degrade_evidence", "note missing tool servers", {"missing": dict(missing)}), None)

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """Notes a limit that the run reached; the first one stays."""
        values = {"budget_limit": str(exceeded.limit), "budget_message": exceeded.message}
        await self._steps.write(Step("budget_exceeded", "note that a limit is reached", values, events))

    async def history(self) -> RunHistory:
        """Returns usage and tool calls of the run, of all its attempts; the first one begins without any."""
        if self._attempt == 1 and not self._has_written:
            return RunHistory()
        (row,) = await self._fetch("history", "read the history", investigation=self._investigation)
        calls: Sequence[asyncpg.Record] = ()
        if row["has_closed"]:
            calls = await self._fetch("past_calls", "read the tool calls", investigation=self._investigation)
        return rows.history(row, calls)

    def _tool_set(
        self, execution: UUID, tools: Sequence[ToolDefinition]
    ) -> tuple[str | None, list[dict[str, Any]] | None]:
        """Returns the hash of the definitions, and the definitions when this writer has not stored them yet."""
        if not tools:
            return None, None
        known, digest = self._hashed.get(execution, ((), ""))
        if digest in self._tool_sets and tuple(tools) == known:
            return digest, None
        definitions, digest = columns.tool_set(tools)
        self._hashed[execution] = tuple(tools), digest
        return digest, None if digest in self._tool_sets else definitions

    async def _write(self, step: Step, seconds: float | None) -> asyncpg.Record:
        events = columns.event_columns(step.events)
        sealed = seal.of_step(step.query, step.values, events).columns()
        values = {"investigation": self._investigation, "attempt": self._attempt, **events, **step.values, **sealed}
        statement = self._statement(step, values)

        async def write(connection: asyncpg.Connection) -> asyncpg.Record | None:
            try:
                return await connection.fetchrow(*statement)
            except asyncpg.PostgresError as error:
                if (refusal := refusal_of(error)) is None:
                    raise
                raise QuotaRefused(refusal) from error

        self._has_written = True
        where = f"{step.what} of investigation {self._investigation}"
        remaining = self._remaining if seconds is None else _countdown(seconds)
        row = await database.call(self._pool, where, write, remaining=remaining)
        if row is None:
            raise LeaseLost(f"Attempt {self._attempt} of investigation {self._investigation} does not hold the lease.")
        if not row["found"]:
            raise StoreError(f"Cannot {where}: its stage, execution or call was never begun.")
        self._notify(RUN_CHANNEL, str(self._investigation))
        return row

    def _statement(self, step: Step, values: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the statement of a step; where it has parameters without effect, one that does without them."""
        plain = self._sql.get(f"{step.query}__plain") if step.spare else None
        if plain is None:
            return self._sql[step.query](**values)
        for name in step.spare:
            del values[name]
        return plain(**values)

    async def _fetch(self, query: str, what: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        """Returns the rows of a query, which sees all steps before it."""
        await self._steps.write_all()
        return await self._select(query, what, **values)

    async def _select(self, query: str, what: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        """Returns the rows of a query, which does not see steps that are held."""

        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._reads[query](**values))
            return found

        return await database.call(
            self._pool, f"{what} of investigation {self._investigation}", fetch, remaining=self._remaining
        )


def _execution(events: Sequence[Event]) -> UUID | None:
    """Returns the execution of all events; None: they are not all of one."""
    of = {event.execution for event in events}
    return of.pop() if len(of) == 1 else None


def _countdown(seconds: float) -> Callable[[], float]:
    until = time.monotonic() + seconds
    return lambda: until - time.monotonic()
