"""A person asks a run to conclude while its first stage works: it says what it knows, and later stages do not begin."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import Gate, calls, finding, says
from e2e.scenarios.played import Played, check_goldens
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


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    probe, tries = Gate(), Gate()
    tries.set()
    answers = {
        "collector": [
            says("I look at the pods.", calls("kubernetes.list_pods", namespace="shop")),
            says("I try the port.", calls("network.probe", host="ledger-db.pay", port=5432), wait=tries),
            says(CONCLUSION),
        ],
        "executive-summary": [says("Checkout crashes; why is not known yet.")],
    }

    async def concluded(replay: str) -> None:
        await scene.reached(tries)
        async with scene.pool.acquire() as connection, connection.transaction():
            # No tool is called that could hold a replay, so the record does: between its model call and its tool call.
            await connection.execute("LOCK TABLE mcp_interaction IN EXCLUSIVE MODE")
            tries.set()
            await scene.want_replay(replay, "Concluded")

    async with scene.product(CONFIGURATION, answers, tools={"probe": probe}):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        await scene.reached(probe)
        await scene.want("checkout-down", "Concluded")
        probe.set()
        run = await scene.run("checkout-down")
        tries.clear()
        tries.reached.clear()
        yield {"conclude": Played("checkout-down", run, concluded)}


async def test_run_that_is_asked_to_conclude_says_what_it_knows(scene: Scene) -> None:
    await check_goldens(played, scene)
