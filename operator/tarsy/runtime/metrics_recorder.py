"""The writer of a run whose steps are counted, each once it is on record (`tarsy.runtime.run_metrics` says as what)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.history import BudgetExceeded
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
from tarsy.runtime.draining_recorder import BoundaryWriter
from tarsy.runtime.run_control import RunControl
from tarsy.runtime.run_metrics import RunMeter
from tarsy.store.wakeups import NotifyFunction


class MeteredWriter(BoundaryWriter):
    """See `BoundaryWriter`."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        investigation: UUID,
        attempt: int,
        control: RunControl,
        meter: RunMeter,
        *,
        remaining: Callable[[], float],
        notify: NotifyFunction,
    ) -> None:
        super().__init__(pool, investigation, attempt, control, remaining=remaining, notify=notify)
        self._meter = meter

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """Creates the stage, or returns what an earlier attempt left."""
        record = await super().begin_stage(stage)
        self._meter.stage_began(stage)
        return record

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the stage."""
        await super().finish_stage(outcome, events)
        self._meter.stage_ended(outcome)

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """Creates the execution, or returns what an earlier attempt left."""
        record = await super().begin_execution(execution)
        self._meter.execution_began(execution)
        return record

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution."""
        await super().finish_execution(outcome, events)
        self._meter.execution_ended(outcome)

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (a)."""
        await super().model_call_started(call, events)
        self._meter.model_call_began(call)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (b)."""
        await super().model_call_finished(result, events)
        self._meter.model_call_ended(result, events)

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (c)."""
        await super().tool_call_started(call, events)
        self._meter.tool_call_began(call)

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (d)."""
        await super().tool_call_finished(result, events)
        self._meter.tool_call_ended(result)

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """Notes tool servers that were missing."""
        await super().degrade_evidence(missing)
        if missing:
            self._meter.degraded()

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """Notes the limit that the run reached."""
        await super().budget_exceeded(exceeded, events)
        self._meter.budget_exceeded(exceeded)

    async def _step(self, query: str, what: str, events: Sequence[Event], *args: Any) -> asyncpg.Record:
        try:
            return await super()._step(query, what, events, *args)
        except LeaseLost:
            self._meter.fenced()
            raise
