"""Tests what is recorded of changes, and of windows without a watch."""

import asyncio
from typing import Any

import pytest

from integration.controllers.desk import eventually
from integration.history.conftest import Shop
from tarsy.record.reading.object_history import VersionAction, WatchState

pytestmark = pytest.mark.timeout(180)


def deployment(image: str = "shop/checkout:1", **env: str) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    container = {"name": "app", "image": image, "env": variables}
    template = {"metadata": {"labels": {"app": "checkout"}}, "spec": {"containers": [container]}}
    return {"replicas": 1, "selector": {"matchLabels": {"app": "checkout"}}, "template": template}


async def test_changes_are_recorded_with_type_paths_and_manager(shop: Shop) -> None:
    await shop.make("ConfigMap", "config", data={"url": "http://a"})
    async with shop.recorder():
        assert await shop.versions() == []  # what is there when a history begins is no change
        await shop.make("Deployment", "checkout", "apps/v1", spec=deployment(LOG="debug"))
        await shop.until(lambda found: len(found) == 1)
        await shop.kube.patch("Deployment", shop.name, "checkout", {"spec": deployment("shop/checkout:2", LOG="info")})
        await shop.until(lambda found: len(found) == 2)
        await shop.kube.patch("ConfigMap", shop.name, "config", {"data": {"url": "http://b", "new": "1"}})
        await shop.until(lambda found: len(found) == 3)
        await shop.kube.patch("Deployment", shop.name, "checkout", {"spec": {"replicas": 3}})
        await shop.until(lambda found: len(found) == 4)
        await shop.kube.delete("ConfigMap", shop.name, "config")
        found = await shop.until(lambda found: len(found) == 5)
    created, rolled, scaled = (one for one in found if one.object.kind == "Deployment")
    config, deleted = (one for one in found if one.object.kind == "ConfigMap")
    assert (created.action, created.type, created.object.name) == (VersionAction.CREATED, "Rollout", "checkout")
    assert (rolled.action, rolled.type) == (VersionAction.CHANGED, "Rollout")
    assert rolled.fields == (
        "spec.template.spec.containers[app].env[LOG].value",
        "spec.template.spec.containers[app].image",
    )
    assert (rolled.patch[1]["old"], rolled.patch[1]["value"]) == ("shop/checkout:1", "shop/checkout:2")
    assert str(rolled.patch[0]["value"]).startswith("digest:")
    assert (config.type, config.fields) == ("Config", ("data.new", "data.url"))
    assert (scaled.type, scaled.fields) == ("Scale", ("spec.replicas",))
    assert (deleted.action, deleted.type, deleted.object.kind) == (VersionAction.DELETED, "Delete", "ConfigMap")
    assert all(version.not_before is None for version in (created, rolled, config, scaled, deleted))
    assert {version.manager for version in (created, rolled, config, scaled)} == {"tarsy"}


async def test_a_status_is_no_change_and_neither_is_a_leader_annotation(shop: Shop) -> None:
    await shop.make("ConfigMap", "leader", data={})
    async with shop.recorder(kinds=("ConfigMap", "ResourceQuota")):
        leader = {"metadata": {"annotations": {"control-plane.alpha.kubernetes.io/leader": "now"}}}
        await shop.kube.patch("ConfigMap", shop.name, "leader", leader)
        await shop.make("ConfigMap", "last", data={})
        found = await shop.until(lambda versions: any(one.object.name == "last" for one in versions))
    assert [one.object.name for one in found] == ["last"]


async def test_restart_loses_no_change_that_the_api_still_shows_and_tells_the_window(shop: Shop) -> None:
    for name in ("changed", "deleted", "same"):
        await shop.make("ConfigMap", name, data={"key": "before"})
    async with shop.recorder(kinds=("ConfigMap",)):
        pass
    await shop.kube.patch("ConfigMap", shop.name, "changed", {"data": {"key": "after"}})
    await shop.kube.delete("ConfigMap", shop.name, "deleted")
    await asyncio.sleep(1.1)  # the API's times are whole seconds
    await shop.make("ConfigMap", "created", data={})
    async with shop.recorder(kinds=("ConfigMap",)):
        found = await shop.until(lambda versions: len(versions) == 3)
        (window,) = await shop.unwatched(("ConfigMap",))
    by_name = {one.object.name: one for one in found}
    assert {name: one.action for name, one in by_name.items()} == {
        "changed": VersionAction.CHANGED,
        "deleted": VersionAction.DELETED,
        "created": VersionAction.CREATED,
    }
    assert window.since is not None and window.until is not None
    assert window.since < by_name["created"].changed_at < window.until
    gone = by_name["deleted"]
    assert gone.not_before == window.since and gone.changed_at <= window.until


async def test_a_window_is_told_for_kinds_without_any_change_too(shop: Shop) -> None:
    async with shop.recorder(kinds=("Service", "Deployment")):
        pass
    async with shop.recorder(kinds=("Service", "Deployment")):
        windows = await shop.unwatched(("Service", "Deployment"))
    assert sorted(window.kind for window in windows) == ["Deployment", "Service"]


async def test_kinds_that_are_not_served_are_noted_and_hinder_nothing(shop: Shop) -> None:
    async with shop.recorder():
        assert await shop.state("Application") is WatchState.NOT_SERVED
        await shop.make("ConfigMap", "new", data={})
        await shop.until(lambda versions: len(versions) == 1)
    assert [one.kind for one in await shop.unwatched()] == []


async def test_nothing_is_watched_without_the_label_or_without_a_key(shop: Shop) -> None:
    async with shop.recorder(key=None, watched=False):
        await shop.make("ConfigMap", "new", data={})
        await asyncio.sleep(0.5)
    await shop.kube.patch("Namespace", None, shop.name, {"metadata": {"labels": {"tarsy.dev/history": None}}})
    async with shop.recorder(watched=False):
        await asyncio.sleep(0.5)
    assert await shop.pool.fetchval("SELECT count(*) FROM object_watch") == 0
    assert await shop.pool.fetchval("SELECT count(*) FROM object_head") == 0


async def test_recording_stops_when_the_label_goes_and_the_history_says_so(shop: Shop) -> None:
    async with shop.recorder(kinds=("ConfigMap",)):
        await shop.kube.patch("Namespace", None, shop.name, {"metadata": {"labels": {"tarsy.dev/history": None}}})

        async def stopped() -> bool:
            return await shop.state("ConfigMap") is WatchState.STOPPED

        await eventually(stopped)
        await shop.make("ConfigMap", "later", data={})
        await asyncio.sleep(0.5)
    assert await shop.versions() == []
    (window,) = await shop.unwatched(("ConfigMap",))
    assert window.until is None and "no history any more" in window.reason


async def test_another_key_begins_anew_without_inventing_changes(shop: Shop) -> None:
    await shop.make("ConfigMap", "config", data={"key": "value"})
    async with shop.recorder(kinds=("ConfigMap",)):
        pass
    async with shop.recorder(kinds=("ConfigMap",), key=KEY_2):
        assert await shop.versions() == []
        await shop.kube.patch("ConfigMap", shop.name, "config", {"data": {"key": "other"}})
        (version,) = await shop.until(lambda versions: len(versions) == 1)
    assert version.fields == ("data.key",)


KEY_2 = b"another key of the installation, also 32 bytes"


async def test_two_recorders_write_each_change_once(shop: Shop) -> None:
    async with shop.recorder(kinds=("ConfigMap",)), shop.recorder(kinds=("ConfigMap",)):
        for number in range(5):
            await shop.make("ConfigMap", f"config-{number}", data={})
        for number in range(5):
            await shop.kube.patch("ConfigMap", shop.name, f"config-{number}", {"data": {"key": "value"}})
        await shop.make("ConfigMap", "last", data={})
        found = await shop.until(lambda versions: any(one.object.name == "last" for one in versions))
        await asyncio.sleep(0.5)
        found = await shop.versions()
    assert len({(one.object.uid, one.seq) for one in found}) == len(found)
    changed = [one.object.name for one in found if one.action is VersionAction.CHANGED]
    assert sorted(changed) == sorted(set(changed))
