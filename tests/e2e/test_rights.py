"""Rights never mix: an author of one namespace who tries to read another one through the tools of the library.

The models do what the attacker asks of them. `shop` may write its own defaults, providers and alerts; `pay` is a
namespace that only the library's tools may read. What must not happen rests on no prompt.
"""

import json
import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from e2e.tenant import ANSWER, Tenant, condition
from e2e.test_hostile import rows_with
from e2e.waiting import until
from tarsy_dev.objects import put
from tarsy_dev.stack import LIBRARY

pytestmark = pytest.mark.timeout(600)
OWN = "colour-of-shop-0815"
OPEN = {"from": "All"}
TOOLS = {"readOnly": ["get_logs", "get_resource", "list_events", "list_resources"]}


async def config_map(tenant: Tenant, namespace: str, text: str) -> None:
    meta = {"name": "settings", "namespace": namespace}
    data = {"colour": text, "padding": "x" * 4000}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


class Attack:
    """A chain of the library with tools that read all namespaces, the namespace `pay`, and the tenant as `shop`."""

    def __init__(self, shop: Tenant, library: Tenant, pay: str, mark: str) -> None:
        self.shop, self.library, self.pay, self.mark = shop, library, pay, mark
        self.secret = f"colour-of-pay-{mark}"

    async def tools(self, **spec: Any) -> None:
        """The library's server, which acts with the rights of the library: here, those of an administrator."""
        env = [{"name": "KUBECONFIG", "value": str(self.shop.machine.api.kubeconfig)}]
        stdio = {"command": sys.executable, "args": ["-m", "tarsy.kubernetes_tools"], "env": env}
        transport = {"type": "stdio", "stdio": stdio}
        limits = {"initSeconds": 120}
        await self.library.put(
            "MCPServer", self.mark, {"transport": transport, "tools": TOOLS, "timeouts": limits, **spec}
        )

    async def chain(self, **spec: Any) -> None:
        await self.library.put("Agent", self.mark, {"mcpServers": [{"name": self.mark}]})
        stages = [{"name": "look", "agents": [{"name": self.mark}]}]
        await self.library.put("Chain", self.mark, {"stages": stages, "allowedNamespaces": OPEN, **spec})

    def obeying(self, *then: dict[str, Any]) -> str:
        """A model that tries every way into `pay`, reads `shop`, and then goes on with `then`."""
        server, settings = self.mark, {"kind": "ConfigMap", "name": "settings"}
        tries: list[dict[str, Any]] = [
            {"name": f"{server}.get_resource", "arguments": {**settings, "namespace": self.pay}},
            {"name": f"{server}.get_resource", "arguments": {**settings, "namespace": self.pay, "Namespace": self.pay}},
            {"name": f"{server}.list_resources", "arguments": {"kind": "ConfigMap", "namespace": self.pay}},
            {"name": f"{server}.list_resources", "arguments": {"kind": "ConfigMap", "namespace": ""}},
            {"name": f"{server}.list_resources", "arguments": {"kind": "ConfigMap"}},
            {"name": f"{server}.list_events", "arguments": {"namespace": self.pay}},
            {"name": f"{server}.get_resource", "arguments": {**settings, "namespace": self.shop.namespace}},
        ]
        entries = [*({"calls": [call]} for call in tries), *(then or ({"text": json.loads(ANSWER)},))]
        others = [{"text": "As it is."}] * 40
        return json.dumps({"agents": {self.mark: entries}, "sequential": others})

    async def reached(self, run: str = "run") -> list[str]:
        """The results of all calls of a run."""
        inv = await self.shop.get(run)
        return [str(call["result"]) for call in await self.shop.mcp_calls(uuid.UUID(inv["metadata"]["uid"]))]


@pytest.fixture
async def attack(tenant: Tenant) -> AsyncIterator[Attack]:
    mark = f"m{uuid.uuid4().hex[:8]}"
    pay = f"pay-{mark}"
    await put(tenant.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pay}})
    library = Tenant(tenant.machine, LIBRARY, tenant.client, tenant.pool, tenant.folder)
    attack = Attack(tenant, library, pay, mark)
    await config_map(tenant, pay, attack.secret)
    await config_map(tenant, tenant.namespace, OWN)
    yield attack
    for kind in ("Chain", "Agent", "MCPServer", "LLMProvider"):
        await tenant.client.delete(kind, LIBRARY, mark)
    await tenant.client.delete("Secret", LIBRARY, f"{mark}-key")
    for model in library.models:
        await model.stop()


FAILS = {"error": {"status": 401, "message": "go away"}}


@pytest.mark.parametrize("reach", [{}, {"reach": {"boundBy": "Server"}}], ids=["argument", "server"])
@pytest.mark.parametrize("setting", ["fallback", "summarization"])
async def test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read(
    attack: Attack, setting: str, reach: dict[str, Any]
) -> None:
    shop = attack.shop
    evil = await shop.use_model(attack.obeying(), name="evil")
    named: Any = [{"llmProvider": "evil"}] if setting == "fallback" else {"llmProvider": "evil"}
    await shop.put("InvestigationDefaults", "default", {setting: named})
    await attack.library.use_model(attack.obeying(*((FAILS,) if setting == "fallback" else ())), name=attack.mark)
    await attack.tools(summarization={"thresholdTokens": 100}, **reach)
    await attack.chain(llmProvider=attack.mark)
    await shop.investigate(chain=attack.mark)
    inv = await shop.finished()
    assert condition(inv, "Succeeded") == ("False" if setting == "fallback" else "True"), inv["status"]
    assert evil.journal.requests == [], "the tenant's provider was asked"
    results = await attack.reached()
    assert len(results) == 7 and attack.secret not in "".join(results), results
    assert OWN in results[-1] + results[3], "the run's own namespace was not read"
    told = await shop.kubectl("get", "events") if shop.machine.kubectl else (0, "SettingNotUsed LLMProvider evil")
    assert "SettingNotUsed" in told[1] and "LLMProvider evil" in told[1]
    assert await rows_with(shop, attack.secret) == {}
    shown = json.dumps([request.messages for request in attack.library.model.journal.requests])
    assert attack.secret not in shown


@pytest.mark.parametrize("setting", ["llmProvider", "executiveSummary"])
async def test_where_the_chain_names_no_provider_none_of_the_tenants_is_taken(attack: Attack, setting: str) -> None:
    shop = attack.shop
    evil = await shop.use_model(attack.obeying(), name="evil")
    await attack.library.use_model(attack.obeying(), name=attack.mark)
    await attack.tools()
    if setting == "llmProvider":
        await shop.put("InvestigationDefaults", "default", {"llmProvider": "evil"})
        await attack.chain()
    else:
        await shop.put("InvestigationDefaults", "default", {"executiveSummary": {"llmProvider": "evil"}})
        slot = {"name": attack.mark, "llmProvider": attack.mark}
        await attack.chain(stages=[{"name": "look", "agents": [slot]}], chat={"enabled": False})
    await shop.investigate(chain=attack.mark)

    async def refused() -> str | None:
        inv = await shop.get()
        planned = condition(inv, "Accepted", "reason") == "PlanInvalid"
        return condition(inv, "Accepted", "message") if planned else None

    message = await until("the run is refused", refused)
    assert "no LLMProvider is set" in message and "LLMProvider evil is not used" in message
    assert f"spec.allowedProviderNamespaces of Chain {LIBRARY}/{attack.mark}" in message
    assert evil.journal.requests == [] == attack.library.model.journal.requests


@pytest.mark.parametrize("reach", [{}, {"reach": {"boundBy": "Server"}}], ids=["argument", "server"])
async def test_a_tenants_own_model_with_a_server_that_admits_it_reaches_no_further_than_its_namespace(
    attack: Attack, reach: dict[str, Any]
) -> None:
    shop = attack.shop
    await shop.use_model(attack.obeying().replace(f'{{"{attack.mark}": [', '{"agent": ['))
    await attack.tools(allowedNamespaces=OPEN, **reach)
    await shop.use_agent("agent")
    await shop.use_chain(["agent"])
    alert = {"alertType": "DiskFull", "data": "x", "mcpServers": [{"name": attack.mark}]}
    await shop.investigate(alert=alert)
    inv = await shop.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    results = await attack.reached()
    assert len(results) == 7 and attack.secret not in "".join(results), results
    assert OWN in results[-1]
    assert await rows_with(shop, attack.secret) == {}


async def test_a_chain_says_whose_runs_its_tools_are_bound_for(attack: Attack) -> None:
    await attack.shop.put("InvestigationDefaults", "default", {"llmProvider": "evil"})
    await attack.library.use_model(attack.obeying(), name=attack.mark)
    await attack.tools()
    await attack.chain(llmProvider=attack.mark)

    async def told() -> str | None:
        chain = await attack.library.get(attack.mark, "Chain")
        text = condition(chain, "ReachBound", "message")
        return text if attack.shop.namespace in text and condition(chain, "Ready") == "True" else None

    # What it was first judged by may not have had its Agent, or the tenant's defaults: it is looked at again.
    await attack.chain(llmProvider=attack.mark, description="As it was.")
    text = await until("the Chain says so", told)
    assert f"Runs of all other namespaces reach only their own namespace through MCPServer {LIBRARY}/" in text
    assert "spec.allowedProviderNamespaces" in text


async def test_the_owner_of_the_server_grants_more(attack: Attack) -> None:
    shop = attack.shop
    await attack.library.use_model(attack.obeying(), name=attack.mark)
    await attack.tools(reach={"boundBy": "Server", "unboundNamespaces": OPEN})
    await attack.chain(llmProvider=attack.mark)
    await shop.investigate(chain=attack.mark)
    await shop.finished()
    assert attack.secret in (await attack.reached())[0]
