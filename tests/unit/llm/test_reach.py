"""Where a provider's client goes, and what is refused before there is one."""

import pytest

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.reach import check_reach, server_of
from tarsy.llm.registry import ModelRegistry
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.plan.provider_types.openai import OPENAI_URL

REF = ObjectRef(kind="LLMProvider", namespace="shop", name="model", uid="u")
POD = Destinations(in_pod=True)


def provider(base_url: str | None) -> ProviderPlan:
    return ProviderPlan(ref=REF, type="openai", model="m", base_url=base_url)


def test_the_makers_own_address_is_not_judged() -> None:
    check_reach(provider(None), POD)
    server = server_of(provider(None), OPENAI_URL, POD)
    assert (server.url, server.host, server.makers) == ("https://api.openai.com/v1", "api.openai.com", True)
    assert server.judge.why_not(server.host, "10.0.0.1") is None


def test_a_client_gets_the_canonical_address_and_a_judge_for_its_namespace() -> None:
    server = server_of(provider("HTTP://Model.Shop.SVC.:080/v1"), OPENAI_URL, POD)
    assert (server.url, server.host, server.makers) == ("http://model.shop.svc/v1", "model.shop.svc", False)
    assert server.judge.asked(server.host) == "model.shop.svc.cluster.local."
    assert server.judge.why_not(server.host, "10.0.0.1") is None
    assert "not public" in (server.judge.why_not("model.other.svc", "10.0.0.1") or "")


@pytest.mark.parametrize(
    ("base_url", "why"),
    [
        ("http://169.254.169.254/v1", "spec.baseURL is not allowed: host 169.254.169.254 has a link-local"),
        ("http://model.other.svc/v1", "spec.baseURL is not allowed: host model.other.svc is a Service of namespace"),
        (
            "http://\uff11\uff16\uff19.254.169.254/v1",
            "spec.baseURL is not a usable http(s) URL: the URL contains the char",
        ),
        ("http://2852039166/v1", "spec.baseURL is not a usable http(s) URL: the URL's host 2852039166 is not an IPv4"),
    ],
)
def test_what_may_not_be_asked_is_refused_with_object_field_and_reason(base_url: str, why: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_reach(provider(base_url), POD)
    assert caught.value.code is ModelErrorCode.INVALID_REQUEST and not caught.value.retryable
    assert str(caught.value).startswith(f"provider model: {why}")


async def test_no_client_is_made_for_a_provider_that_may_not_be_asked() -> None:
    def build(*_: object) -> None:
        raise AssertionError("a client was made")

    async def no_secret(*_: object) -> str:
        raise AssertionError("a Secret was read")

    registry = ModelRegistry(no_secret, build=build, destinations=POD)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="not allowed"):
        async with registry.client(provider("http://10.0.0.1/v1")):
            pass
