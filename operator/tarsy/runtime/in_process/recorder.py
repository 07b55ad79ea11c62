"""Keeps the record of one run in memory: the contract of `engine.ports.Recorder` as the store keeps it.

`Record` is the data of a run, `MemoryRecorder` one attempt's way to write it. Evals without a cluster run the engine on
it, and so do the engine's tests. Where it holds, the end of a call is applied with the next step of its execution. One
contract suite (`tests/unit/engine/recorder_contract.py`) checks it and the writer on Postgres.

Decision: what the engine owes the record (a conversation without gaps, numbers used once), which constraints of the
database check there, raises `BrokenContract` here, so that an error in the engine ends a run instead of its result.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from decimal import Decimal
from uuid import UUID

from tarsy.record.approvals.acted import ExecutedCall
from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.approvals.provenance import RESULTS_A_PAGE, ToldResult
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, OfferedTools, ToolCallResult, ToolCallStart
from tarsy.record.finding import Evidence
from tarsy.record.first_attempt import FirstAttempt
from tarsy.record.history import BudgetExceeded, RunHistory
from tarsy.record.ids import call_ref
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.replay import Rung
from tarsy.record.messages import Role, ToolOutcome
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
    ToolCallRecord,
)
from tarsy.record.timeline import RETRYING, WAITING, Event, EventStatus, EventType, TimelineEvent
from tarsy.runtime.in_process.record import ExecutionRow, ModelCallRow, Record, StageRow, ToolCallRow


class BrokenContract(Exception):
    """The engine wrote a step that contradicts the record: an error in TARSy."""


class MemoryRecorder:
    """One attempt's recorder.

    Args:
        record: what is there already.
        hold: the end of a call is applied with the next step of its execution.
    """

    def __init__(self, record: Record, *, hold: bool = False) -> None:
        self.record = record
        self.lost = False
        """Whether another attempt owns the run."""
        self._holding = hold
        self._held: dict[UUID, Callable[[], None]] = {}

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Holds the end of each call; what is held when the block ends is applied."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            if not self.lost:
                self._apply_held()
        if self.lost and self._held:
            raise LeaseLost("another attempt owns the run")

    def lose_held(self) -> None:
        """Forgets the steps that are held, as a process does that dies."""
        self._held.clear()

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """See the port."""
        self._enter()
        row = self.record.stages.get(stage.id)
        if row is None:
            taken = {r.start.index for r in self.record.stages.values()}
            _owed(stage.index not in taken, "an index is that of one stage")
            row = self.record.stages.setdefault(stage.id, StageRow(stage))
        outcome = row.outcome
        if outcome is None:
            return StageRecord(stage.id, State.RUNNING)
        return StageRecord(stage.id, outcome.state, outcome.failure)

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._enter()
        row = self.record.stages[outcome.stage]
        row.outcome = row.outcome or outcome
        self._events(events)

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """See the port."""
        self._enter(of=execution.id)
        row = self.record.executions.setdefault(execution.id, ExecutionRow(execution))
        self._interrupt(execution.id)
        self._close_events(execution.id, EventStatus.INTERRUPTED)
        latest: dict[tuple[int, int], ToolCallRow] = {}
        for tool in self.record.tool_calls.values():
            place = (tool.start.message_seq, tool.start.index)
            if tool.start.execution == execution.id and (
                place not in latest or latest[place].start.attempt < tool.start.attempt
            ):
                latest[place] = tool
        outcome = row.outcome
        found = ExecutionRecord(
            id=execution.id,
            state=outcome.state if outcome else State.RUNNING,
            started_at=self.record.began,
            messages=row.conversation,
            ahead=row.ahead,
            superseded={
                seq: text
                for call in sorted(self._calls_of(execution.id), key=lambda c: c.start.number)
                for seq, text in call.start.superseded.items()
            },
            loop=row.loop,
            model_calls=max((c.start.number + 1 for c in self._calls_of(execution.id)), default=0),
            unanswered=tuple(
                ToolCallRecord(
                    *place, tool.start.attempt, tool.state, tool.start.made, tool.answered, self._summary(tool.start.id)
                )
                for place, tool in sorted(latest.items())
                if tool.state is InteractionState.STARTED
            ),
            result=outcome.result if outcome else None,
            failure=outcome.failure if outcome else None,
            verdict=outcome.verdict if outcome else None,
        )
        return found

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._enter(of=outcome.execution)
        row = self.record.executions[outcome.execution]
        row.outcome = row.outcome or outcome
        self._interrupt(outcome.execution)
        for tool in self.record.tool_calls.values():
            if tool.start.execution == outcome.execution and tool.state is InteractionState.STARTED:
                tool.state, tool.ended = InteractionState.INTERRUPTED, self._tick()
        self._events(events)
        status = EventStatus.INTERRUPTED if outcome.state is State.COMPLETED else EventStatus(outcome.state.value)
        self._close_events(outcome.execution, status, but={event.id for event in events})

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._enter(of=call.execution)
        row = self.record.executions[call.execution]
        if call.id not in self.record.model_calls:
            taken = {c.start.number for c in self._calls_of(call.execution)}
            _owed(call.number not in taken, "a number is that of one model call")
            _owed(bool(call.request) or call.first_seq == len(row.messages), "a conversation has no gaps")
            for seq, message in enumerate(call.new_messages, call.first_seq):
                row.messages.setdefault(seq, message)
            _owed(bool(call.request) or call.message_count == len(row.messages), "a call sends all messages")
            self.record.model_calls[call.id] = ModelCallRow(call)
        row.loop = call.loop or row.loop
        self._events(events)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._ends(result.execution, lambda: self._model_call_finished(result, events))

    def _model_call_finished(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        roles: set[Role | None] = {Role.ASSISTANT} if result.failure is None else {Role.USER, None}
        roles = {None} if self.record.model_calls[result.id].start.request else roles
        _owed((result.message.role if result.message else None) in roles, "an answer, or a word about a lost one")
        call, row = self.record.model_calls[result.id], self.record.executions[result.execution]
        if call.state is InteractionState.STARTED:
            call.state = InteractionState.FAILED if result.failure else InteractionState.COMPLETED
            call.state = InteractionState.INTERRUPTED if result.interrupted else call.state
            call.result = result
        seq, message = result.message_seq, result.message
        if message is not None and seq is not None and seq not in row.messages:
            _owed(seq == len(row.messages), "a conversation has no gaps")
            row.messages[seq] = message
        row.loop = result.loop
        self._events(events)

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> bool:
        """See the port."""
        self._enter(of=call.execution)
        new = call.id not in self.record.tool_calls
        tries = self.record.tries.setdefault((call.execution, call.message_seq, call.index), [])
        for earlier in tries:
            if earlier.start.id != call.id and earlier.state is InteractionState.STARTED:
                _owed(earlier.start.attempt < call.attempt, "an attempt at a tool call is made once")
                earlier.state, earlier.ended = InteractionState.INTERRUPTED, self._tick()
        held = call.approval is None or self.record.approved.pop(call.approval, None) == call.id
        if held and call.approval is not None:
            self.record.consumed.add(call.id)
        if new:
            tries.append(ToolCallRow(call, began=self._tick()))
            self.record.tool_calls[call.id] = tries[-1]
        self._events(events)
        return call.made and held

    async def tool_call_answered(
        self, call: UUID, answer: ToolOutcome, duration_ms: int, events: Sequence[Event] = ()
    ) -> None:
        """See the port."""
        self._enter()
        row = self.record.tool_calls[call]
        row.answered, row.duration_ms, row.replayed = answer.content, duration_ms, answer.replayed
        row.marks = answer.marks
        self._events(events)

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._ends(result.execution, lambda: self._tool_call_finished(result, events))

    def _tool_call_finished(self, result: ToolCallResult, events: Sequence[Event]) -> None:
        call, row = self.record.tool_calls[result.id], self.record.executions[result.execution]
        if call.state is InteractionState.STARTED:
            failed = InteractionState.FAILED if result.is_error else InteractionState.COMPLETED
            call.state = InteractionState.INTERRUPTED if result.interrupted else failed
            call.result, call.ended = result, self._tick()
            call.answered = result.result if call.answered is None else call.answered
            call.duration_ms = result.duration_ms if call.duration_ms is None else call.duration_ms
            call.replayed = result.replayed if call.replayed is None else call.replayed
            call.marks = result.marks if call.marks is None else call.marks
        made = call.start.message_seq >= 0  # else no message made the call
        calls: Sequence[object] = (row.messages[call.start.message_seq].tool_calls or (None,)) if made else (None, None)
        _owed(result.message_seq - call.start.message_seq - 1 == call.start.index in range(len(calls)), "its own place")
        row.messages.setdefault(result.message_seq, result.message)
        row.loop = result.loop
        self._events(events)

    async def write_events(self, events: Sequence[Event]) -> None:
        """See the port."""
        self._enter(fenced=bool(events))
        self._events(events)

    async def stage_timeline(self, stage: UUID) -> Mapping[UUID, Sequence[TimelineEvent]]:
        """See the port."""
        self._enter(fenced=False)
        found: dict[UUID, list[TimelineEvent]] = {}
        for event in sorted(self.record.events.values(), key=lambda e: e.seq):
            if event.stage == stage and event.execution is not None:
                found.setdefault(event.execution, []).append(self._named(event))
        return found

    async def evidence(self, call_ids: Collection[str]) -> Mapping[str, Evidence]:
        """See the port."""
        self._enter(fenced=False)
        found = {}
        for row in sorted(self.record.tool_calls.values(), key=lambda r: r.start.attempt):
            execution = self.record.executions[row.start.execution].start
            if row.citable and row.answered is not None:
                stage = self.record.stages[execution.stage].start.name
                tool = f"{row.start.server}.{row.start.tool}".removeprefix(".")
                result = Evidence(
                    row.start.id,
                    stage,
                    execution.display_name,
                    tool,
                    row.answered,
                    row.start.call.arguments,
                    row.marks or EvidenceMarks(),
                    made_up=row.replayed is not None and row.replayed.rung is Rung.SIMULATED,
                )
                for ref in {call_ref(row.start.idempotency_key), str(row.start.id)} & set(call_ids):
                    found[ref] = result
        return found

    async def is_confirmed(self) -> bool:
        """See the port."""
        self._enter(fenced=False)
        return self.record.is_confirmed()

    async def changes_for_git(self) -> Sequence[ChangeForGit]:
        """See the port."""
        self._enter(fenced=False)
        return self.record.changes_for_git()

    async def actions(self, stage: UUID) -> Sequence[ExecutedCall]:
        """See the port."""
        self._enter(fenced=False)
        return self.record.actions(stage)

    async def first_attempt(self, stages: Collection[UUID]) -> FirstAttempt:
        """See the port."""
        self._enter(fenced=False)
        return self.record.first_attempt(stages)

    async def told_results(
        self, execution: UUID, known: Collection[UUID] = (), *, sensitive: bool = False
    ) -> Sequence[ToldResult]:
        """See the port."""
        self._enter(fenced=False)
        found = self.record.told(execution, known, sensitive=sensitive)
        return sorted(found, key=lambda one: one.id)[:RESULTS_A_PAGE]

    async def history(self) -> RunHistory:
        """See the port."""
        self._enter(fenced=False)
        calls = [call for call in self.record.model_calls.values() if not call.unsent]
        tools = list(self.record.tool_calls.values())
        known = [c.result.usage for c in calls if c.result and c.result.usage]
        guessed = [c.result or c.start for c in calls if not (c.result and c.result.usage)]
        return RunHistory(
            seconds=self.record.seconds,
            waited_seconds=self.record.waited_seconds,
            tokens=sum(u.total_tokens for u in known) + sum(g.estimated_tokens for g in guessed),
            cost_usd=sum((_cost(call) for call in calls), Decimal(0)),
            tool_calls=sum(t.start.made for t in tools),
            action_calls=sum(t.start.made and self.record.acts(t) for t in tools),
            estimated=any(g.estimated_tokens for g in guessed),
            model_seconds=max((c.result.duration_ms for c in calls if c.result), default=0) / 1000,
            tool_seconds=max((t.duration_ms or 0 for t in tools if t.start.made), default=0) / 1000,
            exceeded=self.record.exceeded,
            stages=frozenset(self.record.stages),
            calls=self.record.past_calls(),
        )

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """See the port."""
        self._enter()
        self.record.exceeded = self.record.exceeded or exceeded
        self._events(events)

    async def pin_tools(
        self, found: Mapping[str, Mapping[str, str]], offered: OfferedTools
    ) -> Mapping[str, Mapping[str, str]]:
        """See the port."""
        self._enter()
        _owed(offered.execution in self.record.executions, "what an agent is offered is written to its row")
        self.record.offered[offered.execution] = offered
        pins = {server: self.record.pins.setdefault(server, dict(tools)) for server, tools in found.items()}
        return pins

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """See the port."""
        self._enter(fenced=bool(missing))
        self.record.missing.update(missing)

    def _calls_of(self, execution: UUID) -> list[ModelCallRow]:
        return [c for c in self.record.model_calls.values() if c.start.execution == execution]

    def _interrupt(self, execution: UUID) -> None:
        """Closes model calls left open; one that still waits for its provider, never sent before, is unsent."""
        for call in self._calls_of(execution):
            if call.state is InteractionState.STARTED:
                call.state = InteractionState.INTERRUPTED
                told = [event for event in self.record.events.values() if event.model_call == call.start.id]
                waits = any(e.status is EventStatus.STREAMING and e.metadata.get("reason") == WAITING for e in told)
                call.unsent = waits and all(event.metadata.get("reason") != RETRYING for event in told)

    def _close_events(self, execution: UUID, status: EventStatus, but: Collection[UUID] = ()) -> None:
        for event in list(self.record.events.values()):
            if event.execution == execution and event.status is EventStatus.STREAMING and event.id not in but:
                self.record.events[event.id] = replace(event, status=status)

    def _named(self, event: TimelineEvent) -> TimelineEvent:
        stage = self.record.stages.get(event.stage) if event.stage else None
        agent, parent = self.record.names(event.execution)
        return replace(event, stage_name=stage.start.name if stage else None, agent_name=agent, parent_name=parent)

    def _summary(self, call: UUID) -> str | None:
        made = (e for e in self.record.events.values() if e.tool_call == call and e.status is EventStatus.COMPLETED)
        return next((e.content for e in made if e.type is EventType.MCP_TOOL_SUMMARY), None)

    def _events(self, events: Sequence[Event]) -> None:
        for event in events:
            old = self.record.events.get(event.id)
            if old is None or old.status is EventStatus.STREAMING or event.status is not EventStatus.STREAMING:
                values = {f.name: getattr(event, f.name) for f in fields(Event)}
                seq = old.seq if old else len(self.record.events) + 1
                self.record.events[event.id] = TimelineEvent(**values, seq=seq)

    def _tick(self) -> int:
        self.record.steps += 1
        return self.record.steps

    def _ends(self, of: UUID, apply: Callable[[], None]) -> None:
        """Applies the end of a call of an execution, at once or later."""
        self._enter(of=of, fenced=not self._holding)
        if self._holding:
            self._held[of] = apply
        else:
            apply()

    def _apply_held(self, of: UUID | None = None) -> None:
        for execution in [of] if of is not None else list(self._held):
            if (apply := self._held.pop(execution, None)) is not None:
                apply()

    def _enter(self, *, of: UUID | None = None, fenced: bool = True) -> None:
        """Begins a step, of an execution or else of the run, after what is held of it."""
        if self.lost and (fenced or self._held):
            raise LeaseLost("another attempt owns the run")
        self._apply_held(of)


def _owed(holds: bool, what: str) -> None:
    """Raises BrokenContract unless `holds`.

    Args:
        holds: whether the step agrees with the record.
        what: the rule.
    """
    if not holds:
        raise BrokenContract(f"a step of the engine contradicts the record: {what}")


def _cost(call: ModelCallRow) -> Decimal:
    if call.result is not None and call.result.cost_usd is not None:
        return call.result.cost_usd
    return (call.result or call.start).estimated_cost_usd
