"""A stand-in server and a provider that talks to it, over real sockets and with the real SDKs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from tarsy.llm.google_native.provider import GoogleNativeProvider
from tarsy.llm.langchain import LangChainProvider
from tarsy.llm.protocol import LLMClient
from tarsy.llm.providers.openai import OPENAI_CHAT
from tarsy.plan.model import ObjectRef, ProviderPlan
from wire.server import StandIn, standing_in

KEY = "sk-0123456789abcdefSECRET"
Client = TypeVar("Client", bound=LLMClient)


@asynccontextmanager
async def making(
    provider: Callable[[ProviderPlan, str | None], Client], plan: Callable[..., ProviderPlan], **defaults: Any
) -> AsyncIterator[Callable[..., Client]]:
    """Makes providers, closed at the end; `defaults` are fields of their plans."""
    made: list[Client] = []

    def make(model: str | None = None, key: str | None = KEY, **fields: Any) -> Client:
        chosen = {"model": model} if model else {}
        made.append(provider(plan(**{**defaults, **chosen, **fields}), key))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


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
    client = LangChainProvider(plan(base_url=server.base_url), KEY, OPENAI_CHAT)
    yield client
    await client.aclose()


@pytest.fixture
async def gemini_client(
    server: StandIn, plan: Callable[..., ProviderPlan]
) -> AsyncIterator[Callable[..., GoogleNativeProvider]]:
    """Makes providers on Gemini's own client."""
    fields = {"type": "google", "backend": "google-native", "model": "gemini-3-pro", "base_url": server.url}
    async with making(GoogleNativeProvider, plan, **fields) as make:
        yield make
