"""Tests which parameters of a step have no effect, and that the statements without them are otherwise the same."""

from dataclasses import replace
from uuid import UUID

import pytest

from integration.store.build import model_call, model_result, tool_call, tool_result
from tarsy.store.queries import load
from tarsy.store.runs import steps
from tarsy.store.runs.steps import Step

OF = UUID(int=1)
DEFINITIONS = [{"name": "kubernetes.get"}]
STORED = steps.model_call_started(model_call(OF), [], "hash", None)
CALLED = steps.tool_call_started(tool_call(OF), [])


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        pytest.param(STORED, steps.tool_call_finished(tool_result(OF), []), id="model call"),
        pytest.param(CALLED, steps.model_call_finished(model_result(OF), []), id="tool call"),
    ],
)
def test_a_plain_statement_lacks_the_parameters_without_effect_and_no_other(begun: Step, ended: Step) -> None:
    both = begun.after(ended)
    assert both is not None and both.spare == begun.spare != frozenset()
    full, plain = load("writer")[both.query], load("writer")[f"{both.query}__plain"]
    assert plain.names == full.names - both.spare


@pytest.mark.parametrize(
    "step",
    [
        steps.model_call_started(model_call(OF), [], "hash", DEFINITIONS),
        steps.model_call_started(replace(model_call(OF), superseded={1: "less"}), [], "hash", None),
        steps.tool_call_started(tool_call(OF, attempt=1), []),
        steps.tool_call_started(replace(tool_call(OF), approval=UUID(int=2)), []),
    ],
    ids=["new tool set", "compaction", "later try", "approval"],
)
def test_parameters_with_an_effect_are_written(step: Step) -> None:
    assert step.spare == frozenset()
