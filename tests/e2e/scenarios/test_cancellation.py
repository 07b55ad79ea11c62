"""Two runs are cancelled: one while two agents wait for their models, one while a tool works."""

from e2e.scenarios.brain import Gate, calls, says
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


async def test_cancelled_runs_stop_where_they_are(scene: Scene) -> None:
    one, two, tool = Gate(), Gate(), Gate()
    answers = {
        "one": [says("Never said.", wait=one)],
        "two": [says("I look.", calls("kubernetes.list_pods", namespace="shop")), says("Never said.", wait=two)],
        "prober": [says("I try the port.", calls("network.probe", host="ledger-db.pay", port=5432))],
    }
    async with scene.product(CONFIGURATION, answers, tools={"probe": tool}):
        await scene.alert("by-model", "Checkout answers 502.", chainRef={"name": "waits-for-models"})
        await scene.alert("by-tool", "Checkout answers 502.", chainRef={"name": "waits-for-a-tool"})
        for gate in (one, two, tool):
            await scene.reached(gate)
        for alert in ("by-model", "by-tool"):
            await scene.want(alert, "Cancelled")
        by_model, by_tool = await scene.run("by-model"), await scene.run("by-tool")
    scene.check("cancellation-model", by_model)
    scene.check("cancellation-tool", by_tool)
