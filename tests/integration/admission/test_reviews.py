"""Tests who may write and change Reviews: by the webhook, and by the policies without it."""

from typing import Any
from uuid import uuid4

import pytest

from apis import LocalApi
from e2e.waiting import until
from integration.admission.conftest import NEEDS_POLICIES, SHOP, As, put_policies
from integration.admission.test_webhook import taken
from tarsy.http.admission.webhook import Admission
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION


def review(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": SHOP}
    about = {"investigationRef": {"name": "crash"}}
    return {"apiVersion": API_VERSION, "kind": "Review", "metadata": meta, "spec": about | spec}


async def refused(client: KubeClient, name: str, spec: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as found:
        await taken(lambda: client.patch("Review", SHOP, name, {"spec": spec}))
    assert (found.value.status, found.value.reason) == (403, "Forbidden")
    return found.value.message


async def test_a_review_is_its_authors_and_nobody_else_changes_it(webhook: Admission, as_user: As) -> None:
    async with as_user("anna", "reviewers") as anna, as_user("ben", "reviewers") as ben:
        made = await taken(lambda: anna.create(review("annas", verdict="Right")))
        assert made["spec"]["author"]["username"] == "anna"
        assert "only its author may change it" in await refused(ben, "annas", {"verdict": "Wrong"})
        changed = await taken(lambda: anna.patch("Review", SHOP, "annas", {"spec": {"verdict": "Partly"}}))
        assert changed["spec"]["verdict"] == "Partly"
        labelled = await taken(lambda: ben.patch("Review", SHOP, "annas", {"metadata": {"labels": {"a": "b"}}}))
        assert labelled["spec"] == changed["spec"]
        with pytest.raises(ApiError, match=r"spec\.author"):
            await taken(lambda: ben.create(review("forged", author={"username": "anna"})))
    async with as_user("eve", "on-call") as eve:
        with pytest.raises(ApiError) as no_role:
            await eve.create(review("eves"))
        assert no_role.value.status == 403


async def test_without_the_webhook_the_policies_hold_the_same(server: LocalApi, admin: KubeClient, as_user: As) -> None:
    if server.version < NEEDS_POLICIES:
        pytest.skip("needs policies")
    await put_policies(admin)
    async with as_user("anna", "reviewers") as anna, as_user("ben", "reviewers") as ben:
        await taken(lambda: anna.create(review("annas", author={"username": "anna"})))

        async def other() -> dict[str, Any]:
            return await ben.patch("Review", SHOP, "annas", {"spec": {"note": uuid4().hex}})

        async def holds() -> bool:
            try:
                await other()
            except ApiError as error:
                return error.reason == "Forbidden" and "only its author may change it" in error.message
            return False

        await until("the policy is in force", holds)
        changed = await anna.patch("Review", SHOP, "annas", {"spec": {"verdict": "Partly"}})
        assert changed["spec"]["verdict"] == "Partly"
        assert "is not the creating user ben" in await _forged(ben)


async def _forged(ben: KubeClient) -> str:
    with pytest.raises(ApiError) as found:
        await ben.create(review("forged", author={"username": "anna"}))
    return found.value.message
