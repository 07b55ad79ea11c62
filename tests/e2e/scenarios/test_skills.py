"""Skills: one is in the prompt, one is loaded and narrows the tools, one does not apply."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Skill
name: restarts
spec:
  description: Finds out why containers restart.
  appliesTo: {alertTypes: [CheckoutDown]}
  body: |
    Name the pod that restarts before you look elsewhere.
---
kind: Skill
name: databases
spec:
  description: Finds out why a database cannot be reached.
  allowedTools: [kubernetes.get_logs]
  body: |
    Quote the address that the client cannot reach.
---
kind: Skill
name: certificates
spec:
  description: Finds out which certificate expired.
  appliesTo: {alertTypes: [CertificateExpired]}
  body: List the certificates.
---
kind: Agent
name: collector
spec:
  strategy: langchain
  instructions: You look for the cause in the cluster.
  mcpServers: [{name: kubernetes}]
  skills:
  - {name: restarts, required: true}
  - {name: databases}
  - {name: certificates}
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

COLLECTOR = [
    says("I start with the pods.", calls("kubernetes.list_pods", namespace="shop")),
    says("Its database may be away.", calls("load_skill", names=["databases", "certificates"])),
    says(
        "I read the log.",
        calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2),
        calls("kubernetes.list_pods", namespace="pay"),
    ),
    says(
        "The database of checkout refuses connections."
        + finding(
            "checkout cannot reach its database.",
            "High",
            ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
        )
    ),
]


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, {"collector": COLLECTOR}):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        yield {"skills": Played("checkout-down", await scene.run("checkout-down"))}


async def test_an_agent_follows_one_skill_and_loads_another(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["skills"].run
    sent = run.execution("0-collector").model_calls[0].sent
    assert "Name the pod that restarts" in sent[0].content and "certificates: " not in sent[0].content
