"""A chain finds a cause, then acts on it: once people approved the call, once they rejected it, and in a replay."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

import rights
from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.scene import Scene
from e2e.scenarios.test_approvals import asked, decide, ended
from policies import lift_approve, put_approve
from tarsy.kube.client import KubeClient
from tarsy.record.approvals.acted import ModelWord
from tarsy.record.run import StageKind, State

CONFIGURATION = """
kind: MCPServer
name: deploy
spec:
  transport: {type: http, http: {url: "https://tools.example/deploy"}}
  toolPolicy: Approve
  tools: {readOnly: [history]}
---
kind: Agent
name: reader
spec: {instructions: You find the cause., mcpServers: [{name: kubernetes}]}
---
kind: Agent
name: mender
spec:
  instructions: You roll back what broke a workload.
  mcpServers: [{name: kubernetes}, {name: deploy}]
  toolPolicy: Approve
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  stages:
  - {name: look, agents: [{name: reader}]}
  - {name: act, kind: Action, agents: [{name: mender}]}
"""
CAUSE = "The database refuses checkout's connections."
LOG = "5432: connection refused"
LOOK = says("I read the log.", calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2))
FOUND = says(CAUSE + finding(CAUSE, "Low", ("The connection is refused.", "kubernetes.get_logs", LOG)))
VERIFY = says("Is it still so?", calls("kubernetes.list_pods", namespace="shop"))
PROPOSE = says(
    "checkout still crashes (@callId(kubernetes.list_pods)), so I go back to the revision before.",
    calls("deploy.rollback", name="checkout"),
)
DONE = says(
    "checkout is at revision 6." + finding("The moon broke checkout.", "High") + "\n\nYES",
)
NOTHING = says("People rejected it.\nYES")
SUMMARY = says(CAUSE)


@pytest.fixture
async def enforce(kube: KubeClient, namespace: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Rita starts runs, anna approves calls; from the call of this on, decisions are checked, and count."""
    use = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    approve = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["approve"]}
    for name, rule in (("rita", use), ("anna", approve)):
        bound = rights.binding(name, namespace, "Role", name, rights.user(name))
        await rights.put_rights(kube, [rights.role(name, namespace, rule), bound])
    yield partial(put_approve, kube)
    await lift_approve(kube, namespace)


@pytest.mark.newer_api
async def test_it_acts_once_people_approved_and_a_replay_sends_nothing(
    scene: Scene, kube: KubeClient, namespace: str, enforce: Callable[[], Awaitable[None]]
) -> None:
    answers = {"reader": [LOOK, FOUND] * 2, "mender": [VERIFY, PROPOSE, DONE] * 2, "executive-summary": [SUMMARY] * 2}
    async with scene.product(CONFIGURATION, answers):
        await scene.alert("down", "checkout answers 502 since 10:03", author={"username": "rita"})
        approval = await asked(scene, kube, namespace)
        await decide(kube, approval, "Approve")
        await enforce()
        await ended(kube, namespace)
        run = await scene.run("down")
        replay = await scene.replay("down", "again")

    scene.check("action-stage", run)
    record = run.record
    assert record.outcome is not None and record.outcome.finding is not None
    assert (record.state, record.outcome.finding.summary) == (State.COMPLETED, CAUSE)
    acted = next(stage.acted for stage in record.stages if stage.kind is StageKind.ACTION)
    assert acted is not None and [call.tool for call in acted.calls] == ["deploy.rollback"]
    assert (acted.word, acted.contradiction) == (ModelWord.YES, None)
    replayed = next(stage.acted for stage in replay.record.stages if stage.kind is StageKind.ACTION)
    assert replayed is not None and (replayed.acted, replayed.contradiction) == (False, None)
    assert replayed.sentence == "No action was taken: this is a replay."
    assert await scene.pool.fetchval("SELECT count(*) FROM tool_approval") == 1
    sent = "SELECT count(*) FROM mcp_interaction WHERE tool = 'rollback' AND made AND rung IS NULL"
    assert await scene.pool.fetchval(sent) == 1


@pytest.mark.newer_api
async def test_the_record_wins_over_the_word_of_a_model_whose_call_was_rejected(
    scene: Scene, kube: KubeClient, namespace: str, enforce: Callable[[], Awaitable[None]]
) -> None:
    answers = {"reader": [LOOK, FOUND], "mender": [VERIFY, PROPOSE, NOTHING], "executive-summary": [SUMMARY]}
    async with scene.product(CONFIGURATION, answers):
        await scene.alert("down", "checkout answers 502 since 10:03", author={"username": "rita"})
        await decide(kube, await asked(scene, kube, namespace), "Reject")
        await ended(kube, namespace)
        run = await scene.run("down")

    scene.check("action-stage-rejected", run)
    acted = next(stage.acted for stage in run.record.stages if stage.kind is StageKind.ACTION)
    assert acted is not None and (acted.acted, acted.word) == (False, ModelWord.YES)
    assert acted.contradiction is not None
    assert run.record.outcome is not None and run.record.outcome.finding is not None
    assert run.record.outcome.finding.summary == CAUSE
