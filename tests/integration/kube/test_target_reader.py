"""Tests that the objects which a call changes are read by the rights of the run's ServiceAccount, and no further."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

import rights
from apis import LocalApi
from e2e.waiting import until
from tarsy.kube.client import KubeClient
from tarsy.kube.tokens import secret_name
from tarsy.record.approvals.approval_targets import TargetName, changed_since, state_of
from tarsy.runtime.approving.reading import TargetReader, TargetsUnread
from tarsy.runtime.service_account_tokens import RunTokens

RUN = uuid4()
MAY = {"apiGroups": ["", "tarsy.dev"], "resources": ["configmaps", "secrets", "chains"], "verbs": ["get"]}


@pytest.fixture
async def reader(tarsy_api: LocalApi, kube: KubeClient, namespace: str) -> AsyncIterator[TargetReader]:
    """Reads as the ServiceAccount `mender`, which may get some kinds of its namespace."""
    await kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("mender", namespace)})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": _meta(secret_name(str(RUN)), namespace)}
    await kube.create(secret)
    account = {"kind": "ServiceAccount", "name": "mender", "namespace": namespace}
    bound = rights.binding("mender", namespace, "Role", "mender", account)
    await rights.put_rights(kube, [rights.role("mender", namespace, MAY), bound])
    async with kube.without_identity() as nobody:
        yield TargetReader(nobody, RunTokens(kube, RUN, namespace), pause=0.0)


def _meta(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace}


async def test_objects_are_read_as_they_are_and_missing_ones_are_none(
    reader: TargetReader, kube: KubeClient, namespace: str
) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta("a", namespace), "data": {"a": "b"}}
    await kube.create(config)
    await kube.create(
        {
            "apiVersion": "tarsy.dev/v1alpha1",
            "kind": "Chain",
            "metadata": _meta("mend", namespace),
            "spec": {"stages": [{"name": "mend", "agents": [{"name": "mender"}]}]},
        }
    )
    names = [
        TargetName("v1", "ConfigMap", namespace, "a"),
        TargetName("tarsy.dev/v1alpha1", "Chain", namespace, "mend"),
        TargetName("v1", "ConfigMap", namespace, "b"),
    ]
    one, chain, missing = await reader.read("mender", names)
    assert one is not None and one["data"] == {"a": "b"} and missing is None
    shown = [state_of(names[0], one), state_of(names[1], chain)]
    assert shown[0].resource_version and shown[1].generation == 1
    assert changed_since([state_of(names[1], chain)], [state_of(names[1], chain)]) is None
    await kube.patch("Chain", namespace, "mend", {"status": {"observedGeneration": 1}}, subresource="status")
    await kube.patch("ConfigMap", namespace, "a", {"data": {"a": "c"}})
    now = await reader.read("mender", names[:2])
    assert changed_since(shown[1:], [state_of(names[1], now[1])]) is None, "a status-only change"
    assert changed_since(shown[:1], [state_of(names[0], now[0])]) is not None


async def test_of_a_secret_only_the_metadata_is_read(reader: TargetReader, kube: KubeClient, namespace: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": _meta("s", namespace), "stringData": {"k": "hunter22"}}
    await kube.create(secret)
    (found,) = await reader.read("mender", [TargetName("v1", "Secret", namespace, "s")])
    assert found is not None and found["metadata"]["uid"]
    assert "data" not in found and "stringData" not in found
    assert state_of(TargetName("v1", "Secret", namespace, "s"), found).resource_version


async def test_what_the_account_may_not_read_or_the_api_does_not_serve_is_told(
    reader: TargetReader, kube: KubeClient, namespace: str
) -> None:
    for account, name, why in (
        ("mender", TargetName("v1", "ServiceAccount", namespace, "mender"), "cannot read them"),
        ("mender", TargetName("v1", "ConfigMap", "kube-system", "a"), "cannot read them"),
        ("mender", TargetName("v1", "ConfigMap", "", "a"), "names no namespace"),
        ("mender", TargetName("v1", "Nothing", namespace, "a"), "serves no kind Nothing of v1"),
        ("mender", TargetName("none.example/v1", "Nothing", namespace, "a"), "does not serve none.example/v1"),
        ("nobody", TargetName("v1", "ConfigMap", namespace, "a"), "does not exist"),
        (None, TargetName("v1", "ConfigMap", namespace, "a"), "no ServiceAccount is known"),
    ):
        with pytest.raises(TargetsUnread, match=why) as unread:
            await reader.read(account, [name])
        assert not unread.value.away


async def test_a_run_that_ended_reads_nothing(reader: TargetReader, kube: KubeClient, namespace: str) -> None:
    name = TargetName("v1", "ConfigMap", namespace, "a")
    await kube.delete("Secret", namespace, secret_name(str(RUN)))

    async def refused() -> bool:
        try:
            await reader.read("mender", [name])
        except TargetsUnread:
            return True
        return False

    await until("its tokens are revoked", refused)
