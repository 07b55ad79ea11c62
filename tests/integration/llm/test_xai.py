"""What is Grok's own, on the wire: its address's form, its effort, its limit. The SDK is the real one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.registry import build_client
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role
from wire import openai
from wire.server import StandIn

QUESTION = GenerateRequest([Message(Role.USER, "why?")])


async def asked(server: StandIn, plan: ProviderPlan) -> dict[str, Any]:
    server.answers = [openai.text("ok")]
    client = build_client(plan, "key")
    async with asyncio.timeout(60):
        assert [chunk async for chunk in client.generate(QUESTION)]
    await client.aclose()
    sent: dict[str, Any] = server.requests[-1]
    return sent


@pytest.mark.parametrize("type", ["openai", "xai"])
async def test_effort_and_limits_go_as_the_provider_says(
    type: str, server: StandIn, plan: Callable[..., ProviderPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_openai" if type == "openai" else "langchain_xai")
    monkeypatch.setenv("XAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("XAI_API_BASE", "http://127.0.0.1:1")
    wanted = {"thinking": {"effort": "high"}, "max_output_tokens": 99, "temperature": 0.5}
    sent = await asked(server, plan(type=type, base_url=server.base_url, **wanted))
    assert (sent["reasoning_effort"], sent["max_tokens"], sent["temperature"]) == ("high", 99, 0.5)
    assert sent["stream_options"] == {"include_usage": True}
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[-1]["authorization"] == "Bearer key"
    plain = await asked(server, plan(type=type, base_url=server.base_url))
    assert not {"reasoning_effort", "max_tokens", "temperature"} & plain.keys()
