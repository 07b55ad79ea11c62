"""Holds a run at a boundary while its worker drains.

No model or tool call begins then, and once none is under way the run is stopped, so that another attempt repeats
nothing: the end of the last call is written before the run is handed back.
"""

from collections.abc import Sequence
from uuid import UUID

from tarsy.record.boundaries import ModelCallResult, ToolCallResult
from tarsy.record.run import ExecutionOutcome
from tarsy.record.timeline import Event
from tarsy.runtime.observed_recorder import RunObserver
from tarsy.runtime.run_control import RunControl


class DrainingObserver(RunObserver):
    """Reports each model and tool call that begins and ends to the run's control."""

    def __init__(self, control: RunControl) -> None:
        self._control = control

    async def call_begins(self, call: UUID, execution: UUID) -> None:
        """Waits while the worker drains."""
        await self._control.begin(call, execution)

    def model_call_ended(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        """The call is not under way any more."""
        self._control.end(result.id)

    def tool_call_answered(self, call: UUID) -> None:
        """The result is on record: another attempt can make the summary of it."""
        self._control.end(call)

    def tool_call_ended(self, result: ToolCallResult) -> None:
        """The call is not under way any more."""
        self._control.end(result.id)

    def execution_ended(self, outcome: ExecutionOutcome) -> None:
        """Nothing of the execution is under way any more."""
        self._control.end(outcome.execution)
