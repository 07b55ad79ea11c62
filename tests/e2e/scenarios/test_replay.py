"""Replays of all golden scenarios with the same script: the same prompts, calls and finding, all from the record."""

from collections import Counter
from functools import partial

import pytest

from e2e.scenarios import (
    test_budget,
    test_cancellation,
    test_chat,
    test_conclude,
    test_concurrency,
    test_escalation,
    test_native_thinking,
    test_pipeline,
    test_react,
    test_resilience,
    test_skills,
    test_sub_agents,
    test_timeout,
    test_tool_policy,
)
from e2e.scenarios.layers import spoken
from e2e.scenarios.played import Play, Played
from e2e.scenarios.scene import GOLDENS, Scene

SCENARIOS: dict[str, tuple[Play, tuple[str, ...]]] = {
    "budget": (test_budget.played, ("budget-tool-calls", "budget-tokens")),
    "cancellation": (test_cancellation.played, ("cancellation-model",)),
    "conclude": (test_conclude.played, ("conclude",)),
    "concurrency": (test_concurrency.played, tuple(f"concurrency-{alert}" for alert in test_concurrency.ALERTS)),
    "escalation": (test_escalation.played, ("escalation",)),
    "pipeline": (test_pipeline.played, ("pipeline",)),
    "propagation": (partial(test_resilience.played, policy="All"), ("propagation",)),
    "resilience": (partial(test_resilience.played, policy="Any"), ("resilience",)),
    "skills": (test_skills.played, ("skills",)),
    "sub-agents": (test_sub_agents.played, ("sub-agents",)),
    "timeout": (test_timeout.played, ("timeout-run", "timeout-model")),
    "tool-policy": (test_tool_policy.played, ("tool-policy",)),
}
"""Scenarios beside the small one, each with those of its goldens that are replayed byte for byte."""

MISSES = {
    "cancellation-tool": (test_cancellation.played, {"miss": 1}),  # the call was cut short, so it has no result
    "native-thinking": (test_native_thinking.played, {"exact": 2, "miss": 2}),  # tools of the provider
}
"""Goldens that a replay cannot answer from the record, with the rungs of their calls."""

QUESTIONS = ("chat-first", "chat-second", "chat-cancelled", "chat-timeout")
"""Goldens of answers to questions: an Investigation is replayed, a question about it is not."""

HELD_BACK = ("quota-queue", "quota-reject", "quota-triage")
"""Goldens of runs that a spent quota holds back, rejects or has answered without a model."""

ACTED = ("action-stage", "action-stage-rejected")
"""Goldens of stages that act: a replay sends nothing that changes something, and says so in their place."""

AFTERWARDS = ("calibration", "default", "outcome", "precedents", "review", "schedule", "scoring")
"""Goldens of what comes before or after a run; the run itself is the small one."""


def test_every_golden_is_replayed_or_named() -> None:
    replayed = [golden for _, goldens in SCENARIOS.values() for golden in goldens]
    there = sorted(path.name for path in GOLDENS.iterdir())
    assert sorted(["react", *replayed, *MISSES, *QUESTIONS, *HELD_BACK, *ACTED, *AFTERWARDS]) == there


async def test_a_replay_with_the_same_script_is_the_same_run_without_a_tool_server(scene: Scene) -> None:
    await _replayed(scene, test_react.played, ("react",))


@pytest.mark.heavy("one small scenario stays")
@pytest.mark.parametrize("name", sorted(SCENARIOS))
async def test_every_scenario_replays_byte_for_byte(scene: Scene, name: str) -> None:
    await _replayed(scene, *SCENARIOS[name])


@pytest.mark.heavy("misses are a unit test")
@pytest.mark.parametrize("golden", sorted(MISSES))
async def test_what_is_not_on_record_counts_as_a_miss_and_concludes_nothing(scene: Scene, golden: str) -> None:
    play, rungs = MISSES[golden]
    async with play(scene) as played:
        again = await scene.replay(played[golden].alert, "again")
    outcome = again.record.outcome
    assert outcome is not None and outcome.replay is not None and outcome.replay.rungs == rungs
    assert outcome.finding is None or outcome.finding.confidence == "Inconclusive"


@pytest.mark.heavy("the runs that they are about are of the small scenario's kind")
async def test_runs_that_were_asked_about_replay_without_their_questions(scene: Scene) -> None:
    async with test_chat.played(scene) as played:
        for answer in ("chat-first", "chat-cancelled"):
            run = played[answer].run.about
            assert run is not None
            await _same(scene, answer, Played(played[answer].alert, run))


async def _replayed(scene: Scene, play: Play, goldens: tuple[str, ...]) -> None:
    async with play(scene) as played:
        for golden in goldens:
            await _same(scene, golden, played[golden])


async def _same(scene: Scene, golden: str, source: Played) -> None:
    opened = scene.opened
    again = await scene.replay(source.alert, f"again-{golden}", meanwhile=source.meanwhile)
    assert scene.opened == opened, "a replay opened a tool server"
    assert spoken(again, source.run) == spoken(source.run), golden
    report = again.record.outcome.replay if again.record.outcome else None
    assert report is not None and report.divergence is None and report.source == source.run.record.id
    made = [call for execution in again.executions for call in execution.tool_calls if call["made"]]
    assert report.rungs == Counter(call["rung"] for call in made) and set(report.rungs) <= {"exact"}, golden
    assert report.coverage == 1.0 and all(call["cassette_line"] for call in made)
