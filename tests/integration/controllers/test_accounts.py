"""Tests which ServiceAccounts agents may act as, and the Secret that ends with their run."""

from pathlib import Path
from typing import Any

import pytest

from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.controllers.grants import ACCOUNT, let_in, operator_kubeconfig
from tarsy.controllers.runs.run_secret import RUN_SECRET
from tarsy.kube.client import KubeClient
from tarsy.kube.tokens import secret_name

BASE = ("namespace", "serviceaccount", "clusterrole", "role", "secret-reader", "run-secrets")


@pytest.fixture
async def operator(kube: KubeClient, tarsy_api: LocalApi, tmp_path: Path) -> Path:
    """A kubeconfig of the operator's ServiceAccount, bound as the manifests say."""
    return await operator_kubeconfig(kube, tarsy_api, tmp_path, *BASE)


async def configure(desk: Desk) -> None:
    """A chain whose agent acts as the account."""
    transport = {"type": "stdio", "stdio": {"command": "x", "kubeconfig": True}}
    await desk.put("MCPServer", "cluster", {"transport": transport, "tools": {"readOnly": ["*"]}})
    await desk.put("Agent", "one", {"serviceAccountName": ACCOUNT, "mcpServers": [{"name": "cluster"}]})
    await desk.configure(skip=("Agent",))


async def run_of(desk: Desk, name: str = "run") -> dict[str, Any]:
    """An Investigation that was accepted."""
    made = await desk.put("Investigation", name, {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
    await desk.reason("Investigation", name, "Accepted", "True", "Planned")
    return made


async def secret_of(desk: Desk, run: dict[str, Any]) -> dict[str, Any] | None:
    return await desk.kube.find("Secret", desk.namespace, secret_name(run["metadata"]["uid"]))


async def revoked(desk: Desk, run: dict[str, Any]) -> None:
    async def gone() -> bool:
        return await secret_of(desk, run) is None

    await eventually(gone)


async def unmarked(desk: Desk, kind: str, name: str) -> None:
    async def look() -> bool:
        return RUN_SECRET not in ((await desk.get(kind, name))["metadata"].get("annotations") or {})

    await eventually(look)


async def test_rights_of_the_component_are_enough_and_the_secret_ends_with_the_run(desk: Desk, operator: Path) -> None:
    await let_in(desk)
    async with desk.controller(kubeconfig=operator, everywhere=True, library="tarsy-library"):
        await configure(desk)
        await desk.reason("Agent", "one", "Ready", "True", "Usable")
        run = await run_of(desk)
        secret = await secret_of(desk, run)
        assert secret is not None and "data" not in secret and secret["immutable"] is True
        (owner,) = secret["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Investigation", "run", run["metadata"]["uid"])
        await desk.finish(await desk.claim())
        await desk.reason("Investigation", "run", "Finished", "True", "Succeeded")
        await revoked(desk, run)
        await unmarked(desk, "Investigation", "run")

        question = await desk.ask("why", "run")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        assert await secret_of(desk, question) is not None
        claimed = await eventually(desk.claim_question)
        assert claimed is not None and claimed.plan.accounts == {ACCOUNT}
        await desk.finish(claimed)
        await revoked(desk, question)
        await unmarked(desk, "ChatMessage", "why")


async def test_namespace_that_lets_nobody_act_says_so_on_the_agent_and_runs_all_the_same(
    desk: Desk, operator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.configuration.RECHECK_SECONDS", 0.3)
    async with desk.controller(kubeconfig=operator, everywhere=True, library="tarsy-library"):
        await configure(desk)
        message = await desk.reason("Agent", "one", "Ready", "False", "TokenForbidden")
        assert "spec.serviceAccountName" in message and "component `tenant-agents`" in message
        run = await run_of(desk)
        assert await secret_of(desk, run) is None
        await let_in(desk)
        await desk.reason("Agent", "one", "Ready", "True", "Usable")
        await desk.kube.delete("ServiceAccount", desk.namespace, ACCOUNT)
        await desk.kube.patch("Agent", desk.namespace, "one", {"spec": {"description": "look again"}})
        await desk.reason("Agent", "one", "Ready", "False", "ServiceAccountMissing")


async def test_agent_of_the_library_is_not_judged_by_accounts_of_its_own_namespace(desk: Desk) -> None:
    async with desk.controller(library=desk.namespace):
        await configure(desk)
        await desk.reason("Agent", "one", "Ready", "True", "Usable")


async def test_tokens_of_a_run_end_when_its_object_is_deleted(desk: Desk) -> None:
    async with desk.controller():
        await configure(desk)
        run = await run_of(desk)
        assert await secret_of(desk, run) is not None
        await desk.kube.delete("Investigation", desk.namespace, "run")
        await revoked(desk, run)


async def test_secret_of_a_run_that_ended_while_no_controller_was_there_is_found(desk: Desk) -> None:
    async with desk.controller():
        await configure(desk)
        run = await run_of(desk)
    await desk.finish(await desk.claim())
    assert await secret_of(desk, run) is not None
    async with desk.controller():
        await revoked(desk, run)
        await unmarked(desk, "Investigation", "run")


async def test_runs_whose_agents_act_as_nobody_have_no_secret(desk: Desk) -> None:
    async with desk.controller() as writes:
        await desk.configure()
        run = await run_of(desk)
        await desk.finish(await desk.claim())
        await desk.reason("Investigation", "run", "Finished", "True", "Succeeded")
        await desk.still("Investigation", "run")
        assert await secret_of(desk, run) is None
        assert not [write for write in writes if "secrets" in write]


async def test_server_that_wants_a_token_of_a_run_is_not_looked_at(desk: Desk) -> None:
    async with desk.controller(look_every=0.2):
        transport = {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp", "tokenAudience": "tools"}}
        await desk.put("MCPServer", "tools", {"transport": transport, "toolPolicy": "All"})
        await desk.reason("MCPServer", "tools", "Ready", "True", "Usable")
        assert "only within a run" in await desk.reason("MCPServer", "tools", "Available", "Unknown", "NotChecked")
        await desk.still("MCPServer", "tools")
