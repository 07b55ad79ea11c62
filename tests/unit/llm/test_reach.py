"""Whether a provider's own address may be asked."""

from collections.abc import Sequence

import pytest

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.reach import REMEMBERED_SECONDS, Reach
from tarsy.llm.registry import ModelRegistry
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ObjectRef, ProviderPlan

REF = ObjectRef(kind="LLMProvider", namespace="shop", name="model", uid="u")


def provider(base_url: str | None) -> ProviderPlan:
    return ProviderPlan(ref=REF, type="openai", model="m", base_url=base_url)


class Names:
    """What names are found at; counts who asks."""

    def __init__(self, **addresses: str) -> None:
        self.addresses, self.asked = addresses, 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        if host not in self.addresses:
            raise OSError("not found")
        return ["93.184.215.14", self.addresses[host]]


def reach(names: Names, now: list[float] | None = None) -> Reach:
    clock = now if now is not None else [0.0]
    return Reach(Destinations(in_pod=True), resolve=names.resolve, clock=lambda: clock[0])


async def test_the_makers_own_address_is_never_looked_up() -> None:
    names = Names()
    await reach(names).check(provider(None))
    assert names.asked == 0


async def test_one_inner_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(ModelError) as caught:
        await reach(Names(evil="10.0.0.1")).check(provider("http://evil/v1"))
    assert caught.value.code is ModelErrorCode.INVALID_REQUEST and not caught.value.retryable
    assert "provider model: spec.baseURL is not allowed: host evil has an address that is not public" in str(
        caught.value
    )


async def test_a_refused_literal_is_not_looked_up() -> None:
    names = Names()
    with pytest.raises(ModelError, match="link-local"):
        await reach(names).check(provider("http://169.254.169.254/v1"))
    assert names.asked == 0


async def test_a_name_that_is_not_found_is_left_to_the_client() -> None:
    await reach(Names()).check(provider("http://gone/v1"))


async def test_the_answer_is_remembered_for_a_minute_and_asked_for_again_after_it() -> None:
    names, now = Names(a="93.184.215.14"), [100.0]
    judge = reach(names, now)
    for _ in range(3):
        await judge.check(provider("http://a/v1"))
    assert names.asked == 1
    names.addresses["a"] = "127.0.0.1"
    now[0] += REMEMBERED_SECONDS - 0.001
    await judge.check(provider("http://a/v1"))
    now[0] += 0.001
    with pytest.raises(ModelError, match="operator's own pod"):
        await judge.check(provider("http://a/v1"))


async def test_no_client_is_made_for_a_provider_that_may_not_be_asked() -> None:
    def build(*_: object) -> None:
        raise AssertionError("a client was made")

    async def no_secret(*_: object) -> str:
        raise AssertionError("a Secret was read")

    registry = ModelRegistry(no_secret, build=build, reach=reach(Names(evil="10.0.0.1")))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="not allowed"):
        async with registry.client(provider("http://evil/v1")):
            pass
