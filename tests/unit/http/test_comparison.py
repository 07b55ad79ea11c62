"""Two investigations side by side: their tool calls, agent by agent."""

import pytest

from tarsy.evals.divergence import ToolStep
from tarsy.http.views.comparison import (
    MOST_ARGUMENTS,
    MOST_STEPS,
    Calls,
    ComparedAgent,
    calls_by_agent,
    compare_calls,
)
from tarsy.record.reading.trace import PlacedCall


def calls(*tools: str, agent: str = "triage", arguments: str = "{}") -> Calls:
    return calls_by_agent([], [PlacedCall("look", agent, tool, arguments) for tool in tools])


def compared(first: Calls, second: Calls) -> ComparedAgent:
    (found,) = compare_calls(first, second)
    return found


def test_runs_part_at_the_first_call_that_differs_and_their_calls_from_there_are_shown() -> None:
    found = compared(calls("k.pods", "k.logs", "k.events"), calls("k.pods", "k.events"))
    assert (found.same, found.first_calls, found.second_calls, found.only_in) == (1, 3, 2, None)
    assert [step.tool for step in found.first] == ["k.logs", "k.events"]
    assert [step.tool for step in found.second] == ["k.events"]


def test_arguments_are_compared_by_what_they_mean() -> None:
    found = compared(calls("k.pods", arguments='{"b":1,"a":2}'), calls("k.pods", arguments='{"a": 2, "b": 1}'))
    assert (found.same, found.first, found.second) == (1, (), ())


def test_a_run_that_stops_earlier_made_no_further_call() -> None:
    found = compared(calls("k.pods", "k.logs"), calls("k.pods"))
    assert ([step.tool for step in found.first], found.second) == (["k.logs"], ())


def test_an_agent_of_one_run_only_is_named() -> None:
    ours, theirs = calls("k.pods"), calls("k.pods", agent="second")
    found = compare_calls(ours, {**ours, **theirs})
    assert [(one.agent, one.only_in) for one in found] == [("triage", None), ("second", "second")]
    assert [one.only_in for one in compare_calls({**ours, **theirs}, ours)] == [None, "first"]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_calls_that_are_shown_are_bounded(more: int) -> None:
    found = compared(calls(*["k.pods"] * (MOST_STEPS + more)), calls())
    assert len(found.first) == min(MOST_STEPS, MOST_STEPS + more)
    assert found.first_calls == MOST_STEPS + more


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_arguments_that_are_shown_are_bounded(more: int) -> None:
    text = "x" * (MOST_ARGUMENTS + more)
    shown = compared({("look", "triage"): [ToolStep("k.pods", text)]}, calls()).first[0].arguments
    assert (shown == text) == (more <= 0) and len(shown) <= MOST_ARGUMENTS
