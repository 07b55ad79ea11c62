"""Tests outages of the API server and the database: nothing is lost, nothing hangs."""

import asyncio
import os
import signal

import pytest

from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from tarsy_dev.postgres import LocalPostgres

pytestmark = pytest.mark.timeout(240)


async def test_outage_of_the_api_server_is_caught_up(desk: Desk, tarsy_api: LocalApi) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("before")
        found = await desk.queued("before")
        name = found["metadata"]["name"]
        claimed = await desk.claim()
        await asyncio.to_thread(tarsy_api.stop_apiserver)
        try:
            await desk.finish(claimed)  # the worker goes on, and finishes while nobody can be told
            await asyncio.sleep(10)
        finally:
            await asyncio.to_thread(tarsy_api.start_apiserver)
        await desk.alert("after")
        await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
        await desk.reason("Alert", "before", "Finished", "True", "InvestigationFinished")
        second = await desk.queued("after")
        await desk.reason("Investigation", second["metadata"]["name"], "Accepted", "True", "Planned")
        assert len(await desk.investigations()) == 2


async def test_outage_of_the_database_is_caught_up(desk: Desk, postgres: LocalPostgres) -> None:
    if postgres.pid is None:
        pytest.skip("the database is not ours to stop")
    await desk.configure()
    async with desk.controller():
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        os.kill(postgres.pid, signal.SIGINT)  # a fast shutdown
        try:
            await desk.alert()
            made = (await eventually(desk.investigations))[0]
            await asyncio.sleep(3)
        finally:
            await asyncio.to_thread(postgres.restart)
        name = made["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        await desk.finish(await desk.claim())
        await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
