"""Tests tool servers of a run that act as an agent's ServiceAccount (`spec.run.kubeconfig`).

There is no kubelet here: a test takes what a pod would find in its Secret, and serves the tool where the Service is.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import rights
from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.controllers.grants import ACCOUNT, let_in, operator_kubeconfig, shipped
from integration.mcp.gateway import launching
from programs import end
from tarsy.controllers.tool_workloads.acting import DIRECTORY
from tarsy.controllers.tool_workloads.pods import SOCKET
from tarsy.engine.ports import Toolbox
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.values import Values
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import ServerPlan
from tarsy.plan.workload import workload_name
from tarsy.record.messages import ToolOutcome
from tarsy.runtime.service_account_tokens import RunTokens
from tarsy.runtime.workloads import RunToolboxes
from tarsy.store.runs.claims import ClaimedRun

BASE = ("namespace", "serviceaccount", "clusterrole", "role", "secret-reader", "run-secrets", "tool-runner")
KINDS = ("Job", "Service", "Secret")
SERVER: dict[str, Any] = {
    "transport": {"type": "http"},
    "run": {"image": "tools:1", "port": 8080, "scope": "PerRun", "kubeconfig": True},
    "trustAnnotations": True,
}
CONFIG_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.tool_workloads.per_run.LOOK_SECONDS", 0.5)
    monkeypatch.setattr("tarsy.controllers.tool_workloads.per_run.AGAIN_SECONDS", 0.5)


@pytest.fixture
async def operator(kube: KubeClient, tarsy_api: LocalApi, tmp_path: Path) -> Path:
    """A kubeconfig of the operator's ServiceAccount, bound as the base says and in no namespace of a tenant."""
    return await operator_kubeconfig(kube, tarsy_api, tmp_path, *BASE)


async def let_run(desk: Desk) -> None:
    """What the components for workloads do for a namespace."""
    for component in ("tenant", "tenant-workloads"):
        for binding in shipped(f"components/{component}", "rolebinding"):
            binding["metadata"]["namespace"] = desk.namespace
            await rights.put_rights(desk.kube, [binding])


async def have_account(desk: Desk, *names: str) -> None:
    for name in names or (ACCOUNT,):
        await desk.core("ServiceAccount", name, {})


async def running(desk: Desk, *accounts: str, **server: Any) -> tuple[ClaimedRun, list[ServerPlan]]:
    """A run under way with one agent for each account, and what its worker has in hand of their servers."""
    await desk.put("MCPServer", "cluster", SERVER | server)
    await desk.put("LLMProvider", "one", {"type": "openai", "model": "m"})
    for account in accounts:
        agent = {"serviceAccountName": account, "mcpServers": [{"name": "cluster"}]}
        await desk.put("Agent", f"as-{account}", agent)
    stage = {"name": "look", "agents": [{"name": f"as-{account}"} for account in accounts]}
    await desk.put("Chain", "one", {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": [stage]})
    await desk.alert()
    await desk.queued()
    claimed = await desk.claim()
    return claimed, [server for stage in claimed.plan.stages for agent in stage.agents for server in agent.servers]


async def there(desk: Desk, name: str) -> dict[str, dict[str, Any]]:
    """A workload's objects, once all of them are there."""

    async def look() -> dict[str, dict[str, Any]]:
        found = {kind: await desk.kube.find(kind, desk.namespace, name) for kind in KINDS}
        assert all(found.values()), f"missing: {[kind for kind, obj in found.items() if obj is None]}"
        return {kind: obj for kind, obj in found.items() if obj is not None}

    return await eventually(look)


async def gone(desk: Desk, name: str) -> None:
    async def look() -> bool:
        return all([await desk.kube.find(kind, desk.namespace, name) is None for kind in KINDS])

    await eventually(look)


def held(secret: dict[str, Any]) -> dict[str, str]:
    """What a pod finds in the files of its Secret."""
    return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}


async def who(desk: Desk, token: str) -> str | None:
    """Who the API says a token is of."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": token}}
    status = (await desk.kube.create(review))["status"]
    return str(status["user"]["username"]) if status.get("authenticated") else None


async def revoked(desk: Desk, *tokens: str) -> None:
    async def look() -> bool:
        return [await who(desk, token) for token in tokens] == [None] * len(tokens)

    await eventually(look)


def boxes_of(
    desk: Desk, client: KubeClient, claimed: ClaimedRun, *, library: str = "tarsy-library", **how: Any
) -> RunToolboxes:
    """What the worker of a run opens servers with."""
    tokens = RunTokens(client, claimed.id, claimed.namespace, library)
    tools = McpToolboxes(Values(desk.kube, Secrets(desk.kube)), mask=str).of(tokens)
    return RunToolboxes(tools, claimed.id, check=tokens.check_workload, **how)


async def test_each_account_of_a_run_has_a_workload_with_a_token_that_ends_with_the_run(desk: Desk) -> None:
    await have_account(desk, "viewer", "other")
    async with desk.controller():
        claimed, _ = await running(desk, "viewer", "other")
        tokens = []
        for account in ("viewer", "other"):
            name = workload_name("cluster", claimed.id, account)
            found = await there(desk, name)
            files = held(found["Secret"])
            tokens.append(files["kubernetes-token"])
            assert await who(desk, tokens[-1]) == f"system:serviceaccount:{desk.namespace}:{account}"
            pod = found["Job"]["spec"]["template"]["spec"]
            assert pod["automountServiceAccountToken"] is False and "serviceAccountName" not in pod
            apart = [found["Job"], found["Service"], found["Secret"]["metadata"], files["kubeconfig"]]
            assert tokens[-1] not in json.dumps(apart)
        await desk.finish(claimed)
        for account in ("viewer", "other"):
            await gone(desk, workload_name("cluster", claimed.id, account))
        await revoked(desk, *tokens)


async def test_a_token_is_replaced_while_the_run_goes_on_and_one_that_is_young_is_kept_after_a_crash(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await have_account(desk)
    async with desk.controller():
        claimed, _ = await running(desk, ACCOUNT)
        name = workload_name("cluster", claimed.id, ACCOUNT)
        first = held((await there(desk, name))["Secret"])
    async with desk.controller() as writes:
        await desk.put("MCPServer", "other", SERVER)
        await desk.reason("MCPServer", "other", "Ready", "True", "Usable")

        async def looked() -> bool:
            return bool(writes["PATCH services"])

        await eventually(looked)
    assert held((await there(desk, name))["Secret"]) == first, "it is young"
    monkeypatch.setattr("tarsy.controllers.tool_workloads.acting.RENEW_SECONDS", 3600.0)
    async with desk.controller():

        async def renewed() -> dict[str, str]:
            files = held((await there(desk, name))["Secret"])
            assert files["kubernetes-token"] != first["kubernetes-token"]
            return files

        second = await eventually(renewed)
        assert (second["token"], second["kubeconfig"]) == (first["token"], first["kubeconfig"])
        assert await who(desk, second["kubernetes-token"]) == f"system:serviceaccount:{desk.namespace}:{ACCOUNT}"
        assert "tarsy.dev/token-expires" in (await there(desk, name))["Secret"]["metadata"]["annotations"]
        await desk.finish(claimed)
        await revoked(desk, first["kubernetes-token"], second["kubernetes-token"])


async def test_rights_of_the_components_are_enough_and_without_them_nothing_is_made_and_the_worker_says_why(
    desk: Desk, operator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await let_run(desk)
    await have_account(desk)
    async with desk.controller(kubeconfig=operator, everywhere=True), await KubeClient.load(operator) as client:
        claimed, (server,) = await running(desk, ACCOUNT)
        name = workload_name("cluster", claimed.id, ACCOUNT)
        async with asyncio.timeout(120), boxes_of(desk, client, claimed, wait_seconds=3600).open([server]) as box:
            assert box.tools == () and "component `tenant-agents`" in box.unavailable["cluster"]
        assert await desk.kube.find("Job", desk.namespace, name) is None
        await let_in(desk)
        monkeypatch.setattr("tarsy.controllers.tool_workloads.acting.RENEW_SECONDS", 3600.0)
        first = held((await there(desk, name))["Secret"])["kubernetes-token"]

        async def renewed() -> bool:
            return held((await there(desk, name))["Secret"])["kubernetes-token"] != first

        await eventually(renewed)
        await desk.finish(claimed)
        await gone(desk, name)
        await revoked(desk, first)


async def test_an_account_that_is_missing_is_said_at_once(desk: Desk) -> None:
    async with desk.controller():
        claimed, (server,) = await running(desk, "nowhere")
        async with asyncio.timeout(120), boxes_of(desk, desk.kube, claimed, wait_seconds=3600).open([server]) as box:
            missing = f"ServiceAccount {desk.namespace}/nowhere does not exist; create it"
            assert missing in box.unavailable["cluster"]
        assert await desk.kube.find("Job", desk.namespace, workload_name("cluster", claimed.id, "nowhere")) is None


@asynccontextmanager
async def pod_of(job: dict[str, Any], files: dict[str, str], folder: Path) -> AsyncIterator[str]:
    """A Job's container as a process of this machine: its command and environment, its Secret's files; the address."""
    for key, text in files.items():
        (folder / key).write_text(text.replace(DIRECTORY, str(folder)))
    tool, gateway = job["spec"]["template"]["spec"]["containers"]
    assert gateway["command"] == ["tarsy", "mcp-gateway"]
    environment = {item["name"]: item["value"].replace(DIRECTORY, str(folder)) for item in tool["env"]}
    command = tool["command"][tool["command"].index("--") + 1 :]
    async with launching(folder, *command, *tool["args"], env={"PATH": os.environ["PATH"], **environment}) as (
        socket,
        _,
    ):
        given = [text.replace(DIRECTORY, str(folder)).replace(SOCKET, str(socket)) for text in gateway["args"]]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tarsy.cli", "mcp-gateway", *given, "--host", "127.0.0.1", "--port", "0"),
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(120):
                url = (await process.stdout.readline()).decode().strip()
            assert url, "the gateway did not start"
            yield url.removesuffix("/mcp")
        finally:
            await end(process, 60)


async def listed(box: Toolbox, namespace: str) -> ToolOutcome:
    arguments = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace}
    return await box.call("cluster.resources_list", json.dumps(arguments), timeout=60, idempotency_key="k")


@pytest.mark.once("the program asks the API as any client does")
async def test_the_real_server_in_a_workload_reads_what_the_account_may_read(
    desk: Desk, kubernetes_mcp_server: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pod"
    folder.mkdir()
    arguments = ["--read-only", "--toolsets", "core", "--disable-multi-cluster"]
    run = {**SERVER["run"], "command": [str(kubernetes_mcp_server)], "args": arguments, "port": None}
    await have_account(desk)
    await desk.core("ConfigMap", "runbook", {"data": {"a": "b"}})
    async with desk.controller():
        claimed, (server,) = await running(desk, ACCOUNT, transport={"type": "stdio"}, run=run)
        found = await there(desk, workload_name("cluster", claimed.id, ACCOUNT))
        async with (
            pod_of(found["Job"], held(found["Secret"]), folder) as url,
            boxes_of(desk, desk.kube, claimed, address=lambda *_: url).open([server]) as box,
        ):
            denied = await listed(box, desk.namespace)
            assert denied.is_error and f"{desk.namespace}:{ACCOUNT}" in denied.content, (denied, box.unavailable)
            allow = rights.binding("reads", desk.namespace, "Role", "reads", rights.account(ACCOUNT, desk.namespace))
            await rights.put_rights(desk.kube, [rights.role("reads", desk.namespace, CONFIG_MAPS), allow])
            read = await listed(box, desk.namespace)
            assert not read.is_error and "runbook" in read.content, read
            await desk.finish(claimed)
            await revoked(desk, (folder / "kubernetes-token").read_text())

            async def of_no_use() -> bool:
                return (await listed(box, desk.namespace)).is_error

            await eventually(of_no_use)
