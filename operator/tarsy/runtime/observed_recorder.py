"""Reports the steps of a run to its observers: draining, metrics, logs and traces.

Decision: the engine knows none of them. Every outside effect lies between two writes of the record, so the recorder is
where a run can be stopped, and where a step is known to be on record, or to be written with the next one (the end of a
call). An observer is called in the task that takes the step; what it sets for that task (the log's stage, the current
span) holds for what the task does next.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from tarsy.engine.ports import Recorder
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, OfferedTools, ToolCallResult, ToolCallStart
from tarsy.record.history import BudgetExceeded
from tarsy.record.messages import ToolOutcome
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
    LeaseLost,
    StageOutcome,
    StageRecord,
    StageStart,
)
from tarsy.record.timeline import Event

_T = TypeVar("_T")


class RunObserver:
    """Follows the steps of one attempt of a run; each method does nothing unless a subclass overrides it.

    All but `call_begins` are called when the recorder has taken the step.
    """

    async def call_begins(self, call: UUID, execution: UUID) -> None:
        """A model or tool call of an execution is about to be written as begun; it waits until this returns."""

    def stage_began(self, stage: StageStart, *, finished: bool = False) -> None:
        """A stage began; `finished`: an earlier attempt has ended it."""

    def stage_ended(self, outcome: StageOutcome) -> None:
        """A stage ended."""

    def execution_began(self, execution: ExecutionStart, *, finished: bool = False) -> None:
        """An agent execution began; `finished`: an earlier attempt has ended it."""

    def execution_ended(self, outcome: ExecutionOutcome) -> None:
        """An agent execution ended."""

    def model_call_began(self, call: ModelCallStart) -> None:
        """A model call is about to be made."""

    def model_call_ended(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        """A model call came back, or was cut."""

    def tool_call_began(self, call: ToolCallStart) -> None:
        """A tool call is about to be made, or is one that is not made."""

    def tool_call_answered(self, call: UUID) -> None:
        """A tool call has its result, and stays open until its model is sent a summary of it."""

    def tool_call_ended(self, result: ToolCallResult) -> None:
        """A tool call ended."""

    def tools_found(self, found: Mapping[str, Mapping[str, str]]) -> None:
        """Tool servers were opened, with these tools and their digests, by server."""

    def evidence_degraded(self, missing: Mapping[str, str]) -> None:
        """Tool servers are missing, or the alert was cut; the reasons by name."""

    def budget_exceeded(self, exceeded: BudgetExceeded) -> None:
        """The run reached a limit of its budget."""

    def events_written(self, events: Sequence[Event]) -> None:
        """Timeline events were written outside of a step."""

    def lease_lost(self) -> None:
        """The record refused a step, because another attempt owns the run."""


def observed(recorder: Recorder, observers: Sequence[RunObserver]) -> Recorder:
    """The recorder, with its steps reported to the observers.

    Args:
        recorder: writes the record.
        observers: called in this order, each after the step is written.
    """
    return cast(Recorder, _ObservedRecorder(recorder, tuple(observers)))


class _ObservedRecorder:
    """Forwards every method of the port; those that observers follow are written out."""

    def __init__(self, recorder: Recorder, observers: tuple[RunObserver, ...]) -> None:
        self._recorder = recorder
        self._observers = observers

    def __getattr__(self, name: str) -> Any:
        forwarded: Callable[..., Awaitable[Any]] = getattr(self._recorder, name)

        @wraps(forwarded)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._written(forwarded(*args, **kwargs))

        return call

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        record = await self._written(self._recorder.begin_stage(stage))
        for observer in self._observers:
            observer.stage_began(stage, finished=record.state.finished)
        return record

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        await self._written(self._recorder.finish_stage(outcome, events))
        for observer in self._observers:
            observer.stage_ended(outcome)

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        record = await self._written(self._recorder.begin_execution(execution))
        for observer in self._observers:
            observer.execution_began(execution, finished=record.state.finished)
        return record

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        await self._written(self._recorder.finish_execution(outcome, events))
        for observer in self._observers:
            observer.execution_ended(outcome)

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        await self._call_begins(call.id, call.execution)
        await self._written(self._recorder.model_call_started(call, events))
        for observer in self._observers:
            observer.model_call_began(call)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        await self._written(self._recorder.model_call_finished(result, events))
        for observer in self._observers:
            observer.model_call_ended(result, events)

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> bool:
        await self._call_begins(call.id, call.execution)
        may_call = await self._written(self._recorder.tool_call_started(call, events))
        for observer in self._observers:
            observer.tool_call_began(call)
        return may_call

    async def tool_call_answered(
        self, call: UUID, answer: ToolOutcome, duration_ms: int, events: Sequence[Event] = ()
    ) -> None:
        """Writes the result of a call that stays open until its summary is made, then reports it to the observers.

        Args:
            call: id of the tool call.
            answer: in full, without secrets.
            duration_ms: duration of the call in milliseconds.
            events: timeline events of this step.
        """
        await self._written(self._recorder.tool_call_answered(call, answer, duration_ms, events))
        for observer in self._observers:
            observer.tool_call_answered(call)

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        await self._written(self._recorder.tool_call_finished(result, events))
        for observer in self._observers:
            observer.tool_call_ended(result)

    async def pin_tools(
        self, found: Mapping[str, Mapping[str, str]], offered: OfferedTools
    ) -> Mapping[str, Mapping[str, str]]:
        pins = await self._written(self._recorder.pin_tools(found, offered))
        for observer in self._observers:
            observer.tools_found(found)
        return pins

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        await self._written(self._recorder.degrade_evidence(missing))
        for observer in self._observers:
            observer.evidence_degraded(missing)

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        await self._written(self._recorder.budget_exceeded(exceeded, events))
        for observer in self._observers:
            observer.budget_exceeded(exceeded)

    async def write_events(self, events: Sequence[Event]) -> None:
        await self._written(self._recorder.write_events(events))
        for observer in self._observers:
            observer.events_written(events)

    async def _call_begins(self, call: UUID, execution: UUID) -> None:
        for observer in self._observers:
            await observer.call_begins(call, execution)

    async def _written(self, step: Awaitable[_T]) -> _T:
        try:
            return await step
        except LeaseLost:
            for observer in self._observers:
                observer.lease_lost()
            raise
