"""Two investigations side by side, as `compare` prints them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tarsy.cli.runs.compare import compare_runs
from tarsy.client.refusals import Right
from tarsy.http.views.common import Spent
from tarsy.http.views.comparison import ComparedAgent, ComparedRun, Comparison, StepView
from tarsy.http.views.timeline import ReplayView
from tarsy.record.finding import Confidence
from tarsy.record.run import State
from unit.cli.people.doors import FakeDoor


class OneComparison(FakeDoor):
    """Serves a comparison, and notes what was asked."""

    def __init__(self, found: Comparison) -> None:
        super().__init__({}, [])
        self._found = found

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.asked.append((path, dict(query or {})))
        return self._found.model_dump(mode="json", by_alias=True)


def side(
    name: str, summary: str = "A key is missing.", replay: ReplayView | None = None, shown: str | None = "High"
) -> ComparedRun:
    return ComparedRun(
        namespace="shop",
        name=name,
        state=State.COMPLETED,
        alert_type="PodCrash",
        chain="triage",
        seconds=90.0,
        spent=Spent(input_tokens=100, output_tokens=10, total_tokens=110, cost_usd=0.25),
        model_calls=2,
        tool_calls=2,
        confidence=Confidence.HIGH,
        shown_confidence=shown,
        summary=summary,
        claims=("the key is missing",),
        failure=None,
        replay=replay,
    )


def agent(*first: StepView, second: tuple[StepView, ...] = (), **changes: Any) -> ComparedAgent:
    fields: dict[str, Any] = {"same": 1, "first_calls": 2, "second_calls": 2, "only_in": None, **changes}
    return ComparedAgent(stage="look", agent="triage", first=first, second=second, **fields)


def step(tool: str, arguments: str = "{}") -> StepView:
    return StepView(tool=tool, arguments=arguments)


async def shown(capsys: pytest.CaptureFixture[str], *agents: ComparedAgent, **of_second: Any) -> str:
    found = Comparison(first=side("a"), second=side("b", **of_second), agents=agents)
    assert await compare_runs(OneComparison(found), "shop", "a", "b", "text") == 0
    return " ".join(capsys.readouterr().out.split())


async def test_the_api_compares_and_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    door = OneComparison(Comparison(first=side("a"), second=side("b"), agents=()))
    assert await compare_runs(door, "shop", "a", "b", "json") == 0
    assert json.loads(capsys.readouterr().out)["first"]["spent"]["costUSD"] == 0.25
    assert door.asked == [("/namespaces/shop/investigations/a/trace/comparison", {"other": "b"})]


async def test_the_first_call_that_differs_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = await shown(capsys, agent(step("k.logs", '{"pod":"x"}'), step("k.pods"), second=(step("k.events"),)))
    assert "1 tool call the same, then call 2 differs" in found
    assert 'a k.logs {"pod":"x"} b k.events {}' in found and "k.pods" not in found
    assert "made no further call" in await shown(capsys, agent(step("k.logs")))


async def test_runs_with_the_same_calls_are_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    found = await shown(capsys, agent(), summary="Other words.")
    assert "1 tool call, the same in both" in found and "Other words." in found
    assert "no tool call in either" in await shown(capsys, agent(same=0))
    assert "the first tool call differs" in await shown(capsys, agent(step("k.logs"), same=0))
    assert "only in b" in await shown(capsys, agent(only_in="second"))
    assert "Neither run has called a tool." in await shown(capsys)


@pytest.mark.parametrize(("said", "row"), [("High (12 of 20 right)",) * 2, (None, "High")])
async def test_a_confidence_is_shown_as_people_read_it(
    capsys: pytest.CaptureFixture[str], said: str | None, row: str
) -> None:
    assert f"Confidence High {row} Finding" in await shown(capsys, shown=said)


async def test_what_models_and_tools_wrote_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    steps = agent(step("pods\x1b[1m"), second=(step("k.logs", '{"pod":"\x1b[2J"}'),))
    assert "\x1b[2J" not in await shown(capsys, steps, summary="gone \x1b[2J")


async def test_a_replay_tells_its_coverage_its_rungs_and_where_it_first_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    apart = "Stage 1, agent 2, call 3: recorded k.logs {}; now no further call"
    replay = ReplayView(coverage=2 / 3, rungs={"exact": 2, "miss": 1}, unused_calls=4, divergence=apart)
    found = await shown(capsys, replay=replay)
    assert "b is a replay coverage 67% (exact 2, miss 1); 4 recorded calls are not used" in found
    assert f"First divergence: {apart}" in found and "a is a replay" not in found
