"""Tests the condition of notification targets of chains and routes; runs start in any case."""

from typing import Any

import pytest

from integration.controllers.desk import Desk

LABEL = {"tarsy.dev/credentials": "true"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at again now and then is so soon."""
    monkeypatch.setattr("tarsy.controllers.configuration.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.kube.credentials.CACHE_SECONDS", 0.1)


def slack(secret: str) -> dict[str, Any]:
    return {"name": "people", "slack": {"channel": "C1", "tokenSecretRef": {"name": secret, "key": "token"}}}


async def test_a_chain_whose_target_lacks_its_secret_says_so_and_runs_until_it_is_created(desk: Desk) -> None:
    await desk.core("Secret", "plain", {"stringData": {"token": "xoxb-1"}})
    await desk.configure(skip=("Chain",))
    stages = [{"name": "look", "agents": [{"name": "one"}]}]
    spec = {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": stages}
    targets = [slack("gone"), {**slack("plain"), "name": "others"}]
    await desk.put("Chain", "one", {**spec, "notify": targets})
    async with desk.controller():
        message = await desk.reason("Chain", "one", "NotificationsReady", "False", "SecretMissing")
        assert f"spec.notify[0].slack.tokenSecretRef: Secret {desk.namespace}/gone does not exist; create it" in message
        assert f"spec.notify[1].slack.tokenSecretRef: Secret {desk.namespace}/plain lacks the label" in message
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.alert()
        await desk.queued()

        await desk.core("Secret", "gone", {"stringData": {"other": "xoxb-1"}}, labels=LABEL)
        await desk.kube.patch("Secret", desk.namespace, "plain", {"metadata": {"labels": LABEL}})
        await desk.reason("Chain", "one", "NotificationsReady", "False", "SecretKeyMissing")
        await desk.kube.patch("Secret", desk.namespace, "gone", {"stringData": {"token": "xoxb-1"}})
        await desk.reason("Chain", "one", "NotificationsReady", "True", "SecretsReadable")


async def test_a_route_says_the_same_of_its_own_targets(desk: Desk) -> None:
    await desk.put("AlertRoute", "all", {"notify": [slack("gone")]})
    async with desk.controller():
        await desk.reason("AlertRoute", "all", "NotificationsReady", "False", "SecretMissing")
        await desk.reason("AlertRoute", "all", "Ready", "True", "Usable")
        await desk.core("Secret", "gone", {"stringData": {"token": "xoxb-1"}}, labels=LABEL)
        await desk.reason("AlertRoute", "all", "NotificationsReady", "True", "SecretsReadable")
