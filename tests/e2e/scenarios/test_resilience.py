"""An agent that fails: under the policy Any its stage goes on without it, under All the chain ends there."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.llm.protocol import ModelError, ModelErrorCode

CONFIGURATION = """
kind: Agent
name: collector
spec: {instructions: You look at pods and logs., mcpServers: [{name: kubernetes}]}
---
kind: Agent
name: prober
spec: {instructions: You look at connections., mcpServers: [{name: network}], toolPolicy: All}
---
kind: Agent
name: concluder
spec: {instructions: You say what it comes to.}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  successPolicy: POLICY
  stages:
  - {name: triage, agents: [{name: concluder, displayName: triage}]}
  - {name: collect, agents: [{name: collector}, {name: prober}]}
  - {name: conclude, agents: [{name: concluder}]}
"""

REFUSED = ModelError(ModelErrorCode.INVALID_REQUEST, "HTTP 400: this model does not take these tools", retryable=False)
ANSWERS = {
    "triage": [says("The alert concerns checkout in namespace shop; its database is in namespace pay.")],
    "collector": [
        says("I read the log.", calls("kubernetes.get_logs", pod="checkout-5d4f")),
        says("checkout-5d4f: its database refuses the connection ([callId: @callId(kubernetes.get_logs)])."),
    ],
    "prober": [
        says("", calls("network.probe", host="ledger-db.pay", port=5432)),
        says("I will", error=REFUSED, usage=None),
    ],
    "synthesis-agent": [says("One agent got through: the database refuses connections, by checkout's own log.")],
    "concluder": [
        says("The database is down." + finding("The database of checkout refuses connections.", "Medium")),
    ],
    "executive-summary": [says("", error=REFUSED, usage=None)],
}


@asynccontextmanager
async def played(scene: Scene, policy: str) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION.replace("POLICY", policy), ANSWERS):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        golden = "resilience" if policy == "Any" else "propagation"
        yield {golden: Played("checkout-down", await scene.run("checkout-down"))}


async def test_stage_goes_on_without_a_failed_agent_and_a_run_without_its_summary(scene: Scene) -> None:
    await check_goldens(partial(played, policy="Any"), scene)


async def test_stage_that_needs_all_its_agents_ends_the_chain_when_one_fails(scene: Scene) -> None:
    run = (await check_goldens(partial(played, policy="All"), scene))["propagation"].run
    assert [stage["name"] for stage in run.stages] == ["triage", "collect"]  # neither synthesis nor conclusion
