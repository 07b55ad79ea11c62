"""Quotas: one run waits until the limit is raised, one is rejected, one answers with evidence and without a model."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import rights
from e2e.scenarios.checkout import ANSWERS
from e2e.scenarios.checkout import CONFIGURATION as CHAIN
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.record.run import State
from tarsy_dev.objects import put

ACCOUNT = "tarsy-agent"
EVIDENCE = f"""
---
kind: Chain
name: evidence
spec:
  llmProvider: scripted
  executiveSummary: {{enabled: false}}
  stages:
  - name: changes
    kind: Changes
    changes: {{serviceAccountName: {ACCOUNT}}}
  - name: collect
    agents: [{{name: collector}}]
"""
CONFIGURATION = CHAIN + EVIDENCE
ALERT = json.dumps({"labels": {"pod": "checkout-1"}})


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await _failing_pod(scene)
    async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
        await _limit(scene, "Queue", 1)
        await scene.alert("first", ALERT)
        await scene.run("first")
        await scene.alert("queued", ALERT)
        held = await scene.reason("Investigation", await _created(scene, "queued"), "Finished", "WaitingForQuota")
        waiting = [one for one in held["status"]["conditions"] if one["type"] == "Finished"]
        await _limit(scene, "Queue", 2)
        queued = await scene.run("queued")
        await _limit(scene, "Reject", 2)
        await scene.alert("rejected", ALERT)
        rejected = await scene.run("rejected")
        await _limit(scene, "TriageOnly", 2)
        await scene.alert("triaged", ALERT, chainRef={"name": "evidence"})
        triaged = await scene.run("triaged")
        yield {
            "quota-queue": Played("queued", queued, more={"waiting.yaml": as_yaml(waiting)}),
            "quota-reject": Played("rejected", rejected),
            "quota-triage": Played("triaged", triaged),
        }


async def _limit(scene: Scene, on_exceeded: str, investigations: int) -> None:
    """Puts the quota, and waits until it is in force in all workers."""
    spec = {"period": "Month", "hard": {"investigations": investigations}, "onExceeded": on_exceeded}
    await scene.put("InvestigationQuota", "month", spec)
    generation = (await scene.get("InvestigationQuota", "month"))["metadata"]["generation"]

    async def in_force() -> bool:
        return bool(await scene.pool.fetchval("SELECT true FROM quota WHERE generation = $1", generation))

    await scene.until(f"the quota says {on_exceeded}", in_force)


async def _created(scene: Scene, alert: str) -> str:
    await scene.reason("Alert", alert, "Accepted", "InvestigationCreated")
    return await scene.investigation(alert)


async def _failing_pod(scene: Scene) -> None:
    """A Pod whose image does not exist, and an account that may see it."""
    meta, namespace = {"namespace": scene.namespace}, scene.namespace
    waiting = {"reason": "ErrImagePull", "message": 'Failed to pull image "shop/checkout:2": not found'}
    container = {
        "name": "app", "ready": False, "restartCount": 0, "image": "", "imageID": "", "state": {"waiting": waiting}
    }  # fmt: skip
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "checkout-1", **meta},
        "spec": {"containers": [{"name": "app", "image": "shop/checkout:2"}], "automountServiceAccountToken": False},
        "status": {"phase": "Pending", "containerStatuses": [container]},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, **meta}}
    await put(scene.kube, account)
    reads = {"apiGroups": ["", "apps"], "resources": ["pods", "events", "configmaps", "deployments"], "verbs": ["list"]}
    bound = rights.binding("reads", namespace, "Role", "reads", rights.account(ACCOUNT, namespace))
    await rights.put_rights(scene.kube, [rights.role("reads", namespace, reads), bound])
    await put(scene.kube, pod, status_by="kubelet")  # what others write in a status is no evidence of the control plane


async def test_each_way_of_a_quota_that_is_spent(scene: Scene) -> None:
    runs = {name: one.run.record for name, one in (await check_goldens(played, scene)).items()}
    assert [record.state for record in runs.values()] == [State.COMPLETED, State.FAILED, State.COMPLETED]
    assert runs["quota-reject"].model_calls == runs["quota-triage"].model_calls == 0
    outcome = runs["quota-triage"].outcome
    assert outcome is not None and "No model was asked. InvestigationQuota month" in (outcome.final_analysis or "")
