"""Tests a watch whose missed events are compacted: it gets 410, lists anew, and loses and repeats nothing."""

import asyncio
import logging
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from integration.controllers.link import link_to
from tarsy.record.run import State

pytestmark = pytest.mark.timeout(240)


async def test_changes_that_etcd_has_compacted_away_are_found_by_listing(
    desk: Desk, tarsy_api: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kopf")
    await desk.configure()
    async with (
        link_to(tarsy_api.url, tarsy_api.kubeconfig, tmp_path) as (link, kubeconfig),
        desk.controller(kubeconfig=kubeconfig, everywhere=True) as writes,
    ):
        found: dict[str, dict[str, Any]] = {}
        for name in ("stays", "goes", "cancelled"):
            await desk.alert(name)
            found[name] = await desk.queued(name)
            await desk.reason("Alert", name, "Accepted", "True", "InvestigationCreated")
            await desk.reason("Investigation", found[name]["metadata"]["name"], "Accepted", "True", "Planned")

        async def published() -> bool:
            records = [await desk.record(found[name]) for name in found]
            return all(record.published_revision == record.revision for record in records)

        await eventually(published)  # or what is left to publish would change an object after the outage
        stays, goes, cancelled = (found[name]["metadata"]["name"] for name in found)
        before = (await desk.get("Investigation", stays))["metadata"]["resourceVersion"]

        await link.cut()
        await desk.kube.delete("Investigation", desk.namespace, goes)
        await desk.kube.patch("Investigation", desk.namespace, cancelled, {"spec": {"desiredState": "Cancelled"}})
        await desk.alert("comes")
        await asyncio.to_thread(tarsy_api.compact)
        await asyncio.to_thread(tarsy_api.stop_apiserver)  # it keeps the last changes in its own memory
        await asyncio.to_thread(tarsy_api.start_apiserver)
        await asyncio.sleep(0.5)  # a controller that is not told goes on as before
        writes.clear()
        await link.open()

        found["comes"] = await desk.queued("comes")
        await desk.reason("Investigation", found["comes"]["metadata"]["name"], "Accepted", "True", "Planned")
        await desk.reason("Investigation", cancelled, "Finished", "True", "CancelledBeforeStart")
        # As an event of the watch, after which kopf lists, or as its status, after which we start kopf anew.
        signs = ("Restarting the watch-stream for investigations", "'code': 410")

        async def told() -> bool:
            return any(sign in text for text in caplog.messages for sign in signs)

        await eventually(told)  # the listing of another cause may have come first

        async def run_of_the_deleted() -> bool:
            return (await desk.record(found["goes"])).state is State.CANCELLED

        await eventually(run_of_the_deleted)
        await desk.reason("Alert", "goes", "Finished", "True", "InvestigationDeleted")
        assert (await desk.get("Investigation", stays))["metadata"]["resourceVersion"] == before
        names = {item["metadata"]["name"] for item in await desk.investigations()}
        assert names == {found[name]["metadata"]["name"] for name in ("stays", "cancelled", "comes")}
        assert writes["POST investigations"] == 1
        rows = await desk.pool.fetch("SELECT id FROM investigation WHERE namespace = $1", desk.namespace)
        assert {row["id"] for row in rows} == {UUID(item["metadata"]["uid"]) for item in found.values()}
