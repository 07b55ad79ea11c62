"""An agent dispatches another one twice, each time with a hypothesis: only one is borne out by a citation."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.record.messages import ToolCall
from tarsy.record.run import State

CONFIGURATION = """
kind: Agent
name: lead
spec:
  instructions: You let others look.
  mcpServers: [{name: kubernetes, tools: [list_pods]}]
---
kind: Agent
name: reader
spec:
  description: Reads the state and the logs of pods.
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
    agents:
    - name: lead
      subAgents: [{agentRef: {name: reader}, maxDispatches: 2}]
      subAgentLimits: {concurrent: 1, dispatches: 2}
"""

DATABASE = "checkout cannot reach its database"
MEMORY = "checkout runs out of memory"


def _dispatch(hypothesis: str) -> ToolCall:
    arguments = {"name": "reader", "task": "Look at the pods of checkout in namespace shop.", "hypothesis": hypothesis}
    return ToolCall(f"fc_{len(hypothesis)}", "dispatch_agent", json.dumps(arguments))


def _verdict(verdict: str, *claims: tuple[str, str, str]) -> str:
    return finding("Looked at the log.", "High", *claims).replace('"claims"', f'"verdict": "{verdict}",\n "claims"')


ANSWERS = {
    "lead": [
        says("I let the first cause be tested.", calls("kubernetes.list_pods", namespace="shop"), _dispatch(DATABASE)),
        says("I wait for the first."),
        says("And the second.", _dispatch(MEMORY)),
        says("I wait for the second."),
        says(
            "The database refuses connections."
            + finding(
                "checkout cannot reach its database.",
                "Low",
                ("checkout-5d4f crashes.", "kubernetes.list_pods", "CrashLoopBackOff"),
            )
        ),
    ],
    "reader-1": [
        says("I read the log.", calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2)),
        says(
            "The connection is refused."
            + _verdict("Supported", ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"))
        ),
    ],
    "reader-2": [
        says("I look at the pods.", calls("kubernetes.list_pods", namespace="shop")),
        says("It is memory for sure." + _verdict("Supported")),
    ],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        yield {"sub-agents": Played("checkout-down", await scene.run("checkout-down"))}


async def test_hypotheses_come_back_with_verdicts_that_the_record_bears_out(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["sub-agents"].run
    lead, *readers = run.executions
    assert run.record.state is State.COMPLETED
    assert [row.row["display_name"] for row in readers] == ["reader-1", "reader-2"]
    assert {row.row["parent"] for row in readers} == {lead.row["id"]}
    assert [row.row["verdict"]["verdict"] for row in readers] == ["Supported", "Unresolved"]
    assert readers[1].row["verdict"]["reason"] == "the agent says Supported, but it cites nothing"
    assert run.record.tool_calls == 3  # those of servers
