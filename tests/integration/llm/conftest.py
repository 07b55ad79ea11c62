"""A stand-in server and a provider that talks to it, over real sockets and with the real SDKs."""

from collections.abc import AsyncIterator, Callable

import pytest

from integration.llm.standin import StandIn, serve
from tarsy.llm.langchain import LangChainProvider
from tarsy.plan.model import ObjectRef, ProviderPlan

KEY = "sk-0123456789abcdefSECRET"


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """The stand-in, listening."""
    standin = StandIn()
    runner = await serve(standin)
    try:
        yield standin
    finally:
        await runner.cleanup()


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
