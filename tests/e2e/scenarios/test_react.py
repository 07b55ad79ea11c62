"""ReAct: proper roles, no bound tools; a tool that does not exist, a malformed answer, a final one."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec:
  strategy: react
  instructions: You look for the cause in the cluster.
  mcpServers: [{name: kubernetes}]
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages:
  - name: collect
    agents: [{name: collector}]
"""

FINAL = "The database of checkout refuses connections." + finding(
    "checkout cannot reach its database.",
    "High",
    ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
)

COLLECTOR = [
    says('Thought: I start with the pods.\nAction: kubernetes.list_pods\nAction Input: {"namespace": "shop"}'),
    says("Thought: checkout-5d4f crashes.\n**Action:** kubernetes.read_logs\nAction Input: pod: checkout-5d4f"),
    says("I think that I should look at the logs now."),
    says("Thought: The tool is get_logs.\nAction: kubernetes.get_logs\nAction Input: pod: checkout-5d4f, lines: 2"),
    says(f"Thought: That is the cause.\nFinal Answer: {FINAL}"),
]


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, {"collector": COLLECTOR}):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        yield {"react": Played("checkout-down", await scene.run("checkout-down"))}


async def test_react_agent_hears_of_its_mistakes_and_concludes(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["react"].run
    roles = {message.role.value for call in run.execution("0-collector").model_calls for message in call.sent}
    assert roles == {"system", "user", "assistant"}
