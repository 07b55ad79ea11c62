"""A strategy is known everywhere that depends on it, or this fails."""

from typing import get_args

import pytest

from tarsy.engine.strategies.function_calls import FunctionCalls
from tarsy.engine.strategies.react_format import ReactCalls
from tarsy.engine.strategies.table import STRATEGIES, tool_call_format
from tarsy.observe import metric_table
from tarsy.plan.builtin import STRATEGY_TRAITS, StrategyWork
from tarsy.plan.model import Strategy
from tarsy.resources.v1alpha1 import common
from unit.engine.build import FakeToolbox


@pytest.mark.parametrize("strategy", Strategy)
def test_a_strategy_stands_in_every_table(strategy: Strategy) -> None:
    loops = STRATEGY_TRAITS[strategy].work is StrategyWork.TOOL_LOOP

    assert (STRATEGIES[strategy].tool_calls is not None) is loops
    assert strategy.value in get_args(common.Strategy)
    assert (strategy.value in get_args(common.LoopStrategy)) is loops
    assert strategy.value in (metric_table.STRATEGY.values or ())


def test_no_table_knows_a_strategy_that_does_not_exist() -> None:
    assert set(STRATEGIES) == set(STRATEGY_TRAITS) == set(Strategy)
    assert set(get_args(common.Strategy)) == {strategy.value for strategy in Strategy}


NO_TOOLS = FakeToolbox({}, {}, frozenset(), [])


def test_formats_of_tool_calls_have_the_names_that_loop_states_hold() -> None:
    formats = [tool_call_format(s, NO_TOOLS) for s, spec in STRATEGIES.items() if spec.tool_calls is not None]

    assert {(type(each), each.name) for each in formats} == {(FunctionCalls, "functions"), (ReactCalls, "react")}


def test_a_strategy_without_tools_has_no_format() -> None:
    with pytest.raises(AssertionError, match="single-call has no tools"):
        tool_call_format(Strategy.SINGLE_CALL, NO_TOOLS)
