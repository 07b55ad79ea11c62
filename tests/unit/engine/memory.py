"""The recorder in memory, with deaths on demand.

A recorder that has died raises at every later call and loses what it held, as a process that is gone.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from tarsy.runtime.in_process.record import ModelCallRow
from tarsy.runtime.in_process.record import Record as _Record
from tarsy.runtime.in_process.recorder import MemoryRecorder as _Recorder

__all__ = ["BEGAN", "Crash", "MemoryRecorder", "ModelCallRow", "Record"]

BEGAN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
"""When every execution began: a Friday."""


class Crash(BaseException):
    """The process died."""


@dataclass
class Record(_Record):
    """The record of a run that began on that Friday."""

    began: datetime = BEGAN


P = ParamSpec("P")
R = TypeVar("R")


def _mortal(
    step: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method that dies before or after it takes effect, where its recorder shall."""
    name = step.__name__

    async def lived(self: "MemoryRecorder", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.dead:
            raise Crash(f"{name} of a dead process")
        number = len(self.calls)
        self.calls.append(name)
        if self.before and number == self.die_at:
            self.die()
        done = await step(self, *args, **kwargs)
        if not self.before and number == self.die_at:
            self.die()
        return done

    return lived


class MemoryRecorder(_Recorder):
    """One attempt's recorder.

    Args:
        record: what is there already.
        die_at: the number of the call (from 0) at which the process dies.
        before: whether it dies before that call takes effect, or after.
        hold: the end of a call is applied with the next step of its execution.
    """

    def __init__(self, record: _Record, *, die_at: int | None = None, before: bool = True, hold: bool = False) -> None:
        super().__init__(record, hold=hold)
        self.calls: list[str] = []
        self.dead = False
        self.die_at = die_at
        self.before = before

    begin_stage = _mortal(_Recorder.begin_stage)
    finish_stage = _mortal(_Recorder.finish_stage)
    begin_execution = _mortal(_Recorder.begin_execution)
    finish_execution = _mortal(_Recorder.finish_execution)
    model_call_started = _mortal(_Recorder.model_call_started)
    model_call_finished = _mortal(_Recorder.model_call_finished)
    tool_call_started = _mortal(_Recorder.tool_call_started)
    tool_call_answered = _mortal(_Recorder.tool_call_answered)
    tool_call_finished = _mortal(_Recorder.tool_call_finished)
    write_events = _mortal(_Recorder.write_events)
    stage_timeline = _mortal(_Recorder.stage_timeline)
    evidence = _mortal(_Recorder.evidence)
    is_confirmed = _mortal(_Recorder.is_confirmed)
    changes_for_git = _mortal(_Recorder.changes_for_git)
    told_results = _mortal(_Recorder.told_results)
    first_attempt = _mortal(_Recorder.first_attempt)
    history = _mortal(_Recorder.history)
    budget_exceeded = _mortal(_Recorder.budget_exceeded)
    pin_tools = _mortal(_Recorder.pin_tools)
    degrade_evidence = _mortal(_Recorder.degrade_evidence)

    def die(self) -> None:
        """Dies here."""
        self.dead = True
        self.lose_held()
        raise Crash(f"at {self.calls[-1]}")
