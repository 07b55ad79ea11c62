"""Two runs reach their budget, one of tool calls and one of tokens: both conclude out of what they know."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {mcpServers: [{name: kubernetes}, {name: network}], toolPolicy: All}
---
kind: Chain
name: few-calls
spec:
  llmProvider: scripted
  budget: {toolCalls: 2}
  stages:
  - {name: collect, agents: [{name: collector}]}
  - {name: check, agents: [{name: collector, displayName: checker}]}
---
kind: Chain
name: few-tokens
spec:
  llmProvider: scripted
  budget: {tokens: 50000}
  stages:
  - {name: collect, agents: [{name: collector, displayName: spender}]}
  - {name: check, agents: [{name: collector, displayName: checker}]}
"""

CONCLUSION = "checkout crashes because its database refuses connections." + finding(
    "checkout's database refuses connections.",
    "Medium",
    ("The connection is refused.", "kubernetes.get_logs", "connection refused"),
)
LOGS = calls("kubernetes.get_logs", pod="checkout-5d4f")
ANSWERS = {
    "collector": [
        says("I look at the pods.", calls("kubernetes.list_pods", namespace="shop")),
        says("Now log and port.", LOGS, calls("network.probe", host="ledger-db.pay", port=5432)),
        says(CONCLUSION),
    ],
    "spender": [
        says("I look at the log.", LOGS, tokens=(20_000, 500)),
        says(CONCLUSION, tokens=(21_000, 300)),
    ],
    "executive-summary": [says("Checkout is down: its database refuses connections.")],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("calls", "Checkout answers 502.", chainRef={"name": "few-calls"})
        await scene.alert("tokens", "Checkout answers 502.", chainRef={"name": "few-tokens"})
        yield {
            "budget-tool-calls": Played("calls", await scene.run("calls")),
            "budget-tokens": Played("tokens", await scene.run("tokens")),
        }


async def test_run_that_reaches_its_budget_concludes(scene: Scene) -> None:
    await check_goldens(played, scene)
