"""Tests `Ready`: it is true when a run could start now, with one patch for each change and none otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from integration.controllers.desk import Desk, eventually
from integration.mcp.servers import served
from integration.store.build import execution, model_call, model_result, stage, writer
from tarsy.record.run import Failure


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


async def test_a_provider_whose_calls_all_fail_says_so_and_takes_it_back_on_the_next_success(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.machinery.active.SERVING_SECONDS", 0.2)
    await desk.configure()
    async with desk.controller() as writes:
        await desk.reason("LLMProvider", "one", "Serving", "Unknown", "NotCalled")
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.alert()
        await desk.queued()
        claimed = await desk.claim()
        write, agent = writer(desk.pool, claimed.id), execution(claimed.id)
        await write.begin_stage(stage(claimed.id))
        await write.begin_execution(agent)
        for number, failure in enumerate(("ModelUnreachable", "ModelUnreachable", None)):
            await write.model_call_started(replace(model_call(agent.id, number, number), provider="one"))
            failed = Failure(failure, "words of a server") if failure else None
            await write.model_call_finished(model_result(agent.id, number, number, failure=failed))
            if failure:
                message = await desk.reason("LLMProvider", "one", "Serving", "False", failure)
                assert "words of a server" not in message
                said = await desk.reason("Chain", "one", "Ready", "True", "Usable")
                await eventually(lambda: _says(desk, "is not serving: its last calls failed (ModelUnreachable)"))
                assert "All referenced objects exist." in said
        await desk.reason("LLMProvider", "one", "Serving", "True", "Answers")
        await eventually(lambda: _says(desk, "All referenced objects exist.", whole=True))
        await desk.still("Chain", "one", 0.6)
        assert writes["PATCH llmproviders/status"] == 3, "one for the first look, one for each change"


async def _says(desk: Desk, words: str, whole: bool = False) -> bool:
    message = (await desk.conditions("Chain", "one"))["Ready"][2]
    return message == words if whole else words in message
