"""A provider whose package is not installed says which command installs it."""

import sys

import pytest

from tarsy.llm.google_native.provider import GOOGLE_GENAI, GoogleNativeProvider
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import Backend, ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role

PLAN = ProviderPlan(
    ref=ObjectRef(kind="LLMProvider", namespace="n", name="gemini"),
    type="google",
    backend=Backend.GOOGLE_NATIVE,
    model="gemini-3-pro",
)


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("google.genai", "tarsy.llm.google_native."))]:
        if not name.endswith((".provider", ".names")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    monkeypatch.setitem(sys.modules, "google.genai.types", None)


async def test_a_missing_package_is_an_error_with_its_remedy(without_package: None) -> None:
    assert GOOGLE_GENAI.missing() == GOOGLE_GENAI.remedy
    client = GoogleNativeProvider(PLAN, "key")
    with pytest.raises(ModelError) as raised:
        async for _ in client.generate(GenerateRequest([Message(Role.USER, "why?")])):
            pass
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.INVALID_REQUEST, False)
    assert "provider gemini (model gemini-3-pro)" in raised.value.message
    assert "pip install 'tarsy-operator[google]'" in raised.value.message
    await client.aclose()
