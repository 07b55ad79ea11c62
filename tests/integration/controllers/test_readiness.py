"""`Ready` means that a run would start now, and comes to rest: one patch a change, none where nothing changed."""

from typing import Any

import pytest

from integration.controllers.desk import Desk, eventually
from integration.mcp.servers import served

pytestmark = pytest.mark.kubernetes


async def test_a_provider_that_is_not_ready_is_said_on_the_agents_way_up_and_taken_back_with_one_patch_each(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.configuration.RECHECK_SECONDS", 0.2)
    await desk.configure(skip=("LLMProvider",))
    key = {"name": "key", "key": "api-key"}
    await desk.put("LLMProvider", "one", {"type": "openai", "model": "m", "apiKeySecretRef": key})
    await desk.put("InvestigationDefaults", "default", {"llmProvider": "one"})
    async with desk.controller() as writes:
        for kind in ("Chain", "InvestigationDefaults"):
            message = await desk.reason(
                kind, "one" if kind == "Chain" else "default", "Ready", "False", "ReferencesNotReady"
            )
            assert message.startswith("spec.llmProvider: LLMProvider") and "(SecretMissing)" in message
        await desk.still("Chain", "one", 0.5)
        writes.clear()
        labels = {"tarsy.dev/credentials": "true"}
        await desk.core("Secret", "key", {"stringData": {"api-key": "value"}}, labels=labels)
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.reason("InvestigationDefaults", "default", "Ready", "True", "Usable")
        await desk.still("Chain", "one", 1.0)
        await desk.still("InvestigationDefaults", "default", 0.1)
        written = {key.split()[1].split("/")[0]: count for key, count in writes.items() if key.endswith("/status")}
        assert written == {"llmproviders": 1, "chains": 1, "investigationdefaults": 1}


async def test_a_chain_that_cannot_run_says_so_by_field_path(desk: Desk) -> None:
    await desk.configure(skip=("Chain",))
    stages = [{"name": "look", "agents": [{"name": "one"}]}]
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "strategy": ({"strategy": "native-thinking"}, "spec.strategy: strategy native-thinking needs the backend"),
        "dollars": ({"budget": {"costUSD": 1}}, f"LLMProvider {desk.namespace}/one: spec.rates: is not set"),
        "itself": ({"fallback": [{"llmProvider": "one"}]}, "spec.fallback[0].llmProvider: LLMProvider one is its own"),
    }
    for name, (spec, _) in wrong.items():
        await desk.put("Chain", name, {"llmProvider": "one", "stages": stages, **spec})
    async with desk.controller():
        for name, (_, words) in wrong.items():
            message = await desk.reason("Chain", name, "Ready", "False", "PlanInvalid")
            assert words in message, message


async def test_a_tool_that_the_server_lost_is_said_on_the_chain_and_holds_up_no_other_run(desk: Desk) -> None:
    async with served() as web, desk.controller(look_every=0.2):
        transport = {"type": "http", "http": {"url": web.url}}
        await desk.put("MCPServer", "tools", {"transport": transport, "tools": {"readOnly": ["*"]}})
        await desk.configure(skip=("Chain",))
        chain = {
            "alertTypes": ["PodCrash"],
            "llmProvider": "one",
            "mcpServers": [{"name": "tools", "tools": ["new_one"]}],
            "stages": [{"name": "look", "agents": [{"name": "one"}]}],
        }
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        await desk.put("Chain", "one", chain)
        message = await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")
        assert f"spec.mcpServers[0].tools: MCPServer {desk.namespace}/tools has no tool new_one" in message
        await desk.alert()
        name = (await eventually(desk.investigations))[0]["metadata"]["name"]
        assert "has no tool new_one" in await desk.reason("Investigation", name, "Accepted", "False", "PlanInvalid")
        web.server.add_tool(lambda: "", name="new_one", description="New.")
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
