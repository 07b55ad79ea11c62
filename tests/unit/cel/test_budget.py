"""Tests that an evaluation stops at its limits of cost and time, under both names of the evaluator."""

from itertools import count

import pytest

import embedded_kubeapi.cel
import tarsy.cel
from tarsy.cel import CelCostError, compile_program
from tarsy.cel.budget import CostBudget

TEN = compile_program("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(n, n > 0)", ())


@pytest.mark.parametrize(("units", "stops"), [(9, True), (10, False), (11, False)])
def test_cost_at_below_and_above_its_limit(units: int, stops: bool) -> None:
    if stops:
        with pytest.raises(CelCostError, match="cost limit"):
            TEN.evaluate({}, CostBudget(units))
    else:
        assert TEN.evaluate({}, CostBudget(units)) is True


@pytest.mark.parametrize(("seconds", "stops"), [(9, True), (10, False), (11, False)])
def test_time_at_below_and_above_its_limit(seconds: int, stops: bool) -> None:
    ticks = count()
    budget = CostBudget(1000, seconds=seconds, clock=lambda: float(next(ticks)))
    if stops:
        with pytest.raises(CelCostError, match="time limit"):
            TEN.evaluate({}, budget)
    else:
        assert TEN.evaluate({}, budget) is True


def test_text_that_doubles_with_each_macro_is_stopped() -> None:
    doubling = "['abcdefgh']" + ".map(x, x + x)" * 40
    with pytest.raises(CelCostError):
        compile_program(doubling, ()).evaluate({})


def test_both_packages_evaluate_with_one_source() -> None:
    text = "size(name) == 3 && name.matches('^[a-z]+$')"
    for package in (tarsy.cel, embedded_kubeapi.cel):
        assert package.compile_program(text, ("name",)).evaluate({"name": "abc"}) is True
