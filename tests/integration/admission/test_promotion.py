"""Tests who may override or loosen the promotion of a Chain: by the webhook, and by the policy without it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from apis import LocalApi
from integration.admission.conftest import NEEDS_POLICIES, SHOP, As, put_policies
from integration.admission.test_webhook import taken
from tarsy.http.admission.webhook import Admission
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION

GATE = {"policy": "WhenPassed", "suiteRef": {"name": "nightly"}}
CANDIDATE = "0123456789abcdef"
OVERRIDE = {"revision": CANDIDATE}
FORGED = OVERRIDE | {"author": {"username": "jane", "groups": ["promoters"]}}
REFUSED = "eve may not promote Chain pods"


async def gated(admin: KubeClient) -> None:
    spec = {"llmProvider": "one", "stages": [{"name": "look", "agents": [{"name": "one"}]}], "promotion": GATE}
    meta = {"name": "pods", "namespace": SHOP}
    await admin.create({"apiVersion": API_VERSION, "kind": "Chain", "metadata": meta, "spec": spec})


def change(client: KubeClient, promotion: Any) -> Callable[[], Awaitable[dict[str, Any]]]:
    """Patches the promotion of the chain."""
    return lambda: client.patch("Chain", SHOP, "pods", {"spec": {"promotion": promotion}})


async def refused(write: Callable[[], Awaitable[dict[str, Any]]]) -> str:
    """Why it is refused."""
    with pytest.raises(ApiError) as found:
        await taken(write)
    assert (found.value.status, found.value.reason) == (403, "Forbidden")
    return found.value.message


async def in_force(admin: KubeClient) -> None:
    """Waits until the API server has seen the policy, which refuses everybody an override without an author."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            await change(admin, {"override": OVERRIDE})()
        except ApiError as error:
            assert error.reason == "Forbidden", error
            return
        await change(admin, {"override": None})()
        await asyncio.sleep(0.05)
    raise AssertionError("the policy is not in force")


async def stored(admin: KubeClient) -> dict[str, Any]:
    found: dict[str, Any] = (await admin.get("Chain", SHOP, "pods"))["spec"]["promotion"]
    return found


LOOSER = [
    pytest.param({"policy": "Immediate"}, id="policy"),
    pytest.param({"suiteRef": {"name": "easy"}}, id="suite"),
    pytest.param(None, id="removed"),
]


@pytest.mark.parametrize(
    "wanted", [pytest.param({"override": OVERRIDE}, id="own"), pytest.param({"override": FORGED}, id="forged"), *LOOSER]
)
async def test_who_may_not_promote_overrides_and_loosens_nothing(
    webhook: Admission, admin: KubeClient, as_user: As, wanted: Any
) -> None:
    await taken(lambda: _made(admin))
    async with as_user("eve", "authors") as eve:
        message = await refused(change(eve, wanted))
        assert REFUSED in message and "tarsy-promoter" in message
        assert await stored(admin) == GATE
        await taken(lambda: eve.patch("Chain", SHOP, "pods", {"spec": {"description": "Pods."}}))


async def _made(admin: KubeClient) -> dict[str, Any]:
    await gated(admin)
    return {}


async def test_promoter_is_stamped_on_the_override_and_others_keep_it(
    webhook: Admission, admin: KubeClient, as_user: As
) -> None:
    await taken(lambda: _made(admin))
    forged = OVERRIDE | {"author": {"username": "eve"}}
    async with as_user("jane", "promoters") as jane:
        await taken(change(jane, {"override": forged}))
    author = {"username": "jane", "groups": ["promoters", "system:authenticated"]}
    assert (await stored(admin))["override"] == OVERRIDE | {"author": author}
    async with as_user("eve", "authors") as eve:
        await taken(lambda: eve.patch("Chain", SHOP, "pods", {"spec": {"description": "Pods."}}))
        assert REFUSED in await refused(change(eve, {"override": {"revision": "f" * 16}}))
        assert (await stored(admin))["override"] == OVERRIDE | {"author": author}
        await taken(change(eve, {"override": None}))
        assert await stored(admin) == GATE


@pytest.mark.newer_api
@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"override": {"revision": "f" * 16}}, id="own"),
        pytest.param({"override": FORGED}, id="forged"),
        *LOOSER,
    ],
)
async def test_policy_refuses_the_same_without_the_webhook(
    server: LocalApi, admin: KubeClient, as_user: As, wanted: Any
) -> None:
    assert server.version >= NEEDS_POLICIES
    await gated(admin)
    await put_policies(admin)
    await in_force(admin)
    async with as_user("eve", "authors") as eve:
        message = await refused(change(eve, wanted))
        assert REFUSED in message and "tarsy-promoter" in message
        await eve.patch("Chain", SHOP, "pods", {"spec": {"description": "Pods."}})
    assert await stored(admin) == GATE


@pytest.mark.newer_api
async def test_policy_wants_the_promoter_as_author_and_lets_them_loosen(admin: KubeClient, as_user: As) -> None:
    await gated(admin)
    await put_policies(admin)
    await in_force(admin)
    async with as_user("jane", "promoters") as jane:
        for author in ({"username": "eve"}, {"username": "jane", "groups": ["system:masters"]}):
            message = await refused(change(jane, {"override": OVERRIDE | {"author": author}}))
            assert "spec.promotion.override.author: is not the user jane" in message
        await change(jane, {"override": FORGED})()
        await change(jane, {"policy": "Immediate", "override": None})()
    assert (await stored(admin))["policy"] == "Immediate"


@pytest.mark.newer_api
async def test_policy_and_webhook_agree(webhook: Admission, admin: KubeClient, as_user: As) -> None:
    await taken(lambda: _made(admin))
    await put_policies(admin)
    async with as_user("jane", "promoters") as jane:
        await taken(change(jane, {"override": OVERRIDE}))
    assert (await stored(admin))["override"]["author"]["username"] == "jane"
