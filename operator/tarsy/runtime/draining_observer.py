"""The writer of a run that its worker can stop at a boundary (DESIGN section 5, "Boundaries").

Decision: the engine knows nothing of draining. Every outside effect lies between two writes of the record, so the
writes are where a run is held and where it is known that nothing of it is under way.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.run import ExecutionOutcome
from tarsy.record.timeline import Event
from tarsy.runtime.run_control import RunControl
from tarsy.store.wakeups import NotifyFunction
from tarsy.store.writer import RunWriter


class BoundaryWriter(RunWriter):
    """Tells the run's control of each model and tool call that begins and ends; see `RunWriter` for the rest."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        investigation: UUID,
        attempt: int,
        control: RunControl,
        *,
        remaining: Callable[[], float],
        notify: NotifyFunction,
    ) -> None:
        super().__init__(pool, investigation, attempt, remaining=remaining, notify=notify)
        self._control = control

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (a); not while the worker drains."""
        await self._control.begin(call.id, call.execution)
        await super().model_call_started(call, events)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (b)."""
        await super().model_call_finished(result, events)
        self._control.end(result.id)

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (c); not while the worker drains."""
        await self._control.begin(call.id, call.execution)
        await super().tool_call_started(call, events)

    async def tool_call_answered(self, call: UUID, result: str, duration_ms: int, events: Sequence[Event] = ()) -> None:
        """The result is on record: what the model is told of it may be made by another attempt."""
        await super().tool_call_answered(call, result, duration_ms, events)
        self._control.end(call)

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (d)."""
        await super().tool_call_finished(result, events)
        self._control.end(result.id)

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution, and whatever it left under way with it."""
        await super().finish_execution(outcome, events)
        self._control.end(outcome.execution)
