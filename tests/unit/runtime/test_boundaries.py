"""A run whose worker drains is held at its boundaries."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tarsy.engine.ports import Recorder
from tarsy.record.run import DesiredState
from tarsy.runtime.draining_observer import DrainingObserver
from tarsy.runtime.observed_recorder import observed
from tarsy.runtime.run_control import LocalLease, RunControl

AGENT, OTHER, MODEL_CALL, TOOL_CALL = (UUID(int=number) for number in range(4))
BEGIN = {"model_call_started": MODEL_CALL, "tool_call_started": TOOL_CALL}
END: dict[str, tuple[Any, ...]] = {
    "model_call_finished": (SimpleNamespace(id=MODEL_CALL),),
    "tool_call_finished": (SimpleNamespace(id=TOOL_CALL),),
    "tool_call_answered": (TOOL_CALL, "result", 1),
}


def begins(begin: str, refused: str | None = None) -> Any:
    return SimpleNamespace(id=BEGIN[begin], execution=AGENT, refused=refused)


class Book:
    """A recorder that writes into a list, and the task of its run."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.control = RunControl(LocalLease(60.0), DesiredState.RUNNING)
        self.control.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[assignment,arg-type]
        steps = SimpleNamespace(**{name: self._writing(name) for name in (*BEGIN, *END, "finish_execution")})
        self.writer = observed(cast(Recorder, steps), [DrainingObserver(self.control)])

    def _writing(self, name: str) -> Any:
        async def write(*_: Any) -> None:
            await asyncio.sleep(0)
            self.written.append(name)

        return write

    async def stopped(self) -> bool:
        assert self.control.task is not None
        await asyncio.wait([self.control.task], timeout=0.1)
        return self.control.task.cancelled()


def test_every_step_that_begins_or_ends_outside_is_held_here() -> None:
    steps = {
        name
        for name, _ in inspect.getmembers(Recorder, inspect.iscoroutinefunction)
        if name.startswith(("model_call_", "tool_call_"))
    }
    assert steps == {*BEGIN, *END}


@pytest.mark.parametrize("begin", BEGIN)
async def test_a_draining_run_writes_no_step_as_begun(begin: str) -> None:
    book = Book()
    book.control.drain()
    begun = asyncio.create_task(getattr(book.writer, begin)(begins(begin)))

    assert await book.stopped()
    assert not begun.done() and book.written == []
    begun.cancel()


@pytest.mark.parametrize("end", END)
async def test_a_draining_run_is_stopped_once_its_step_is_on_record(end: str) -> None:
    book = Book()
    begin = "model_call_started" if end.startswith("model") else "tool_call_started"
    await getattr(book.writer, begin)(begins(begin))
    book.control.drain()
    assert not await book.stopped()

    await getattr(book.writer, end)(*END[end])

    assert book.written == [begin, end]
    assert await book.stopped()


async def test_an_execution_that_ends_has_nothing_under_way() -> None:
    book = Book()
    await book.writer.model_call_started(SimpleNamespace(id=MODEL_CALL, execution=AGENT))  # type: ignore[arg-type]
    book.control.drain()

    await book.writer.finish_execution(SimpleNamespace(execution=AGENT))  # type: ignore[arg-type]

    assert await book.stopped()
