"""Tests deletion: of objects by people or by their time to live, and of records by their retention."""

import asyncio
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.record.run import DesiredState, LeaseLost, RunOutcome, State

YEAR = 31_536_000


async def is_gone(desk: Desk, kind: str, name: str) -> bool:
    return await desk.kube.find(kind, desk.namespace, name) is None


@pytest.mark.parametrize("state", ["not accepted", "pending", "running", "concluding", "orphaned", "finished"])
async def test_deletion_stops_the_run_in_every_state_and_its_record_stays(desk: Desk, state: str) -> None:
    await desk.configure(skip=("Chain",) if state == "not accepted" else ())
    async with desk.controller():
        made = await desk.put("Investigation", "mine", {"alert": {"alertType": "PodCrash", "data": "x"}})
        run = UUID(made["metadata"]["uid"])
        if state == "not accepted":
            await desk.reason("Investigation", "mine", "Accepted", "False", "NoChain")
        else:
            await desk.reason("Investigation", "mine", "Accepted", "True", "Planned")
        claimed = await desk.claim() if state in ("running", "concluding", "orphaned", "finished") else None
        if state == "concluding":
            await desk.kube.patch("Investigation", desk.namespace, "mine", {"spec": {"desiredState": "Concluded"}})
        if state == "orphaned":
            await desk.pool.execute("UPDATE worker SET expires_at = now() - interval '1 second'")
        if state == "finished" and claimed is not None:
            await desk.finish(claimed)
            await desk.reason("Investigation", "mine", "Finished", "True", "Succeeded")
        await desk.kube.delete("Investigation", desk.namespace, "mine")

        async def told() -> bool:
            if state == "not accepted":
                return await is_gone(desk, "Investigation", "mine")
            return bool(await desk.pool.fetchval("SELECT object_deleted_at FROM investigation WHERE id = $1", run))

        await eventually(told)
        if state == "not accepted":
            assert await desk.reads.record(run) is None
            return
        wanted = DesiredState.RUNNING if state == "finished" else DesiredState.CANCELLED

        async def cancelled() -> bool:
            found = await desk.reads.record(run)
            return found is not None and found.desired_state is wanted

        await eventually(cancelled)
        if state == "orphaned":
            await desk.runs.expire_overdue(0)
        if claimed is not None and state in ("running", "concluding"):
            await desk.runs.finish(run, claimed.attempt, RunOutcome(State.CANCELLED))
        record = await desk.reads.record(run)
        assert record is not None
        assert record.state is (State.COMPLETED if state == "finished" else State.CANCELLED)
        if state == "orphaned" and claimed is not None:
            with pytest.raises(LeaseLost):
                await desk.runs.finish(run, claimed.attempt, RunOutcome(State.COMPLETED))
        assert await desk.reads.unpublished(10) == []


async def test_time_to_live_that_is_changed_after_the_end_counts_from_the_end(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert(ttlSecondsAfterFinished=YEAR)
        name = (await desk.queued())["metadata"]["name"]
        await desk.finish(await desk.claim())
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        await asyncio.sleep(0.5)
        for kind, which in (("Investigation", name), ("Alert", "crash")):
            found = await desk.get(kind, which)
            assert found["spec"]["ttlSecondsAfterFinished"] == YEAR
            await desk.kube.patch(kind, desk.namespace, which, {"spec": {"ttlSecondsAfterFinished": 1}})
            await eventually(lambda kind=kind, which=which: is_gone(desk, kind, which))


async def test_time_to_live_is_not_counted_while_nothing_has_ended(desk: Desk) -> None:
    await desk.configure(skip=("Chain",))
    async with desk.controller(relist_seconds=0.3):
        await desk.alert(ttlSecondsAfterFinished=0)
        spec = {"alert": {"alertType": "PodCrash", "data": "x"}, "ttlSecondsAfterFinished": 0}
        await desk.put("Investigation", "mine", spec)
        await desk.reason("Alert", "crash", "Accepted", "False", "NoChain")
        await desk.reason("Investigation", "mine", "Accepted", "False", "NoChain")
        await desk.relists()
        assert not await is_gone(desk, "Alert", "crash")
        assert not await is_gone(desk, "Investigation", "mine")


async def test_finding_stays_readable_where_the_object_outlives_its_record(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        for name in ("done", "open"):
            spec = {"alert": {"alertType": "PodCrash", "data": "x"}, "ttlSecondsAfterFinished": YEAR}
            await desk.put("Investigation", name, spec)
            await desk.reason("Investigation", name, "Accepted", "True", "Planned")
            if name == "done":
                await desk.finish(await desk.claim())
                await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
    run = UUID((await desk.get("Investigation", "done"))["metadata"]["uid"])
    await eventually(lambda: _settled(desk, run))
    await desk.pool.execute("UPDATE investigation SET finished_at = now() - interval '40 days' WHERE id = $1", run)
    async with desk.controller(retention_seconds=30 * 86_400.0, relist_seconds=0.3):
        await eventually(lambda: _purged(desk, run))
        await desk.relists()
        status = (await desk.get("Investigation", "done"))["status"]
        assert status["finding"]["summary"] == "The image does not exist."
        assert (await desk.conditions("Investigation", "done"))["Succeeded"][:2] == ("True", "Succeeded")
        assert await desk.reads.unfinished() == {UUID((await desk.get("Investigation", "open"))["metadata"]["uid"])}


async def _settled(desk: Desk, run: UUID) -> bool:
    return bool(await desk.pool.fetchval("SELECT settled FROM investigation WHERE id = $1", run))


async def _purged(desk: Desk, run: UUID) -> bool:
    return await desk.reads.record(run) is None
