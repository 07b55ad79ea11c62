"""Tests the limits of the history: retention, size of a namespace, rights, a storm, an expired watch."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rights
from apis import LocalApi
from integration.controllers.desk import eventually
from integration.controllers.grants import operator_kubeconfig, shipped
from integration.controllers.link import link_to
from integration.history.conftest import KINDS, Shop
from tarsy.cli.purge import purge_records
from tarsy.controllers.history.recorder import HistoryLimits
from tarsy.kube.client import ApiError, KubeClient
from tarsy.observe.metric_table import HISTORY_SHED
from tarsy.record.reading.object_history import ObjectVersion, VersionAction, WatchState
from tarsy.store.history.retention import HistoryRetention

pytestmark = pytest.mark.timeout(240)
DAY = timedelta(days=1)


async def changed(shop: Shop, number: int) -> None:
    """Records so many changes of one ConfigMap."""
    before = len(await shop.versions())
    for many in range(before + 1, before + number + 1):
        text = datetime.now(UTC).isoformat()
        await shop.kube.patch("ConfigMap", shop.name, "config", {"data": {"key": text}})
        await shop.until(partial(_has, many))


def _has(many: int, versions: Sequence[ObjectVersion]) -> bool:
    return len(versions) == many


async def test_the_rights_of_the_component_are_enough_and_without_them_it_is_told(
    shop: Shop, tarsy_api: LocalApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    names = ("namespace", "serviceaccount", "clusterrole", "history-reader")
    operator = await operator_kubeconfig(shop.kube, tarsy_api, tmp_path, *names)
    (binding,) = shipped("components/tenant-history", "rolebinding")
    binding["metadata"]["namespace"] = shop.name
    kinds = ("ConfigMap", "Deployment")
    async with shop.recorder(kubeconfig=operator, kinds=kinds, watched=False):

        async def forbidden() -> bool:
            return {await shop.state(kind) for kind in kinds} == {WatchState.FORBIDDEN}

        await eventually(forbidden)
        began = datetime.now(UTC)
        await rights.put_rights(shop.kube, [binding])
        await shop.watching(kinds, began)
        await shop.make("ConfigMap", "config", data={})
        await shop.until(lambda versions: len(versions) == 1)
        told = [message for message in caplog.messages if "does not watch ConfigMap" in message]
        assert len(told) == 1, "it is told once, however often it is tried"

    async with shop.recorder(kubeconfig=operator, watched=False):  # every kind of the component
        began = datetime.now(UTC)
        await shop.watching(KINDS, began)


async def test_rights_withdrawn_while_it_runs_are_told_and_the_window_is_recorded(
    shop: Shop, tarsy_api: LocalApi, tmp_path: Path
) -> None:
    names = ("namespace", "serviceaccount", "clusterrole", "history-reader")
    identity = await operator_kubeconfig(shop.kube, tarsy_api, tmp_path, *names)
    (binding,) = shipped("components/tenant-history", "rolebinding")
    binding["metadata"]["namespace"] = shop.name
    await rights.put_rights(shop.kube, [binding])
    async with (
        link_to(tarsy_api.url, identity, tmp_path) as (link, kubeconfig),
        shop.recorder(kubeconfig=kubeconfig, kinds=("ConfigMap",)),
    ):
        await shop.kube.delete("RoleBinding", shop.name, binding["metadata"]["name"])
        await _until_refused(shop.kube, identity, shop.name)
        await link.cut()  # an API server lets a watch end before it asks again
        await link.open()

        async def forbidden() -> bool:
            return await shop.state("ConfigMap") is WatchState.FORBIDDEN

        await eventually(forbidden)
        (window,) = await shop.unwatched(("ConfigMap",))
        assert window.until is None and "may not list and watch" in window.reason
        await shop.make("ConfigMap", "meanwhile", data={})
        began = datetime.now(UTC)
        await rights.put_rights(shop.kube, [binding])
        await shop.watching(("ConfigMap",), began)
        (version,) = await shop.until(lambda versions: len(versions) == 1)
        (window,) = await shop.unwatched(("ConfigMap",))
    assert version.action is VersionAction.CREATED
    assert window.since is not None and window.until is not None


async def _until_refused(kube: KubeClient, identity: Path, namespace: str) -> None:
    async with await KubeClient.load(identity) as client:

        async def refused() -> bool:
            try:
                await client.list("ConfigMap", namespace)
            except ApiError as error:
                return error.status == 403
            return False

        await eventually(refused)


async def test_a_watch_whose_changes_were_compacted_away_lists_again_and_tells_the_window(
    shop: Shop, tarsy_api: Any, tmp_path: Path
) -> None:
    await shop.make("ConfigMap", "goes", data={})
    async with (
        link_to(tarsy_api.url, tarsy_api.kubeconfig, tmp_path) as (link, kubeconfig),
        shop.recorder(kubeconfig=kubeconfig, kinds=("ConfigMap",)),
    ):
        await link.cut()
        await shop.kube.delete("ConfigMap", shop.name, "goes")
        await shop.make("ConfigMap", "comes", data={})
        await asyncio.to_thread(tarsy_api.compact)
        await asyncio.to_thread(tarsy_api.stop_apiserver)  # it keeps the last changes in its own memory
        await asyncio.to_thread(tarsy_api.start_apiserver)
        await link.open()
        found = await shop.until(lambda versions: len(versions) == 2)
        (window,) = await shop.unwatched(("ConfigMap",))
    assert {(one.object.name, one.action) for one in found} == {
        ("goes", VersionAction.DELETED),
        ("comes", VersionAction.CREATED),
    }
    assert "interrupted" in window.reason


async def test_a_watch_that_breaks_off_goes_on_without_a_window(shop: Shop, tarsy_api: Any, tmp_path: Path) -> None:
    async with (
        link_to(tarsy_api.url, tarsy_api.kubeconfig, tmp_path) as (link, kubeconfig),
        shop.recorder(kubeconfig=kubeconfig, kinds=("ConfigMap",)),
    ):
        await link.cut()
        await shop.make("ConfigMap", "comes", data={})
        await shop.kube.delete("ConfigMap", shop.name, "comes")
        await link.open()
        found = await shop.until(lambda versions: len(versions) == 2)
    assert [one.action for one in found] == [VersionAction.CREATED, VersionAction.DELETED]
    assert await shop.pool.fetchval("SELECT count(*) FROM object_unwatched") == 0


async def test_a_storm_sheds_and_the_last_states_are_recorded_all_the_same(shop: Shop) -> None:
    await shop.make("ConfigMap", "config", data={"key": "0"})
    async with shop.recorder(kinds=("ConfigMap",), limits=HistoryLimits(buffer_size=3)) as recorder:
        recording = recorder._recording
        assert recording is not None
        async with recording._one:  # nothing is recorded meanwhile
            for number in range(1, 41):
                await shop.kube.patch("ConfigMap", shop.name, "config", {"data": {"key": str(number)}})
                await shop.make("ConfigMap", f"of-the-storm-{number}", data={})

            async def shed() -> bool:
                return shop.metrics.value(HISTORY_SHED, type="Config") >= 70

            await eventually(shed)

        async def whole() -> bool:
            there = await shop.pool.fetchval("SELECT count(*) FROM object_head WHERE kind = 'ConfigMap'")
            windows = [one for one in await shop.unwatched(("ConfigMap",)) if one.until is not None]
            listed = len(await shop.kube.list("ConfigMap", shop.name))
            return bool(there == listed and windows)

        await eventually(whole)
        windows = await shop.unwatched(("ConfigMap",))
    assert any("changes arrived faster" in window.reason for window in windows)


@contextlib.asynccontextmanager
async def _recorded(shop: Shop, number: int) -> AsyncIterator[HistoryRetention]:
    await shop.make("ConfigMap", "config", data={"key": "0"})
    async with shop.recorder(kinds=("ConfigMap",)):
        await changed(shop, number)
    yield HistoryRetention(shop.pool)


async def _size(shop: Shop) -> int:
    versions: int = await shop.pool.fetchval("SELECT sum(bytes) FROM object_version")
    heads: int = await shop.pool.fetchval("SELECT sum(octet_length(form) + 400) FROM object_head")
    return versions + heads


async def test_the_oldest_versions_go_first_when_a_namespace_is_larger_than_its_limit(shop: Shop) -> None:
    async with _recorded(shop, 5) as retention:
        size = await _size(shop)
        assert await retention.evict(size + 1) == {}
        assert await retention.evict(size) == {}
        assert await retention.evict(size - 1) == {shop.name: 1}
        left = await shop.versions()
        assert [one.seq for one in left] == [2, 3, 4, 5]
        assert await _size(shop) < size
        assert await retention.evict(0) == {shop.name: 4}
        assert await shop.versions() == []
        assert await shop.pool.fetchval("SELECT count(*) FROM object_head") > 0


async def test_partitions_are_made_ahead_and_old_ones_dropped(shop: Shop) -> None:
    retention = HistoryRetention(shop.pool)
    today = date(2030, 6, 15)
    await retention.make_partitions(today)
    await retention.make_partitions(today)
    names = [row["relname"] for row in await shop.pool.fetch(PARTITIONS)]
    assert names == [f"object_version_203006{day}" for day in (14, 15, 16, 17)]
    noon = datetime(2030, 6, 15, 12, tzinfo=UTC)
    assert await retention.drop_partitions(noon - 2 * DAY) == 0
    assert await retention.drop_partitions(noon - DAY) == 0  # the day of the limit is kept
    assert await retention.drop_partitions(noon) == 1
    assert [row["relname"] for row in await shop.pool.fetch(PARTITIONS)] == names[1:]


PARTITIONS = (
    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid "
    "WHERE inhparent = 'object_version'::regclass ORDER BY relname"
)


async def test_purge_deletes_by_age_and_namespace(shop: Shop) -> None:
    async with _recorded(shop, 3) as retention:
        assert await retention.survey(3600) == {} == await retention.purge(3600)
        assert await retention.survey(0, ["other"]) == {} == await retention.purge(0, ["other"])
        assert await retention.survey(0, [shop.name]) == {shop.name: 3}
        assert await retention.purge(0, [shop.name]) == {shop.name: 3}
        assert await shop.versions() == []
        sizes = await shop.pool.fetch("SELECT bytes FROM object_history_size")
        assert [row["bytes"] for row in sizes] == [0]
        assert await shop.pool.fetchval("SELECT count(*) FROM object_watch") == 1, "it is still watched"
    await shop.pool.execute("UPDATE object_watch SET until = until - interval '2 days'")
    await retention.purge(90_000)
    assert await shop.pool.fetchval("SELECT count(*) FROM object_head") == 0


async def test_a_namespace_of_the_same_name_has_no_part_in_the_history(shop: Shop) -> None:
    async with _recorded(shop, 1):
        now = datetime.now(UTC)
        assert await shop.history.changes("another-uid", ("ConfigMap",), now - DAY, now + DAY) == []
        assert await shop.history.unwatched("another-uid", ("ConfigMap",), now - DAY, now) == []


async def test_kinds_that_the_reader_may_not_read_are_in_no_answer(shop: Shop) -> None:
    await shop.make("Service", "checkout", spec={"ports": [{"port": 80}]})
    async with shop.recorder(kinds=("ConfigMap", "Service")):
        await shop.kube.patch("Service", shop.name, "checkout", {"spec": {"sessionAffinity": "ClientIP"}})
        await shop.make("ConfigMap", "config", data={})
        await shop.until(lambda versions: len(versions) == 2)
        (only,) = await shop.versions(("Service",))
        assert only.object.kind == "Service"
        assert await shop.versions(()) == []
        assert await shop.unwatched(()) == []


async def test_the_purge_command_deletes_changes_of_objects_too(
    shop: Shop, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _recorded(shop, 2):
        for dry_run in (True, False):
            assert await purge_records(database_url, 0, "0s", [shop.name], dry_run=dry_run, output="json") == 0
            assert json.loads(capsys.readouterr().out)["objectChanges"] == {shop.name: 2}
        assert await purge_records(database_url, 0, "0s", [], dry_run=False, output="json") == 0
        assert json.loads(capsys.readouterr().out)["objectChanges"] == {}


async def test_text_of_the_purge_command_names_the_namespaces(
    shop: Shop, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _recorded(shop, 1):
        await purge_records(database_url, 0, "0s", [], dry_run=True, output="text")
        assert f"1 in {shop.name}" in " ".join(capsys.readouterr().out.split())
