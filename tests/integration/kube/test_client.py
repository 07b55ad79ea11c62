"""Tests the client against a real API server: identities, refusals, pages, preconditions."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis import LocalApi
from tarsy.kube import client as module
from tarsy.kube.client import ApiError, KubeClient


def config_map(namespace: str, name: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **meta}}


async def test_missing_object_is_none_or_an_error_as_asked(kube: KubeClient, namespace: str) -> None:
    assert await kube.find("ConfigMap", namespace, "none") is None
    with pytest.raises(ApiError, match="not found") as caught:
        await kube.get("ConfigMap", namespace, "none")
    assert (caught.value.status, caught.value.reason, caught.value.transient) == (404, "NotFound", False)


async def test_kind_that_the_api_does_not_serve_is_no_missing_object(kube_api: LocalApi) -> None:
    async with await KubeClient.load(kube_api.kubeconfig) as client:
        with pytest.raises(ApiError) as caught:
            await client.read("/apis/nobody.example/v1/things/x")
    assert caught.value.status == 404 and caught.value.reason != "NotFound"
    assert "/apis/nobody.example/v1/things/x" in caught.value.message


async def test_object_that_exists_or_changed_is_told_by_reason(kube: KubeClient, namespace: str) -> None:
    made = await kube.create(config_map(namespace, "one"))
    with pytest.raises(ApiError) as caught:
        await kube.create(config_map(namespace, "one"))
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
    await kube.patch("ConfigMap", namespace, "one", {"data": {"a": "1"}})
    old = {"resourceVersion": made["metadata"]["resourceVersion"]}
    with pytest.raises(ApiError) as caught:
        await kube.patch("ConfigMap", namespace, "one", {"metadata": old, "data": {"a": "2"}})
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")


async def test_deletion_is_of_the_object_that_is_meant_and_may_be_repeated(kube: KubeClient, namespace: str) -> None:
    made = await kube.create(config_map(namespace, "one"))
    await kube.delete("ConfigMap", namespace, "one", uid="00000000-0000-4000-8000-000000000000")
    assert await kube.find("ConfigMap", namespace, "one")
    for _ in range(2):
        await kube.delete("ConfigMap", namespace, "one", uid=made["metadata"]["uid"])
    assert await kube.find("ConfigMap", namespace, "one") is None


async def test_list_brings_all_pages(kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_SIZE", 3)
    for number in range(8):
        await kube.create(config_map(namespace, f"m-{number}", labels={"half": str(number % 2)}))
    found = await kube.list("ConfigMap", namespace, labelSelector="half=0")
    assert [item["metadata"]["name"] for item in found] == ["m-0", "m-2", "m-4", "m-6"]
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "ConfigMap")}
    assert len([i for i in await kube.list("ConfigMap", namespace) if i["metadata"]["name"].startswith("m-")]) == 8


async def test_user_without_rights_is_forbidden_and_the_refusal_names_him(kube_api: LocalApi, namespace: str) -> None:
    async with await KubeClient.load(kube_api.kubeconfig_for("nobody")) as client:
        with pytest.raises(ApiError, match='User "nobody" cannot get resource "secrets"') as caught:
            await client.find("Secret", namespace, "key")
    assert (caught.value.status, caught.value.reason, caught.value.transient) == (403, "Forbidden", False)


def login(kube_api: LocalApi, folder: Path, user: dict[str, Any]) -> Path:
    """A kubeconfig for that user."""
    document = yaml.safe_load(kube_api.kubeconfig.read_text())
    document["users"][0]["user"] = user
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_wrong_token_is_unauthorized_and_not_repeated_in_the_error(kube_api: LocalApi, tmp_path: Path) -> None:
    async with await KubeClient.load(login(kube_api, tmp_path, {"token": "s3cr3t-token"})) as client:
        with pytest.raises(ApiError) as caught:
            await client.list("Namespace")
    assert (caught.value.status, caught.value.reason) == (401, "Unauthorized")
    assert "s3cr3t" not in caught.value.message


@pytest.fixture
async def tokens(kube: KubeClient, namespace: str) -> Any:
    """Makes tokens of a ServiceAccount that may read its ConfigMaps."""
    await kube.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": namespace}}
    )

    async def make() -> str:
        return await kube.create_token(namespace, "reader")

    return make


async def forbidden_as(client: KubeClient) -> str:
    """Who the API says that is."""
    with pytest.raises(ApiError, match="cannot list") as caught:
        await client.list("Namespace")
    return caught.value.message


async def test_token_in_a_kubeconfig_is_used(kube_api: LocalApi, namespace: str, tokens: Any, tmp_path: Path) -> None:
    async with await KubeClient.load(login(kube_api, tmp_path, {"token": await tokens()})) as client:
        assert f"system:serviceaccount:{namespace}:reader" in await forbidden_as(client)


async def test_plugin_is_run_again_when_its_token_ends_and_not_before(
    kube_api: LocalApi, namespace: str, tokens: Any, tmp_path: Path
) -> None:
    calls, ends = tmp_path / "calls", tmp_path / "ends"
    ends.write_text("2000-01-01T00:00:00Z")
    status = {"token": await tokens(), "expirationTimestamp": "ENDS"}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport pathlib\n"
        f"open({str(calls)!r}, 'a').write('x')\n"
        f"print({json.dumps(credential)!r}.replace('ENDS', pathlib.Path({str(ends)!r}).read_text()))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": credential["apiVersion"], "command": str(plugin), "interactiveMode": "Never"}}
    async with await KubeClient.load(login(kube_api, tmp_path, user)) as client:
        assert f"system:serviceaccount:{namespace}:reader" in await forbidden_as(client)
        ran = len(calls.read_text())
        assert ran >= 2  # at the start, and because that token had ended
        ends.write_text("2999-01-01T00:00:00Z")
        for _ in range(3):
            await forbidden_as(client)
        assert len(calls.read_text()) == ran + 1


async def test_version_is_that_of_the_server(kube_api: LocalApi, kube: KubeClient) -> None:
    assert await kube.version() == kube_api.version
