"""Four stages: one agent, two side by side, two replicas, one that uses up its iterations; both kinds of synthesis."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {instructions: Collect what the cluster shows., mcpServers: [{name: kubernetes}]}
---
kind: Agent
name: reader
spec: {instructions: You read logs., mcpServers: [{name: kubernetes, tools: [get_logs]}]}
---
kind: Agent
name: prober
spec:
  instructions: You look at connections.
  strategy: native-thinking
  mcpServers: [{name: network}]
  toolPolicy: All
---
kind: Agent
name: verifier
spec: {instructions: You doubt what was concluded., mcpServers: [{name: network}], toolPolicy: All}
---
kind: Agent
name: judge
spec: {instructions: You decide whose doubt counts., strategy: synthesis-native-thinking}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  summarization: {llmProvider: thinker}
  stages:
  - {name: collect, agents: [{name: collector}]}
  - name: analyse
    agents: [{name: reader}, {name: prober, llmProvider: thinker}]
    successPolicy: All
  - name: verify
    agents: [{name: verifier}]
    replicas: 2
    synthesis: {agent: judge, strategy: synthesis-native-thinking, llmProvider: thinker}
  - {name: conclude, agents: [{name: collector, displayName: concluder}], maxIterations: 1}
"""
ALERT = "checkout answers 502 in namespace shop\ndsn=postgres://checkout:hunter2secret@ledger-db.pay:5432/checkout"
RUNBOOK = "1. Look at the pods of checkout.\n2. Ask whether its database answers."

PODS = calls("kubernetes.list_pods", namespace="shop")
LEDGER = calls("kubernetes.list_pods", namespace="pay")
LOGS = calls("kubernetes.get_logs", pod="checkout-5d4f")
GATEWAY = calls("kubernetes.get_logs", pod="gateway-2f8c")
PROBE = calls("network.probe", host="ledger-db.pay", port=5432)
REFUSED = ("The database refuses connections.", "network.probe", "refused the connection")
ANSWERS = {
    "collector": [
        says("I begin with the pods, as the runbook says.", PODS, LEDGER),
        says("checkout-5d4f is in CrashLoopBackOff, ledger-0 runs ([callId: @callId(kubernetes.list_pods)])."),
    ],
    "reader": [
        says("", LOGS, calls("kubernetes.get_logs", pod="ledger-0"), GATEWAY),
        says("checkout-5d4f cannot connect to its database; ledger-0 cannot be read."),
    ],
    "reader:summarization": [
        says(
            "`GET /pay 502 upstream checkout` once; 29 health checks were answered.",
            tokens=(400, 20),
            thinking="Only one line matters.",
        )
    ],
    "prober": [
        says("", PROBE, thinking="The port tells more than the log.", provider_state={"signature": "c2lnLTE="}),
        says("Port 5432 of ledger-db.pay refuses.", thinking="RST: nobody listens."),
    ],
    "synthesis-agent": [says("Reader and prober agree: the database of checkout does not accept connections.")],
    "verifier-1": [says("I try it again.", PROBE), says("It still refuses.")],
    "verifier-2": [
        says("I trust the first probe; it is minutes old."),
        says("A tool would say the same: I trust the first probe."),
    ],
    "judge": [says("The second probe is fresh and says the same.", thinking="One of them looked.")],
    "concluder": [
        says("One last look.", LOGS),
        says(
            "checkout is down because nothing listens on its database's port."
            + finding(
                "Nothing listens on port 5432 of ledger-db.pay, so checkout crashes.",
                "High",
                (
                    "checkout cannot connect.",
                    "kubernetes.get_logs",
                    "FATAL: dial tcp 10.0.0.9:5432: connection refused",
                ),
                ("A claim of a call that never was.", "network.trace", "no route to host"),
            )
        ),
    ],
    "executive-summary": [says("Checkout is down: its database does not listen. Start the database.")],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("checkout-down", ALERT, runbook={"inline": RUNBOOK})
        yield {"pipeline": Played("checkout-down", await scene.run("checkout-down"))}


async def test_pipeline_runs_every_kind_of_stage_and_leaves_all_of_it_on_record(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["pipeline"].run
    kinds = [f"{stage['kind']}/{stage['expected_agents']}" for stage in run.stages]
    assert kinds == [
        "investigation/1",
        "investigation/2",
        "synthesis/1",
        "investigation/2",
        "synthesis/1",
        "investigation/1",
        "executive_summary/1",
    ]
