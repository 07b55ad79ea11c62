"""A provider whose optional package is not installed says which command installs it."""

import sys

import pytest

from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.llm.providers import provider_spec
from tarsy.llm.registry import build_client
from tarsy.plan.model import Backend, ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role

TYPES = {
    "anthropic": "langchain_anthropic",
    "xai": "langchain_xai",
    "google": "langchain_google_genai",
    "vertexai": "langchain_google_genai",
}
EXTRAS = {"vertexai": "google"}


def plan(type: str) -> ProviderPlan:
    ref = ObjectRef(kind="LLMProvider", namespace="n", name="house")
    return ProviderPlan(ref=ref, type=type, backend=Backend.LANGCHAIN, model="m")


@pytest.mark.parametrize("type", TYPES)
async def test_a_missing_package_is_an_error_with_its_remedy(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, TYPES[type], None)
    package = provider_spec(type).clients[Backend.LANGCHAIN].package
    told = package.missing() if package else None
    assert told is not None and f"pip install 'tarsy-operator[{EXTRAS.get(type, type)}]'" in told
    client = build_client(plan(type), "key")
    with pytest.raises(ModelError) as raised:
        async for _ in client.generate(GenerateRequest([Message(Role.USER, "why?")])):
            pass
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.INVALID_REQUEST, False)
    assert raised.value.message == f"provider house (model m): {told}"
    await client.aclose()


def test_openai_needs_no_package_beyond_the_operators_own() -> None:
    assert all(client.package is None for client in provider_spec("openai").clients.values())
