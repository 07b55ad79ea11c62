"""Agents that act as a ServiceAccount of their namespace: what it may not read, they cannot read."""

import json
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import rights
from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy.controllers.runs.run_secret import RUN_SECRET
from tarsy.kube.tokens import secret_name
from tarsy_dev.objects import put

pytestmark = pytest.mark.timeout(600)
ACCOUNT = "tarsy-agent"
JWT = "eyJhbGciOi"
"""How every token of a ServiceAccount begins."""

CONFIG_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
SAMPLE = {"command": sys.executable, "args": ["-m", "tarsy.kubernetes_tools"], "kubeconfig": True}


async def use_account(
    tenant: Tenant, call: dict[str, Any], stdio: dict[str, Any], *, account: str = ACCOUNT, gate: str | None = None
) -> None:
    """A chain whose agent acts as the account by a server `cluster`, makes one call, and concludes."""
    meta = {"namespace": tenant.namespace}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, **meta}})
    runbook = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "runbook", **meta}, "data": {"a": "b"}}
    await put(tenant.client, runbook)
    turn = json.dumps({"calls": [call], **({"gate": gate} if gate else {})})
    await tenant.use_model(f"agents: {{agent: [{turn}, {{text: {ANSWER}}}]}}")
    transport = {"type": "stdio", "stdio": stdio}
    server = {"transport": transport, "trustAnnotations": True, "timeouts": {"initSeconds": 120}}
    await tenant.put("MCPServer", "cluster", server)
    await tenant.use_agent("agent", "cluster", serviceAccountName=account)
    await tenant.use_chain(["agent"])


async def allow(tenant: Tenant, *rules: dict[str, Any]) -> None:
    await rights.put_rights(
        tenant.client,
        [
            rights.role("reads", tenant.namespace, *rules),
            rights.binding("reads", tenant.namespace, "Role", "reads", rights.account(ACCOUNT, tenant.namespace)),
        ],
    )


async def called(tenant: Tenant, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs the chain to its end, after which nobody can act as it; the one call of its agent, and the object."""
    identity = await tenant.investigate(name)
    inv = await tenant.finished(name)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert condition(inv, "EvidenceDegraded") == "False", inv["status"]
    await nothing_left(tenant, name, identity)
    (call,) = await tenant.mcp_calls(identity)
    assert JWT not in saw(tenant) + call["result"] + json.dumps(inv)
    return call, inv


async def nothing_left(tenant: Tenant, name: str, identity: UUID) -> None:
    async def gone() -> bool:
        left = await tenant.client.find("Secret", tenant.namespace, secret_name(str(identity)))
        marked = RUN_SECRET in ((await tenant.get(name))["metadata"].get("annotations") or {})
        return left is None and not marked

    await until("the Secret of the run is gone", gone)


def saw(tenant: Tenant) -> str:
    """All that the model was told."""
    return json.dumps([request.messages for request in tenant.model.journal.requests])


async def test_a_denial_is_evidence_until_a_role_lets_the_account_read(tenant: Tenant) -> None:
    arguments = {"kind": "ConfigMap", "namespace": tenant.namespace}
    await use_account(tenant, {"name": "cluster.list_resources", "arguments": arguments}, SAMPLE)
    denied, inv = await called(tenant, "denied")
    assert denied["state"] == "failed"
    assert f"system:serviceaccount:{tenant.namespace}:{ACCOUNT}" in denied["result"], denied["result"]
    assert json.dumps(denied["result"])[1:-1] in saw(tenant), "the model was told"
    finding = inv["status"]["finding"]
    assert finding, "and it concluded"

    await allow(tenant, CONFIG_MAPS)
    read, _ = await called(tenant, "read")
    assert read["state"] == "completed" and "runbook" in read["result"]


async def test_a_run_without_its_account_says_what_is_missing_and_ends(tenant: Tenant) -> None:
    arguments = {"kind": "ConfigMap", "namespace": tenant.namespace}
    call = {"name": "cluster.list_resources", "arguments": arguments}
    await use_account(tenant, call, SAMPLE, account="nowhere")
    missing = f"ServiceAccount {tenant.namespace}/nowhere does not exist; create it"

    async def told() -> bool:
        agent = await tenant.get("agent", "Agent")
        assert condition(agent, "Ready") != "True"
        found = condition(agent, "Ready", "message")
        return condition(agent, "Ready", "reason") == "ServiceAccountMissing" and missing in found

    await until("the Agent is not Ready", told)
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "EvidenceDegraded") == "True", inv["status"]
    rows = await tenant.rows("SELECT content FROM timeline_event WHERE investigation = $1", identity)
    assert any(missing in row["content"] for row in rows)
    await nothing_left(tenant, "run", identity)


@pytest.mark.once("what a crash leaves is in the record, not in the API")
async def test_a_resumed_run_acts_by_new_tokens_and_leaves_nothing(bare_tenant: Tenant) -> None:
    tenant, machine = bare_tenant, bare_tenant.machine
    call = {"name": "cluster.list_resources", "arguments": {"kind": "ConfigMap", "namespace": tenant.namespace}}
    await use_account(tenant, call, SAMPLE, gate="asked")
    await allow(tenant, CONFIG_MAPS)
    operator = await machine.operator()
    identity = await tenant.investigate()
    await tenant.model.journal.wait_for(lambda requests: len(requests) == 1, 120)
    secret = await tenant.client.get("Secret", tenant.namespace, secret_name(str(identity)))
    assert "data" not in secret
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Investigation", str(identity))
    operator.kill()
    assert await operator.wait(60) == -signal.SIGKILL
    tenant.model.open_gate("asked")
    await machine.lapse_of_all()
    operator.start()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True" and inv["status"]["attempt"] == 2, inv["status"]
    assert condition(inv, "EvidenceDegraded") == "False", inv["status"]
    (read,) = await tenant.mcp_calls(identity)
    assert read["state"] == "completed" and "runbook" in read["result"], read["result"]
    await nothing_left(tenant, "run", identity)


async def test_the_real_server_reads_what_its_agent_may_read(tenant: Tenant, kubernetes_mcp_server: Path) -> None:
    arguments = ["--read-only", "--toolsets", "core", "--disable-multi-cluster"]
    where = {"apiVersion": "v1", "namespace": tenant.namespace}
    call = {"name": "cluster.resources_list", "arguments": {"kind": "ConfigMap", **where}}
    await use_account(tenant, call, {"command": str(kubernetes_mcp_server), "args": arguments, "kubeconfig": True})

    async def available() -> bool:
        return condition(await tenant.get("cluster", "MCPServer"), "Available") == "True"

    await until("a look, which is nobody's, finds the server", available)
    denied, _ = await called(tenant, "denied")
    assert denied["state"] == "failed" and "forbidden" in denied["result"].lower(), denied["result"]
    await allow(tenant, CONFIG_MAPS)
    read, _ = await called(tenant, "read")
    assert read["state"] == "completed" and "runbook" in read["result"], read["result"]
