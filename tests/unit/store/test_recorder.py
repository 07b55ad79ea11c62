"""Tests that `RunWriter` has the signatures of the engine's `Recorder` port, which it does not import."""

import inspect

from for_each import for_each
from tarsy.engine.ports import Recorder
from tarsy.store.runs.writer import RunWriter

METHODS = [name for name, _ in inspect.getmembers(Recorder, inspect.iscoroutinefunction)]


@for_each("name", METHODS)
def test_writer_has_each_method_of_the_recorder_with_its_signature(name: str) -> None:
    asked = inspect.signature(getattr(Recorder, name))
    given = inspect.signature(getattr(RunWriter, name))
    assert given == asked


def test_methods_of_the_recorder_are_found() -> None:
    assert {"begin_execution", "evidence", "finish_execution"} <= set(METHODS)
