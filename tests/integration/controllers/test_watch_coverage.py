"""Tests an operator that starts before its kinds or rights: it becomes ready by itself when they come.

Decision: an API server of its own, because CRDs and roles concern the whole cluster.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

import rights
from apis import ApiKind, LocalApi, new_api
from e2e.waiting import until
from tarsy.controllers.machinery.watch import Watch
from tarsy.kube.client import KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.objects import install_crds, manifest, put

OPERATOR = "system:serviceaccount:tarsy-system:tarsy-operator"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:tarsy-system")


@pytest.fixture
def bare(api_kind: ApiKind) -> Iterator[LocalApi]:
    """An API server that knows nothing of this project."""
    with new_api(api_kind) as server:
        yield server


@contextlib.asynccontextmanager
async def watching(api: LocalApi) -> AsyncIterator[tuple[KubeClient, Watch, set[str]]]:
    """A watch with the operator's identity, beside the administrator; the set holds the names of alerts it saw."""
    seen: set[str] = set()

    def note(_: str | None, raw: Mapping[str, Any]) -> None:
        if raw["kind"] == "Alert":
            seen.add(raw["metadata"]["name"])

    async with (
        await KubeClient.load(api.kubeconfig) as admin,
        await KubeClient.load(api.kubeconfig_for(OPERATOR, GROUPS)) as operator,
    ):
        for name in ("shop", "tarsy-system"):
            await put(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        watch = Watch(operator, note)
        task = asyncio.create_task(watch.run())
        try:
            yield admin, watch, seen
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=20)


def alert(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": API_VERSION, "kind": "Alert", "metadata": meta, "spec": {"alertType": "T", "data": "d"}}


async def has_said(watch: Watch, *words: str) -> bool:
    return all(word in (watch.why_not() or "") for word in words)


async def nothing_is_missing(watch: Watch) -> bool:
    return watch.why_not() is None


async def test_kinds_and_rights_that_come_late_are_watched_without_a_restart(bare: LocalApi) -> None:
    async with watching(bare) as (admin, watch, seen):
        assert watch.why_not() == "the watch has not started yet"
        await until("nothing is served, so nothing is missing", lambda: nothing_is_missing(watch))
        await install_crds(admin)
        await admin.create(alert("before"))
        await until("the missing right is told", lambda: has_said(watch, "agents", "is not allowed to list them"))
        await rights.put_rights(admin, manifest("base/clusterrole.yaml"))
        await until("everything is watched", lambda: nothing_is_missing(watch))
        await admin.create(alert("after"))

        async def both() -> bool:
            return seen == {"before", "after"}

        await until("both alerts are seen", both)


async def test_kinds_that_come_after_the_rights_are_watched(bare: LocalApi) -> None:
    async with watching(bare) as (admin, watch, seen):
        await rights.put_rights(admin, manifest("base/clusterrole.yaml"))
        await until("nothing is served, so nothing is missing", lambda: nothing_is_missing(watch))
        await install_crds(admin)
        await admin.create(alert("one"))

        async def it_is_seen() -> bool:
            return seen == {"one"} and watch.why_not() is None

        await until("the alert is seen", it_is_seen)
