"""A stage of kind Changes in whole runs: rights of its account and of the author, ends without a model."""

import json
import re
from typing import Any
from uuid import UUID

import pytest

import rights
from e2e.tenant import ANSWER, Tenant, condition
from tarsy.kube.kinds import path
from tarsy_dev.objects import put

pytestmark = pytest.mark.timeout(600)
ACCOUNT, AUTHOR = "tarsy-agent", "alice"
PULL = 'Failed to pull image "shop/checkout:2": rpc error: code = NotFound desc = not found'
READS = {"apiGroups": ["", "apps"], "resources": ["pods", "events", "configmaps", "deployments"], "verbs": ["list"]}
ALERT = {"labels": {"pod": "checkout-1"}}


async def a_failing_pod(tenant: Tenant) -> None:
    meta = {"namespace": tenant.namespace}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, **meta}})
    waiting = {"reason": "ErrImagePull", "message": PULL}
    state = {
        "name": "app",
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
        "state": {"waiting": waiting},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "checkout-1", **meta},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "app", "image": "shop/checkout:2"}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [{**state, "state": {"waiting": waiting}}],
        },
    }
    status = {"status": pod.pop("status")}
    await put(tenant.client, pod)
    target = path("Pod", tenant.namespace, "checkout-1", "status")
    # As the kubelet: what others write in a status is no evidence of the control plane.
    written: dict[str, Any] = {"query": {"fieldManager": "kubelet"}, "body": status}
    await tenant.client.request("PATCH", target, **written, content_type="application/merge-patch+json")


async def use_changes(tenant: Tenant, *, stop: str = "Never", account: str = ACCOUNT) -> None:
    await tenant.use_model(f"agents: {{agent: [{{text: {ANSWER}}}]}}")
    await tenant.use_tools()
    await tenant.use_agent("agent", "tools")
    changes = {"serviceAccountName": account, "stopWhen": stop}
    stages = [
        {"name": "changes", "kind": "Changes", "changes": changes},
        {"name": "look", "agents": [{"name": "agent"}]},
    ]
    usual = {"llmProvider": "model", "executiveSummary": {"enabled": False}, "loop": {"findingRepairs": 0}}
    await tenant.put("Chain", "chain", {**usual, "stages": stages})


async def let_read(tenant: Tenant, *subjects: dict[str, str]) -> None:
    bound = rights.binding("reads", tenant.namespace, "Role", "reads", *subjects)
    await rights.put_rights(tenant.client, [rights.role("reads", tenant.namespace, READS), bound])


async def ended(tenant: Tenant, **spec: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The object of a run that ended, and the results of its calls by tool."""
    about = {"alert": {"alertType": "Test", "data": json.dumps(ALERT)}}
    identity = await tenant.investigate(**{**about, **spec})
    inv = await tenant.finished()
    return inv, {call["tool"]: call["result"] for call in await tenant.mcp_calls(identity)}


def _without_ids(messages: Any) -> str:
    """What a model was sent, without the ids of calls, which each run has of its own."""
    return re.sub(r"call_[0-9a-f]{12}", "call", json.dumps(messages))


async def test_a_certain_fault_ends_a_run_without_a_model_and_its_claims_hold(tenant: Tenant) -> None:
    await a_failing_pod(tenant)
    await use_changes(tenant, stop="Certain")
    await let_read(tenant, rights.account(ACCOUNT, tenant.namespace))
    inv, results = await ended(tenant)
    status = inv["status"]
    assert condition(inv, "Succeeded") == "True", status
    assert condition(inv, "EvidenceDegraded") == "False", status
    assert (status["usage"]["modelCalls"], status["usage"]["toolCalls"]) == (0, 2)
    assert tenant.model.journal.requests == []
    assert f'image-not-found: "{PULL}"' in results["triage"]
    assert "Not read: " in results["triage"] and "Service" in results["triage"]
    finding = status["finding"]
    assert finding["confidence"] == "High"
    assert finding["claims"] == finding["supportedClaims"] >= 1
    assert [stage["phase"] for stage in status["stages"]] == ["Succeeded"]


async def test_a_replay_answers_the_stage_from_the_record_although_the_cluster_has_changed(tenant: Tenant) -> None:
    await a_failing_pod(tenant)
    await use_changes(tenant)
    await let_read(tenant, rights.account(ACCOUNT, tenant.namespace))
    inv, results = await ended(tenant)
    await tenant.client.delete("Pod", tenant.namespace, "checkout-1")
    await tenant.client.delete("ServiceAccount", tenant.namespace, ACCOUNT)
    again = await tenant.put("Investigation", "again", {"replay": {"of": {"name": "run"}}})
    status = (await tenant.finished("again"))["status"]
    calls = await tenant.mcp_calls(UUID(again["metadata"]["uid"]))
    assert {call["tool"]: call["result"] for call in calls} == results
    kept = status["replay"]
    assert (kept["rungs"]["exact"], kept["rungs"]["miss"], kept["coverage"]) == (2, 0, "1.00"), kept
    assert kept["unusedCalls"] == 0 and "divergence" not in kept
    assert status["finding"] == inv["status"]["finding"]
    told, again_told = (_without_ids(request.messages) for request in tenant.model.journal.requests)
    assert "NotFound desc = not found" in told and again_told == told


@pytest.mark.parametrize("may", [True, False])
async def test_what_the_author_may_not_list_is_in_no_result(tenant: Tenant, may: bool) -> None:
    await a_failing_pod(tenant)
    await use_changes(tenant)
    readers = [rights.account(ACCOUNT, tenant.namespace), *([rights.user(AUTHOR)] if may else [])]
    await let_read(tenant, *readers)
    used = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    uses = rights.binding("uses", tenant.namespace, "Role", "uses", rights.user(AUTHOR))
    await rights.put_rights(tenant.client, [rights.role("uses", tenant.namespace, used), uses])
    inv, results = await ended(tenant, author={"username": AUTHOR})
    assert condition(inv, "Succeeded") == "True", inv["status"]
    told = json.dumps([request.messages for request in tenant.model.journal.requests])
    everything = "".join(results.values()) + told
    assert ("NotFound desc = not found" in everything) is may
    if not may:
        assert "Not read: Pod, Event" in results["triage"]
        assert "No rule finds a fault" in results["triage"]


async def test_an_account_without_tokens_is_a_line_and_the_run_goes_on(tenant: Tenant) -> None:
    await a_failing_pod(tenant)
    await use_changes(tenant, stop="Certain", account="nowhere")
    inv, results = await ended(tenant)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert condition(inv, "EvidenceDegraded") == "False", "a missing right degrades nothing"
    assert f"ServiceAccount {tenant.namespace}/nowhere does not exist" in results["triage"]
    assert inv["status"]["usage"]["modelCalls"] == 1
