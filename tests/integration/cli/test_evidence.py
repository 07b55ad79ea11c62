"""`changes` and `triage` on a Kubernetes API: with all rights, with few, and with none."""

import json
from datetime import timedelta
from typing import Any

import pytest

import rights
from tarsy.cli.evidence import show_changes, show_triage
from tarsy.client.errors import ApiUseError
from tarsy.kube.client import KubeClient

WINDOW = timedelta(hours=2)
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "checkout"}},
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "registry.example/checkout:1.4",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
            }
        ]
    },
}
WAITING = {
    "name": "app", "image": "registry.example/checkout:1.4", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"waiting": {"reason": "ErrImagePull", "message": "registry.example/checkout:1.4: not found"}},
}  # fmt: skip


async def _made(kube: KubeClient, namespace: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    version = "apps/v1" if kind in ("Deployment", "ReplicaSet") else "v1"
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return await kube.create({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})


@pytest.fixture
async def shop(kube: KubeClient, namespace: str) -> str:
    """A namespace with a Deployment whose pod cannot pull its image, after its ConfigMap changed."""
    selector = {"matchLabels": {"app": "checkout"}}
    await _made(kube, namespace, "ConfigMap", "settings", data={"LEVEL": "a very private value"})
    spec = {"replicas": 1, "selector": selector, "template": TEMPLATE}
    owner = await _made(kube, namespace, "Deployment", "checkout", spec=spec)
    refs = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "checkout",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    pod = await _made(
        kube,
        namespace,
        "Pod",
        "checkout-1",
        spec=TEMPLATE["spec"],
        metadata={"labels": {"app": "checkout"}, "ownerReferences": refs},
    )
    status = {
        "phase": "Pending",
        "containerStatuses": [WAITING],
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
        ],
    }
    await kube.patch("Pod", namespace, "checkout-1", {"status": status}, subresource="status")
    ports = [{"port": 80, "targetPort": 8080}]
    await _made(
        kube, namespace, "Service", "checkout", spec={"selector": {"app": "chekout", "tier": "web"}, "ports": ports}
    )
    return namespace


async def test_triage_tells_faults_with_quotes(kube: KubeClient, shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert await show_triage(kube, shop, "deploy/checkout", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["rule"], one["certainty"]) for one in document["signals"]] == [("image-not-found", "Certain")]
    assert document["signals"][0]["quote"] == "registry.example/checkout:1.4: not found"
    assert document["target"] == {"kind": "Deployment", "namespace": shop, "name": "checkout"}


async def test_triage_of_a_namespace_names_the_service_that_selects_nothing(
    kube: KubeClient, shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await show_triage(kube, shop, None, "text") == 0
    out = capsys.readouterr().out
    assert f"Service {shop}/checkout selects app=chekout, tier=web, and no pod has these labels." in out
    assert 'image-not-found: "registry.example/checkout:1.4: not found"' in out


async def test_changes_rank_the_mounted_config_map_without_its_values(
    kube: KubeClient, shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await show_changes(kube, shop, "checkout", WINDOW, "json") == 0
    document = json.loads(capsys.readouterr().out)
    found = {one["object"]["kind"]: one for one in document["changes"]}
    assert {"ConfigMap", "Deployment"} <= found.keys()
    assert found["ConfigMap"]["source"] == "reconstructed"
    assert "private" not in json.dumps(document)
    assert await show_changes(kube, shop, "checkout", WINDOW, "text") == 0
    assert "ConfigMap" in capsys.readouterr().out


async def test_a_target_that_is_not_there_is_told_with_those_that_are(kube: KubeClient, shop: str) -> None:
    with pytest.raises(ApiUseError, match=rf"there is no Deployment {shop}/chekout; there are checkout"):
        await show_triage(kube, shop, "deploy/chekout", "text")
    with pytest.raises(ApiUseError, match="kind 'gadget' is not known here"):
        await show_triage(kube, shop, "gadget/x", "text")


async def test_what_may_not_be_read_is_told_and_never_shown(
    kube: KubeClient, shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": shop}})
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
    subject = rights.account("reader", shop)
    given = [rights.role("reader", shop, rule), rights.binding("reader", shop, "Role", "reader", subject)]
    await rights.put_rights(kube, given)
    token = await kube.create_token(shop, "reader")
    async with kube.without_identity() as nobody:
        assert await show_triage(nobody.bearing(token), shop, None, "text") == 0
    told = capsys.readouterr()
    assert "No rule finds a fault" in told.out
    assert "Not read: Pod, Event, ConfigMap" in told.err
    assert "may not be listed" in told.err
    assert "checkout-1" not in told.out + told.err


async def test_credentials_that_are_not_accepted_end_the_command(kube: KubeClient, shop: str) -> None:
    async with kube.without_identity() as nobody:
        with pytest.raises(ApiUseError, match="the cluster cannot be read"):
            await show_triage(nobody.bearing("none"), shop, None, "text")
