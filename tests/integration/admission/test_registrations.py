"""Tests that the operator can change only the CA certificate of its own registrations."""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest

import rights
from integration.admission.conftest import CONFIGURED, OPERATOR, SYSTEM, As, put_policies
from tarsy.http.admission.registration import API_SERVICE
from tarsy.http.admission.webhook import CONFIGURATION
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.objects import manifest, put

pytestmark = pytest.mark.newer_api

HOOKS, SERVICES = "MutatingWebhookConfiguration", "APIService"
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUE\n-----END CERTIFICATE-----\n").decode()
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}")
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(autouse=True)
async def _installed(admin: KubeClient) -> None:
    await put(admin, CONFIGURED)
    for obj in manifest("base/record-api.yaml"):
        if obj["kind"] == SERVICES:
            await put(admin, obj)
    await rights.put_rights(admin, manifest("base/record-access.yaml"))
    await put_policies(admin)


async def changed(client: KubeClient, kind: str, name: str, change: Change) -> dict[str, Any]:
    """Writes an object with one change, as the client."""
    found = copy.deepcopy(await client.get(kind, None, name))
    change(found)
    return await client.replace(found)


def _hook(**fields: Any) -> Change:
    return lambda found: found["webhooks"][0].update(fields)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("rules", _hook(rules=[PODS])),
        ("a wildcard", lambda found: found["webhooks"][0]["rules"][0].update(resources=["*"])),
        ("failure policy", _hook(failurePolicy="Ignore")),
        ("namespace selector", _hook(namespaceSelector={"matchLabels": {"a": "b"}})),
        ("object selector", _hook(objectSelector={"matchLabels": {"a": "b"}})),
        ("conditions", _hook(matchConditions=[{"name": "never", "expression": "false"}])),
        ("reinvocation", _hook(reinvocationPolicy="Never")),
        ("timeout", _hook(timeoutSeconds=30)),
        ("side effects", _hook(sideEffects="NoneOnDryRun")),
        ("url", lambda found: found["webhooks"][0].update(clientConfig={"url": "https://attacker.example/stamp"})),
        ("path", lambda found: found["webhooks"][0]["clientConfig"]["service"].update(path="/other")),
        ("service", lambda found: found["webhooks"][0]["clientConfig"]["service"].update(namespace="shop")),
        ("name", _hook(name="other.tarsy.dev")),
        ("one more", lambda found: found["webhooks"].append({**found["webhooks"][0], "name": "more.tarsy.dev"})),
        ("none", lambda found: found.update(webhooks=[])),
        ("labels", lambda found: found["metadata"].setdefault("labels", {}).update(a="b")),
        ("annotations", lambda found: found["metadata"].setdefault("annotations", {}).update(a="b")),
        ("finalizers", lambda found: found["metadata"].update(finalizers=["tarsy.dev/never"])),
        (
            "owners",
            lambda found: found["metadata"].update(
                ownerReferences=[{"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "1"}]
            ),
        ),
    ],
)  # fmt: skip
@pytest.mark.sweep("another field")
async def test_the_operator_changes_nothing_of_its_webhook_but_the_authority(
    as_user: As, what: str, change: Change
) -> None:
    async with as_user(OPERATOR, *GROUPS) as operator:
        with pytest.raises(ApiError) as refused:
            await changed(operator, HOOKS, CONFIGURATION, change)
    assert refused.value.status == 403, what
    assert "the operator writes only" in refused.value.message and "caBundle" in refused.value.message


async def test_the_operator_brings_the_authority_of_its_webhook(as_user: As) -> None:
    async with as_user(OPERATOR, *GROUPS) as operator:
        found = await changed(
            operator, HOOKS, CONFIGURATION, lambda each: each["webhooks"][0]["clientConfig"].update(caBundle=BUNDLE)
        )
    assert found["webhooks"][0]["clientConfig"]["caBundle"] == BUNDLE


async def test_an_administrator_changes_the_webhook(admin: KubeClient) -> None:
    found = await changed(admin, HOOKS, CONFIGURATION, _hook(timeoutSeconds=7))
    assert found["webhooks"][0]["timeoutSeconds"] == 7


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("service", lambda found: found["spec"]["service"].update(name="other")),
        ("port", lambda found: found["spec"]["service"].update(port=444)),
        ("no check of certificates", lambda found: found["spec"].update(caBundle=None, insecureSkipTLSVerify=True)),
        ("priority", lambda found: found["spec"].update(groupPriorityMinimum=1)),
        ("annotations", lambda found: found["metadata"].setdefault("annotations", {}).update(a="b")),
    ],
)  # fmt: skip
async def test_the_operator_changes_nothing_of_its_aggregated_api_but_the_authority(
    as_user: As, what: str, change: Change
) -> None:
    async with as_user(OPERATOR, *GROUPS) as operator:
        with pytest.raises(ApiError) as refused:
            await changed(operator, SERVICES, API_SERVICE, change)
    assert refused.value.status == 403, what
    assert "the operator writes only caBundle" in refused.value.message


async def test_the_operator_brings_the_authority_of_its_aggregated_api(as_user: As) -> None:
    async with as_user(OPERATOR, *GROUPS) as operator:
        found = await changed(operator, SERVICES, API_SERVICE, lambda each: each["spec"].update(caBundle=BUNDLE))
    assert found["spec"]["caBundle"] == BUNDLE
