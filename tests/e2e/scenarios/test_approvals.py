"""Tests a call that people decide about, through the whole product: sent once, never in a replay."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import rights
from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.scene import Scene
from e2e.waiting import until
from policies import lift_approve, put_approve
from tarsy.kube.client import KubeClient

CONFIGURATION = """
kind: MCPServer
name: deploy
spec:
  transport: {type: http, http: {url: "https://tools.example/deploy"}}
  toolPolicy: Approve
  tools: {readOnly: [history]}
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
  stages: [{name: mend, agents: [{name: mender}]}]
"""
ROLLBACK = calls("deploy.rollback", name="checkout")
LOOK = says("", calls("deploy.history", name="checkout"))
PROPOSE = says("Revision 7 broke checkout (@callId(deploy.history)), so I go back to revision 6.", ROLLBACK)
FOUND = "revision 7 (10:02) changed image to checkout:1.9"
DONE = says("Done." + finding(f"checkout: {FOUND}", "High", (FOUND, "deploy.history", FOUND)))


@pytest.fixture
async def people(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """Rita starts runs, anna approves calls; at the end the policy is gone."""
    use = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    approve = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["approve"]}
    for name, rule in (("rita", use), ("anna", approve)):
        bound = rights.binding(name, namespace, "Role", name, rights.user(name))
        await rights.put_rights(kube, [rights.role(name, namespace, rule), bound])
    yield
    await lift_approve(kube, namespace)


async def asked(scene: Scene, kube: KubeClient, namespace: str) -> dict[str, Any]:
    """The ToolApproval, once its run is parked."""
    found: list[dict[str, Any]] = []

    async def there() -> bool:
        found[:] = await kube.list("ToolApproval", namespace)
        parked = "SELECT count(*) FROM investigation WHERE parked_at IS NOT NULL"
        return bool(found) and await scene.pool.fetchval(parked) == 1

    await until("the run waits for people", there)
    assert await scene.pool.fetchval("SELECT count(*) FROM lease") == 0
    assert await scene.pool.fetchval("SELECT count(*) FROM mcp_interaction WHERE tool = 'rollback'") == 0
    return found[0]


async def decide(kube: KubeClient, approval: dict[str, Any], decision: str) -> None:
    entry = {"username": "anna", "decision": decision, "argumentsDigest": approval["spec"]["argumentsDigest"]}
    meta = approval["metadata"]
    await kube.patch("ToolApproval", meta["namespace"], meta["name"], {"spec": {"decisions": [entry]}})


async def ended(kube: KubeClient, namespace: str) -> None:
    """Waits until the alert's run has ended."""

    async def finished() -> bool:
        found = await kube.get("Alert", namespace, "down")
        conditions = found.get("status", {}).get("conditions", ())
        return any(one["type"] == "Finished" and one["status"] == "True" for one in conditions)

    await until("the run has ended", finished)


@pytest.mark.newer_api
async def test_approved_call_is_sent_once_and_a_replay_sends_none(
    scene: Scene, kube: KubeClient, namespace: str, people: None
) -> None:
    async with scene.product(CONFIGURATION, {"mender": [LOOK, PROPOSE, DONE, LOOK, PROPOSE, DONE, DONE]}):
        await scene.alert("down", "checkout answers 502 since 10:03", author={"username": "rita"})
        approval = await asked(scene, kube, namespace)
        spec = approval["spec"]
        assert spec["arguments"] == '{"name":"checkout"}' and spec["requesters"] == ["rita"]
        (origin,) = spec["provenance"]
        assert (origin["argument"], origin["origins"]) == ("/name", ["Alert"])
        assert spec["why"]["claim"].startswith("Revision 7 broke checkout") and len(spec["why"]["evidence"]) == 1
        await decide(kube, approval, "Approve")

        async def doubted() -> bool:
            found = await kube.get("ToolApproval", namespace, approval["metadata"]["name"])
            conditions = found.get("status", {}).get("conditions", ())
            return any(one["reason"] == "ForgeryAdmitted" for one in conditions)

        await until("the decision does not count without the policy", doubted)
        assert await scene.pool.fetchval("SELECT count(*) FROM mcp_interaction WHERE tool = 'rollback'") == 0
        await put_approve(kube)
        await ended(kube, namespace)
        rows = await scene.pool.fetch("SELECT made, result FROM mcp_interaction WHERE tool = 'rollback'")
        assert [tuple(row) for row in rows] == [(True, "checkout is at revision 6")]
        state = await scene.pool.fetchrow("SELECT state, consumed_attempt FROM tool_approval")
        assert tuple(state) == ("consumed", 2)
        decided = await scene.pool.fetch("SELECT username, decision FROM tool_approval_decision")
        assert [tuple(row) for row in decided] == [("anna", "Approve")]
        opened = scene.opened
        await scene.replay("down", "again")
        assert scene.opened == opened
        answered = "SELECT count(*) FROM mcp_interaction WHERE tool = 'rollback' AND rung IS NOT NULL"
        assert await scene.pool.fetchval(answered) == 1
        assert await scene.pool.fetchval("SELECT count(*) FROM tool_approval") == 1


@pytest.mark.newer_api
async def test_rejected_call_is_not_sent_and_the_model_is_told(
    scene: Scene, kube: KubeClient, namespace: str, people: None
) -> None:
    async with scene.product(CONFIGURATION, {"mender": [LOOK, says("", ROLLBACK), PROPOSE, DONE, DONE]}):
        await scene.alert("down", "checkout answers 502 since 10:03", author={"username": "rita"})
        approval = await asked_after_refusal(scene, kube, namespace)
        await decide(kube, approval, "Reject")
        await ended(kube, namespace)
        rows = await scene.pool.fetch(
            "SELECT made, refused, result FROM mcp_interaction WHERE tool = 'rollback' ORDER BY message_seq"
        )
        assert [(row["made"], row["refused"]) for row in rows] == [
            (False, "ApprovalUncited"),
            (False, "ApprovalRejected"),
        ]
        assert "people rejected it" in rows[1]["result"]


async def asked_after_refusal(scene: Scene, kube: KubeClient, namespace: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    async def there() -> bool:
        found[:] = await kube.list("ToolApproval", namespace)
        return bool(found)

    await until("people are asked", there)
    return found[0]
