"""Two runs reach a time limit: one as a whole, one because its model twice sends nothing.

The limits are a multiple of what the steps before them take on a loaded machine: a run that is cut short of its second
call is another golden.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import Gate, calls, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: whole-run
spec:
  llmProvider: scripted
  timeouts: {investigationSeconds: 20}
  stages:
  - {name: collect, agents: [{name: collector, displayName: quick}, {name: collector, displayName: slow}]}
  - {name: conclude, agents: [{name: collector}]}
---
kind: Chain
name: silent-model
spec:
  llmProvider: scripted
  timeouts: {firstTokenSeconds: 5}
  stages:
  - {name: collect, agents: [{name: collector, displayName: unheard}]}
  - {name: conclude, agents: [{name: collector}]}
"""


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    never = Gate()
    pods = calls("kubernetes.list_pods", namespace="shop")
    answers = {
        "quick": [says("I look.", pods), says("The pod checkout-5d4f crashes.")],
        "slow": [says("I look.", pods), says("Never said.", wait=never)],
        "unheard": [says("I look.", pods), says("Never said.", wait=never), says("Nor this.", wait=never)],
    }
    async with scene.product(CONFIGURATION, answers):
        await scene.alert("too-long", "Checkout answers 502.", chainRef={"name": "whole-run"})
        await scene.alert("no-word", "Checkout answers 502.", chainRef={"name": "silent-model"})
        yield {
            "timeout-run": Played("too-long", await scene.run("too-long")),
            "timeout-model": Played("no-word", await scene.run("no-word")),
        }


async def test_runs_that_take_too_long_end_at_every_level(scene: Scene) -> None:
    await check_goldens(played, scene)
