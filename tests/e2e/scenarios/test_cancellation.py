"""Two runs are cancelled: one while two agents wait for their models, one while a tool works."""

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
kind: Agent
name: prober
spec: {mcpServers: [{name: network}], toolPolicy: All}
---
kind: Chain
name: waits-for-models
spec:
  llmProvider: scripted
  stages:
  - {name: collect, agents: [{name: collector, displayName: one}, {name: collector, displayName: two}]}
  - {name: conclude, agents: [{name: collector}]}
---
kind: Chain
name: waits-for-a-tool
spec:
  llmProvider: scripted
  stages:
  - {name: probe, agents: [{name: prober}]}
"""


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    one, two, tool = Gate(), Gate(), Gate()
    answers = {
        "one": [says("Never said.", wait=one)],
        "two": [says("I look.", calls("kubernetes.list_pods", namespace="shop")), says("Never said.", wait=two)],
        "prober": [
            says("I try the port.", calls("network.probe", host="ledger-db.pay", port=5432)),
            says("Nobody tells what the port says."),
        ],
    }

    async def cancelled(replay: str) -> None:
        for gate in (one, two):
            gate.reached.clear()
        for gate in (one, two):
            await scene.reached(gate)
        await scene.want_replay(replay, "Cancelled")

    async with scene.product(CONFIGURATION, answers, tools={"probe": tool}):
        await scene.alert("by-model", "Checkout answers 502.", chainRef={"name": "waits-for-models"})
        await scene.alert("by-tool", "Checkout answers 502.", chainRef={"name": "waits-for-a-tool"})
        for gate in (one, two, tool):
            await scene.reached(gate)
        for alert in ("by-model", "by-tool"):
            await scene.want(alert, "Cancelled")
        yield {
            "cancellation-model": Played("by-model", await scene.run("by-model"), cancelled),
            "cancellation-tool": Played("by-tool", await scene.run("by-tool")),
        }


async def test_cancelled_runs_stop_where_they_are(scene: Scene) -> None:
    await check_goldens(played, scene)
