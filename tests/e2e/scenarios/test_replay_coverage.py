"""Replays that ask for what is not recorded: the floor of coverage, `onMiss: Live` and `Simulate`."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.record import Run
from e2e.scenarios.scene import Scene
from tarsy.engine.tool_calls.simulation import MADE_UP
from tarsy.evals.toolbox import OF_NOW
from tarsy.record.messages import ToolCall
from wire.scripted_client import Answer

PODS = calls("kubernetes.list_pods", namespace="shop")
CONFIGURATION = """
kind: MCPServer
name: deploy
spec:
  transport: {type: http, http: {url: "https://tools.example/deploy"}}
  toolPolicy: All
  trustAnnotations: true
"""
AGENT = """
---
kind: Agent
name: NAME
spec: {mcpServers: [{name: kubernetes}, {name: deploy}], toolPolicy: All}
---
kind: Chain
name: NAME
spec:
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages: [{name: look, agents: [{name: NAME}]}]
"""
RECORDED = AGENT.replace("llmProvider", "alertTypes: [CheckoutDown]\n  llmProvider").replace("NAME", "first")


def asked(known: int, unknown: int) -> list[Answer]:
    """An agent that repeats recorded calls after others that are not recorded; it cites the last of them."""
    new = [calls("kubernetes.list_pods", namespace=f"new-{index}") for index in range(unknown)]
    old = [calls("kubernetes.list_pods", namespace=f"old-{index}") for index in range(1, known)]
    return [says("", *new, *old, PODS), says("checkout crashes." + CONCLUSION)]


CONCLUSION = finding("checkout crashes.", "High", ("It crashes.", "kubernetes.list_pods", "CrashLoopBackOff"))


def told(run: Run) -> Iterator[tuple[str, str, str]]:
    for execution in run.executions:
        for call in execution.tool_calls:
            yield call["tool"], call["rung"], call["result"]


def replayed(chain: str, **replay: Any) -> dict[str, Any]:
    return {"overrides": {"chainRef": {"name": chain}}, **replay}


@pytest.mark.heavy("the floor is a unit test")
async def test_below_the_floor_nothing_is_concluded(scene: Scene) -> None:
    shares = {"below": (2, 1), "at": (7, 3), "above": (3, 1)}
    configuration = CONFIGURATION + RECORDED + "".join(AGENT.replace("NAME", name) for name in shares)
    answers = {"first": asked(7, 0), **{name: asked(*share) for name, share in shares.items()}}
    async with scene.product(configuration, answers):
        await scene.alert("down", "checkout answers 502")
        await scene.run("down")
        runs = {name: await scene.replay("down", name, **replayed(name)) for name in shares}
    found = {name: run.record.outcome for name, run in runs.items()}
    concluded = {name: (o.finding.confidence.value, o.finding.notes) for name, o in found.items() if o and o.finding}
    assert concluded["below"][0] == "Inconclusive"
    assert concluded["below"][1][-1].startswith("The record answered 2 of 3 tool calls of this replay; below 70%")
    assert concluded["at"][0] != "Inconclusive" and concluded["above"][0] != "Inconclusive", concluded
    coverage = {name: o.replay.coverage for name, o in found.items() if o and o.replay}
    assert coverage == {"below": 2 / 3, "at": 0.7, "above": 0.75}


async def test_live_and_simulate_answer_for_tools_that_read_and_never_for_one_that_changes_something(
    scene: Scene,
) -> None:
    history, rollback = calls("deploy.history", name="frontend"), calls("deploy.rollback", name="frontend")
    first = [says("", PODS, calls("deploy.history", name="checkout")), says("checkout crashes.")]
    called: tuple[ToolCall, ...] = (PODS, history, rollback)
    other = [says("", *called), says("It crashes." + CONCLUSION)]
    configuration = CONFIGURATION + RECORDED + AGENT.replace("NAME", "other")
    answers = {"first": first, "other": other, "other:simulation": [says("frontend: revision 3")]}
    async with scene.product(configuration, answers):
        await scene.alert("down", "checkout answers 502")
        await scene.run("down")
        opened = scene.opened
        refused = await scene.replay("down", "refused", **replayed("other"))
        assert scene.opened == opened
        live = await scene.replay("down", "live", **replayed("other", onMiss="Live"))
        assert scene.opened > opened
        opened = scene.opened
        made_up = await scene.replay("down", "made-up", **replayed("other", onMiss="Simulate"))
        assert scene.opened == opened
    assert [rung for _, rung, _ in told(refused)] == ["exact", "miss", "miss"]
    by_tool = {tool: (rung, result) for tool, rung, result in told(live)}
    assert by_tool["list_pods"][0] == "exact"
    assert by_tool["history"][0] == "live" and by_tool["history"][1].startswith(f"{OF_NOW}frontend: revision 7")
    assert [rung for _, rung, _ in told(made_up)] == ["exact", "simulated", "miss"]
    assert next(result for tool, _, result in told(made_up) if tool == "history") == MADE_UP + "frontend: revision 3"
    outcome = made_up.record.outcome
    assert outcome is not None and outcome.replay is not None and outcome.replay.coverage < 0.7
    assert outcome.finding is not None and "made up the answers to 1 of 3 tool calls" in " ".join(outcome.finding.notes)
    assert by_tool["rollback"][0] == "miss" and "is at revision 6" not in by_tool["rollback"][1]
