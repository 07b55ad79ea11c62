"""Tools that change something, for an agent that may and for one that may not; a server that changes its tools."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: MCPServer
name: deploy
spec:
  transport: {type: http, http: {url: "https://tools.example/deploy"}}
  toolPolicy: All
  trustAnnotations: true
---
kind: Agent
name: reader
spec: {mcpServers: [{name: deploy}, {name: network}]}
---
kind: Agent
name: mender
spec: {mcpServers: [{name: deploy}], toolPolicy: All}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages:
  - {name: look, agents: [{name: reader}]}
  - {name: mend, agents: [{name: mender}]}
"""
HISTORY = calls("deploy.history", name="checkout")
ROLLBACK = calls("deploy.rollback", name="checkout")
ANSWERS = {
    "reader": [
        says("", HISTORY, ROLLBACK, calls("network.probe", host="ledger-db.pay", port=5432)),
        says("Revision 7 broke checkout. I may not roll it back; somebody should."),
    ],
    "mender": [
        says("", HISTORY, ROLLBACK),
        says(
            "checkout is back at revision 6."
            + finding(
                "Revision 7 broke checkout; it was rolled back.",
                "High",
                ("It is at revision 6 again.", "deploy.rollback", "checkout is at revision 6"),
            )
        ),
    ],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("down", "checkout answers 502 since 10:03")
        yield {"tool-policy": Played("down", await scene.run("down"))}


async def test_agent_that_may_only_read_is_refused_and_tools_that_changed_are_kept_back(scene: Scene) -> None:
    await check_goldens(played, scene)
