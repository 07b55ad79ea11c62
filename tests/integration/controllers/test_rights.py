"""Tests the operator with the rights of the shipped manifests and no more."""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

import rights
from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.controllers.test_alert_routes import came
from tarsy.kube.client import KubeClient
from tarsy.kube.lease import LeaderElection
from tarsy_dev.objects import documents, put

ACCOUNT = "system:serviceaccount:tarsy-system:tarsy-operator"


@pytest.fixture
async def operator(kube: KubeClient, tarsy_api: LocalApi, tmp_path: Path) -> Path:
    """A kubeconfig of the operator's ServiceAccount, bound as the manifests say."""
    base = files("tarsy").joinpath("manifests", "base")
    for name in ("namespace.yaml", "serviceaccount.yaml", "clusterrole.yaml", "role.yaml", "secret-reader.yaml"):
        await rights.put_rights(kube, documents(base.joinpath(name).read_text("utf-8")))
    document: dict[str, Any] = yaml.safe_load(tarsy_api.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": await kube.create_token("tarsy-system", "tarsy-operator")}
    path = tmp_path / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_rights_of_the_manifests_are_enough_for_the_way_of_an_alert(desk: Desk, operator: Path) -> None:
    async with desk.controller(kubeconfig=operator, everywhere=True):
        await desk.configure()
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.core("ConfigMap", "body", {"data": {"alert": "it crashed"}})
        spec = {"alertType": "PodCrash", "dataFrom": {"configMapKeyRef": {"name": "body", "key": "alert"}}}
        await desk.put("Alert", "crash", {**spec, "ttlSecondsAfterFinished": 0})
        found = await desk.queued()
        name = found["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        claims = await desk.claim()
        assert str(claims.id) == found["metadata"]["uid"]
        await desk.finish(claims)

        await desk.finished("past")
        await desk.ask("why", "past")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        assert (await desk.get("ChatMessage", "why"))["metadata"]["ownerReferences"][0]["name"] == "past"

        async def gone() -> bool:
            return await desk.kube.list("Alert", desk.namespace) == []

        await eventually(gone)
        await desk.told(("Investigation", "Succeeded"))


async def test_secret_of_a_namespace_that_has_not_let_the_operator_in_is_forbidden_with_the_remedy(
    desk: Desk, operator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.configuration.RECHECK_SECONDS", 0.3)
    labels = {"tarsy.dev/credentials": "true"}
    await desk.core("Secret", "key", {"stringData": {"api-key": "s3cr3t-value"}}, labels=labels)
    async with desk.controller(kubeconfig=operator, everywhere=True):
        spec = {"type": "openai", "model": "m", "apiKeySecretRef": {"name": "key", "key": "api-key"}}
        await desk.put("LLMProvider", "one", spec)
        message = await desk.reason("LLMProvider", "one", "Ready", "False", "SecretForbidden")
        assert f"Secret {desk.namespace}/key" in message
        assert f"kubectl create rolebinding tarsy-secret-reader -n {desk.namespace}" in message
        tenant = files("tarsy").joinpath("manifests", "components", "tenant", "rolebinding.yaml").read_text("utf-8")
        for binding in documents(tenant):
            binding["metadata"]["namespace"] = desk.namespace
            await put(desk.kube, binding)
        await desk.reason("LLMProvider", "one", "Ready", "True", "Usable")


async def test_lease_is_taken_and_kept_with_the_rights_of_the_manifests(operator: Path) -> None:
    async with await KubeClient.load(operator) as client:
        election = LeaderElection(client, "tarsy-system", "tarsy-controller", "me", renew_seconds=0.1)
        running = asyncio.create_task(election.run())
        async with asyncio.timeout(60):
            await election.active.wait()
        taken = await client.get("Lease", "tarsy-system", "tarsy-controller")

        async def renewed() -> bool:
            lease = await client.get("Lease", "tarsy-system", "tarsy-controller")
            return bool(lease["spec"]["renewTime"] > taken["spec"]["renewTime"])

        await eventually(renewed)
        assert election.active.is_set()
        running.cancel()
        await asyncio.wait([running])
        given_back = await client.get("Lease", "tarsy-system", "tarsy-controller")
        assert given_back["spec"]["holderIdentity"] == ""


async def test_rights_of_the_manifests_are_enough_for_what_comes_in(
    desk: Desk, operator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.incidents.publisher.OWED_SECONDS", 0.0)
    await desk.configure()
    await desk.put("AlertRoute", "all", {"alertType": "PodCrash"})
    async with desk.controller(kubeconfig=operator, everywhere=True):
        await desk.reason("AlertRoute", "all", "Ready", "True", "Usable")
        await came(desk, author={"username": "alertmanager"})
        await came(desk, "two")

        async def told() -> bool:
            repeats = (await desk.get("Alert", "crash")).get("status", {}).get("repeats")
            return (repeats, (await desk.get("AlertRoute", "all"))["status"].get("matchedCount")) == (1, 2)

        async def investigated() -> list[dict[str, Any]]:
            return await desk.investigations()

        (investigation,) = await eventually(investigated)
        assert investigation["spec"]["author"]["username"] == "alertmanager"

        await eventually(told)
