"""Replays of scenarios with the same script: the same prompts, tool calls and finding, each answer from the record."""

from collections.abc import Mapping, Sequence

import pytest

from e2e.scenarios import test_pipeline as pipeline
from e2e.scenarios import test_react as react
from e2e.scenarios.layers import spoken
from e2e.scenarios.scene import Scene
from wire.scripted_client import Answer

ALERT = "checkout answers 502 in namespace shop"
SCENARIOS = {
    "pipeline": (pipeline.CONFIGURATION, pipeline.ANSWERS, pipeline.ALERT),
}


async def test_a_replay_with_the_same_script_is_the_same_run_without_a_tool_server(scene: Scene) -> None:
    await _replayed(scene, react.CONFIGURATION, {"collector": react.COLLECTOR}, ALERT)


@pytest.mark.heavy("one small scenario stays")
@pytest.mark.parametrize("name", sorted(SCENARIOS))
async def test_every_scenario_replays_byte_for_byte(scene: Scene, name: str) -> None:
    await _replayed(scene, *SCENARIOS[name])


async def _replayed(scene: Scene, configuration: str, answers: Mapping[str, Sequence[Answer]], data: str) -> None:
    async with scene.product(configuration, answers):
        await scene.alert("checkout-down", data)
        run = await scene.run("checkout-down")
        opened = scene.opened
        again = await scene.replay("checkout-down", "again")
    assert scene.opened == opened, "a replay opened a tool server"
    assert spoken(again, run) == spoken(run)
    report = again.record.outcome.replay if again.record.outcome else None
    assert report is not None and report.coverage == 1.0 and report.divergence is None
    assert set(report.rungs) <= {"exact"} and report.source == run.record.id
    made = [call for execution in again.executions for call in execution.tool_calls if call["made"]]
    assert report.rungs.get("exact", 0) == len(made) and all(call["cassette_line"] for call in made)
