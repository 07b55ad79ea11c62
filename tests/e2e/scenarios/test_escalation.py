"""A cheap model is not sure, so its stage runs once more with a dear one, which asks no tool twice."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.record.run import State

CONFIGURATION = """
kind: LLMProvider
name: dear
spec:
  type: openai
  model: large-1
  rates: {inputPerMillion: 20, outputPerMillion: 100}
---
kind: Agent
name: triage
spec: {mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages:
  - name: triage
    agents: [{name: triage}]
    escalate:
      when: confidence in ["Low", "Inconclusive"] || claims.exists(c, !c.supported)
      to: dear
"""

PODS = calls("kubernetes.list_pods", namespace="shop")
LOGS = calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2)

ANSWERS = {
    "triage@scripted": [
        says("I look at the pods.", PODS),
        says(
            "Something crashes."
            + finding("checkout crashes.", "Low", ("It crashes.", "kubernetes.list_pods", "CrashLoopBackOff"))
        ),
    ],
    "triage@dear": [
        says("I look at the pods, and at the log.", PODS, LOGS),
        says(
            "The database refuses connections."
            + finding(
                "checkout cannot reach its database.",
                "Medium",
                ("checkout-5d4f crashes.", "kubernetes.list_pods", "CrashLoopBackOff"),
                ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
            )
        ),
    ],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        yield {"escalation": Played("checkout-down", await scene.run("checkout-down"))}


async def test_the_second_attempt_gets_the_evidence_of_the_first_and_its_finding_counts(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["escalation"].run

    record, (first, second) = run.record, run.executions
    assert record.state is State.COMPLETED and record.outcome is not None and record.outcome.finding is not None
    assert [stage.name for stage in record.stages] == ["triage", "triage-escalated"]
    assert record.stages_planned == 2
    found = record.outcome.finding
    assert (found.summary, found.supported_claims) == ("checkout cannot reach its database.", 2)
    assert found.notes[-1].startswith("Stage triage ran twice: this is the finding of its second attempt")
    assert [call["rung"] for call in first.tool_calls] == [None]
    assert [(call["tool"], call["rung"]) for call in second.tool_calls] == [("list_pods", "exact"), ("get_logs", None)]
    assert [execution.row["provider"] for execution in run.executions] == ["scripted", "dear"]
    # 2 calls of 1,000 and 100 tokens each, at 2 and 10 dollars a million, and at ten times as much
    assert record.cost_usd is not None and f"{record.cost_usd:.4f}" == "0.0660"
