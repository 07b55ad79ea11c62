"""A tool server that people really use, `kubernetes-mcp-server`, by both of its transports, through a whole run."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from e2e.kubernetes_mcp import arguments, serving
from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy_dev.objects import put

PASSWORD = "correct-horse-battery"
CALLS = (
    ("cluster.resources_list", {"apiVersion": "v1", "kind": "ConfigMap"}),
    ("cluster.resources_get", {"apiVersion": "v1", "kind": "Secret", "name": "database"}),
    ("cluster.resources_get", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nowhere"}),
    ("cluster.resources_delete", {"apiVersion": "v1", "kind": "ConfigMap", "name": "runbooks"}),
)


@pytest.fixture(params=["stdio", "http"])
async def transport(
    request: pytest.FixtureRequest, kubernetes_mcp_server: Path, bare_tenant: Tenant, tmp_path: Path
) -> AsyncIterator[dict[str, Any]]:
    kubeconfig = bare_tenant.machine.api.kubeconfig
    if request.param == "stdio":
        yield {"type": "stdio", "stdio": {"command": str(kubernetes_mcp_server), "args": list(arguments(kubeconfig))}}
        return
    async with serving(kubeconfig, tmp_path) as url:
        yield {"type": "http", "http": {"url": f"{url}/mcp"}}


async def test_a_run_reads_the_cluster_and_sees_no_secret(tenant: Tenant, transport: dict[str, Any]) -> None:
    meta = {"namespace": tenant.namespace}
    await put(
        tenant.client,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "runbooks", **meta}, "data": {"disk": "df -h"}},
    )
    data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
    await put(
        tenant.client, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "database", **meta}, "data": data}
    )
    calls = [{"name": name, "arguments": {**given, **meta}} for name, given in CALLS]
    turns = ", ".join(json.dumps({"calls": [call]}) for call in calls)
    model = await tenant.use_model(f"agents: {{agent: [{turns}, {{text: {ANSWER}}}]}}")
    await tenant.put("MCPServer", "cluster", {"transport": transport, "trustAnnotations": True})
    await tenant.use_agent("agent", "cluster")
    await tenant.use_chain(["agent"])

    async def looked_at() -> Any:
        server = await tenant.get("cluster", "MCPServer")
        return server if condition(server, "Verified") == "True" else None

    status = (await until("the server is verified", looked_at))["status"]
    assert condition({"status": status}, "Available") == "True"
    assert "resources_get" in status["tools"] and status["toolCount"] == len(status["tools"])

    if tenant.machine.kubectl is not None:
        _, shown = await tenant.kubectl("get", "tmcp", "cluster", "--no-headers")
        assert shown.split()[:6] == ["cluster", "True", "Usable", "True", str(status["toolCount"]), transport["type"]]

    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert condition(inv, "EvidenceDegraded") == "False", inv["status"]
    listed, secret, missing, forbidden = await tenant.mcp_calls(identity)
    assert "runbooks" in listed["result"] and listed["state"] == "completed"
    assert "database" in secret["result"] and "MASKED" in secret["result"]
    assert missing["state"] == "failed" and "not found" in missing["result"]
    assert forbidden["state"] == "failed" and "resources_delete" in forbidden["result"]
    assert await tenant.client.find("ConfigMap", tenant.namespace, "runbooks") is not None
    seen = json.dumps([request.messages for request in model.journal.requests])
    for kept in (PASSWORD, data["password"]):
        assert kept not in seen and all(kept not in call["result"] for call in await tenant.mcp_calls(identity))
