"""A stand-in server and a provider that talks to it, over real sockets and with the real SDKs."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tarsy.llm.google_native.provider import GoogleNativeProvider
from tarsy.llm.langchain import LangChainProvider
from tarsy.plan.model import ObjectRef, ProviderPlan
from wire.server import StandIn, standing_in

KEY = "sk-0123456789abcdefSECRET"


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """The stand-in, listening."""
    async with standing_in() as standin:
        yield standin


@pytest.fixture
def plan() -> Callable[..., ProviderPlan]:
    """Makes a provider plan."""

    def make(**fields: object) -> ProviderPlan:
        ref = ObjectRef(kind="LLMProvider", namespace="team", name="house-model")
        return ProviderPlan.model_validate({"ref": ref, "type": "openai", "model": "gpt-x", **fields})

    return make


@pytest.fixture
async def provider(server: StandIn, plan: Callable[..., ProviderPlan]) -> AsyncIterator[LangChainProvider]:
    """A provider with a key, closed at the end."""
    client = LangChainProvider(plan(base_url=server.base_url), KEY)
    yield client
    await client.aclose()


@pytest.fixture
async def gemini_client(
    server: StandIn, plan: Callable[..., ProviderPlan]
) -> AsyncIterator[Callable[..., GoogleNativeProvider]]:
    """Makes providers on Gemini's own client, closed at the end."""
    made: list[GoogleNativeProvider] = []

    def build(model: str = "gemini-3-pro", key: str | None = KEY, **fields: Any) -> GoogleNativeProvider:
        settings = {"type": "google", "backend": "google-native", "base_url": server.url, **fields}
        made.append(GoogleNativeProvider(plan(model=model, **settings), key))
        return made[-1]

    yield build
    for client in made:
        await client.aclose()
