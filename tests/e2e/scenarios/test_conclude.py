"""A person asks a run to conclude while its first stage works: it says what it knows, and later stages do not begin."""

from e2e.scenarios.brain import Gate, calls, finding, says
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {mcpServers: [{name: kubernetes}, {name: network}], toolPolicy: All}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  stages:
  - {name: collect, agents: [{name: collector}]}
  - {name: check, agents: [{name: collector, displayName: checker}]}
"""

CONCLUSION = "The pods tell that checkout crashes, not why." + finding(
    "checkout-5d4f is in CrashLoopBackOff; the cause is not known yet.",
    "Medium",
    ("The pod crashes.", "kubernetes.list_pods", "checkout-5d4f 0/1 CrashLoopBackOff"),
)


async def test_run_that_is_asked_to_conclude_says_what_it_knows(scene: Scene) -> None:
    probe = Gate()
    answers = {
        "collector": [
            says("I look at the pods.", calls("kubernetes.list_pods", namespace="shop")),
            says("I try the port.", calls("network.probe", host="ledger-db.pay", port=5432)),
            says(CONCLUSION),
        ],
        "executive-summary": [says("Checkout crashes; why is not known yet.")],
    }
    async with scene.product(CONFIGURATION, answers, tools={"probe": probe}):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        await scene.reached(probe)
        await scene.want("checkout-down", "Concluded")
        probe.set()
        run = await scene.run("checkout-down")
    scene.check("conclude", run)
