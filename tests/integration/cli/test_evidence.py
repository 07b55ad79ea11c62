"""`changes` and `triage` on a Kubernetes API: with all rights, with few, and with none."""

import json
from datetime import timedelta

import pytest

import rights
from integration.evidence_shop import build_shop
from tarsy.cli.runs.evidence import show_changes, show_triage, show_verdict
from tarsy.client.errors import ApiUseError
from tarsy.kube.client import KubeClient

WINDOW = timedelta(hours=2)


@pytest.fixture
async def shop(kube: KubeClient, namespace: str) -> str:
    """The namespace of the shop."""
    await build_shop(kube, namespace)
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
    assert await show_verdict(kube, shop, "deploy/checkout", "text") == 3
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


async def test_a_namespace_that_is_not_there_is_told(kube: KubeClient) -> None:
    with pytest.raises(ApiUseError, match="there is no namespace gone-away"):
        await show_changes(kube, "gone-away", None, WINDOW, "text")
