"""Every step of the port reaches the record through the observers, with its signature."""

import inspect
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from tarsy.engine.ports import Recorder
from tarsy.record.run import LeaseLost
from tarsy.runtime.observed_recorder import RunObserver, observed

STEPS = [name for name, _ in inspect.getmembers(Recorder, inspect.iscoroutinefunction)]


class Fenced(RunObserver):
    """Counts what the record refused."""

    def __init__(self) -> None:
        self.refused = 0

    def lease_lost(self) -> None:
        self.refused += 1


def arguments(step: str) -> tuple[Any, ...]:
    given = inspect.signature(getattr(Recorder, step)).parameters.values()
    thing = SimpleNamespace(id=1, execution=2, state=SimpleNamespace(finished=False))
    return tuple(thing for parameter in given if parameter.name != "self" and parameter.default is parameter.empty)


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_is_written_with_what_it_was_given_and_its_result_comes_back(step: str) -> None:
    record = SimpleNamespace(state=SimpleNamespace(finished=True))
    writer = SimpleNamespace(**{step: AsyncMock(return_value=record)})

    returned = await getattr(observed(cast(Recorder, writer), [RunObserver()]), step)(*arguments(step))

    assert returned is record or inspect.signature(getattr(Recorder, step)).return_annotation is None
    (call,) = getattr(writer, step).await_args_list
    assert call.args[: len(arguments(step))] == arguments(step)


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_the_record_refuses_is_reported_and_raised(step: str) -> None:
    observer = Fenced()
    writer = SimpleNamespace(**{step: AsyncMock(side_effect=LeaseLost("another attempt owns the run"))})

    with pytest.raises(LeaseLost):
        await getattr(observed(cast(Recorder, writer), [observer]), step)(*arguments(step))

    assert observer.refused == 1


def test_what_the_recorder_writes_out_has_the_signature_of_the_port() -> None:
    made = type(observed(cast(Recorder, SimpleNamespace()), []))
    for step in set(STEPS) & set(vars(made)):
        assert inspect.signature(getattr(made, step)) == inspect.signature(getattr(Recorder, step)), step
