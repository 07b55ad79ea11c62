"""Tests how a snapshot is read: pages, limits, refusals, kinds that are not served."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tarsy.evidence import reading
from tarsy.evidence.reading import KINDS, CannotRead, ReadKind, read_snapshot
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.target import UnknownTarget, find_target
from unit.evidence.objects import NOW, node, pod, service, snapshot, workload

PODS = ReadKind("Pod", "/api/v1", "pods")
ROUTES = ReadKind("HTTPRoute", "/apis/gateway.networking.k8s.io/v1", "httproutes", optional=True)


class Server:
    """Answers lists of pods in pages; other lists with an error."""

    def __init__(self, pods: int, status: int = 404) -> None:
        self.pods, self.status = pods, status
        self.asked: list[str] = []

    async def get(self, path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        self.asked.append(path)
        if not path.endswith("/pods"):
            raise CannotRead(self.status, "refused by the server")
        first, size = int(query.get("continue", 0)), int(query["limit"])
        last = min(first + size, self.pods)
        items = [{"metadata": {"name": f"p-{n}", "namespace": "shop"}} for n in range(first, last)]
        return {"items": items, "metadata": {"continue": str(last)} if last < self.pods else {}}


@pytest.mark.parametrize(
    ("pods", "read", "complete"), [(0, 0, True), (999, 999, True), (1000, 1000, True), (1001, 1000, False)]
)
async def test_a_kind_is_read_in_pages_up_to_its_limit(pods: int, read: int, complete: bool) -> None:
    found = await read_snapshot(Server(pods).get, "shop", NOW, [PODS], most=1000)
    assert len(found.keys("Pod")) == read
    assert found.complete("Pod", "shop") is complete
    assert [gap.reason for gap in found.gaps] == ([] if complete else ["only the first 1,000 were read"])


async def test_a_refused_kind_is_a_gap_and_a_kind_that_is_not_served_need_not_be() -> None:
    refused = ReadKind("Service", "/api/v1", "services")
    found = await read_snapshot(Server(1, 403).get, "shop", NOW, [PODS, refused, ROUTES])
    assert [(gap.kind, gap.reason) for gap in found.gaps] == [("Service", "may not be listed")]
    assert not found.complete("Service", "shop")
    assert not found.complete("HTTPRoute", "shop")
    absent = await read_snapshot(Server(1, 404).get, "shop", NOW, [ROUTES])
    assert absent.gaps == []
    assert absent.complete("HTTPRoute", "shop")


@pytest.mark.parametrize("status", [0, 401])
async def test_an_api_that_cannot_be_used_at_all_is_an_error(status: int) -> None:
    with pytest.raises(CannotRead, match="refused by the server"):
        await read_snapshot(Server(1, status).get, "shop", NOW)


async def test_a_list_that_does_not_end_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(reading, "LIST_SECONDS", 0.01)
    found = await read_snapshot(hanging, "shop", NOW, [PODS])
    assert [gap.reason for gap in found.gaps] == ["the list was not complete after 0.01 s"]


async def test_secrets_are_never_read_and_config_maps_without_their_data() -> None:
    server = Server(0)
    await read_snapshot(server.get, "shop", NOW)
    assert not [path for path in server.asked if "secrets" in path]
    assert {kind.kind for kind in KINDS if kind.metadata_only} == {"ConfigMap", "ServiceAccount"}


# Targets


@pytest.mark.parametrize("text", ["deploy/checkout", "Deployment/checkout", "deployments.apps/checkout", "checkout"])
def test_a_target_is_named_as_for_kubectl(text: str) -> None:
    found = find_target(snapshot(workload(), service(), pod()), "shop", text)
    assert found == ObjectKey("Deployment", "shop", "checkout")


def test_a_kind_in_a_plural_with_es_and_one_without_a_namespace() -> None:
    policy = {"kind": "NetworkPolicy", "metadata": {"name": "deny", "namespace": "shop"}}
    read = snapshot(policy, node())
    assert find_target(read, "shop", "networkpolicies/deny") == ObjectKey("NetworkPolicy", "shop", "deny")
    assert find_target(read, "shop", "node/node-1") == ObjectKey("Node", "", "node-1")


@pytest.mark.parametrize("text", ["", "/", "deploy/", "deploy/none", "gadget/x", "a/b/c"])
def test_a_target_that_is_not_there_is_a_sentence(text: str) -> None:
    with pytest.raises(UnknownTarget, match=r"there is no|is not known here|names no object"):
        find_target(snapshot(workload()), "shop", text)
