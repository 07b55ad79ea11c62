"""Tests that finished objects cost nothing at a start, and that each which is not as it was left is found there."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.controllers.alert import ACCEPTED_UID
from tarsy.store.reading.reads import Reads

COUNT = 10


class Read(Reads):
    """Counts the records that are read one by one, and the queries for many."""

    records: Counter[UUID]
    queries: list[int]

    @classmethod
    def of(cls, desk: Desk) -> "Read":
        reads = cls(desk.pool)
        reads.records, reads.queries = Counter(), []
        desk.reads = reads
        return reads

    async def record(self, run: UUID) -> Any:
        self.records[run] += 1
        return await super().record(run)

    async def published(self, ids: Any) -> Any:
        asked = list(ids)
        found = await super().published(asked)
        self.queries.append(len(asked))
        return found

    async def asked(self, runs: int) -> bool:
        return sum(self.queries) >= runs


async def some_have_ended(desk: Desk, count: int) -> list[str]:
    """Investigations that have run, with the controller that published them gone."""
    await desk.configure()
    names = [f"i-{number}" for number in range(count)]
    async with desk.controller():
        for name in names:
            await desk.put("Investigation", name, {"alert": {"alertType": "PodCrash", "data": "x"}})
            await desk.reason("Investigation", name, "Accepted", "True", "Planned")
            await desk.finish(await desk.claim())
        for name in names:
            await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
        await eventually(lambda: _settled(desk))
    return names


async def test_records_of_what_is_over_are_not_read_at_a_start_however_often_all_is_listed(desk: Desk) -> None:
    names = await some_have_ended(desk, COUNT)
    reads = Read.of(desk)
    async with desk.controller(relist_seconds=0.2) as writes:
        await eventually(lambda: reads.asked(COUNT))
        await desk.relists(5)
        assert sum(reads.queries) == COUNT
        await desk.kube.patch("Investigation", desk.namespace, names[0], {"metadata": {"labels": {"a": "b"}}})
        await eventually(lambda: reads.asked(COUNT + 1))
        await desk.relists(2)
        assert [write for write in writes if "investigations" in write] == []
    assert reads.records == {}


async def test_what_was_changed_while_no_operator_ran_is_put_right_at_the_start(desk: Desk) -> None:
    tampered, *_ = await some_have_ended(desk, 2)
    right = (await desk.get("Investigation", tampered))["status"]
    wrong = {"status": {"phase": "Failed", "finding": {"summary": "All is well.", "confidence": "High"}}}
    await desk.kube.patch("Investigation", desk.namespace, tampered, wrong, subresource="status")
    reads = Read.of(desk)
    async with desk.controller():

        async def as_before() -> bool:
            return bool((await desk.get("Investigation", tampered))["status"] == right)

        await eventually(as_before)
        await desk.still("Investigation", tampered)
    ours = UUID((await desk.get("Investigation", tampered))["metadata"]["uid"])
    assert set(reads.records) == {ours}
    reads = Read.of(desk)
    async with desk.controller(relist_seconds=1.0):  # what was put right rests again
        await eventually(lambda: reads.asked(2))
        await desk.relists(1)
    assert reads.records == {}


async def test_records_from_before_a_status_was_noted_are_read_at_one_start_only(desk: Desk) -> None:
    await some_have_ended(desk, 2)
    await desk.pool.execute("UPDATE investigation SET published_digest = NULL")
    reads = Read.of(desk)
    async with desk.controller() as writes:

        async def noted() -> bool:
            query = "SELECT bool_and(published_digest IS NOT NULL) FROM investigation"
            return bool(await desk.pool.fetchval(query))

        await eventually(noted)
        assert [write for write in writes if "investigations" in write] == []
    assert set(reads.records.values()) == {1}
    reads = Read.of(desk)
    async with desk.controller():
        await eventually(lambda: reads.asked(2))
    assert reads.records == {}


@pytest.mark.parametrize("query", ["DELETE FROM investigation", "UPDATE investigation SET object_deleted_at = now()"])
async def test_what_the_record_does_not_vouch_for_is_reconciled(desk: Desk, query: str) -> None:
    (name,) = await some_have_ended(desk, 1)
    await desk.pool.execute(query)
    reads = Read.of(desk)
    async with desk.controller():

        async def read() -> bool:
            return bool(reads.records)

        await eventually(read)
        if query.startswith("DELETE"):  # what was found stays readable
            await desk.still("Investigation", name)
            await desk.reason("Investigation", name, "Finished", "True", "Succeeded")


async def test_copy_of_another_uid_is_marked_as_restored(desk: Desk) -> None:
    (name,) = await some_have_ended(desk, 1)
    old = await desk.get("Investigation", name)
    meta = {"annotations": {ACCEPTED_UID: old["metadata"]["uid"]}}
    await desk.put("Investigation", "copy", old["spec"], **meta)
    await desk.kube.patch("Investigation", desk.namespace, "copy", {"status": old["status"]}, subresource="status")
    async with desk.controller():
        await desk.reason("Investigation", "copy", "Finished", "True", "Restored")


async def test_alert_and_question_rest_too(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert()
        investigation = await desk.queued()
        await desk.finish(await desk.claim())
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        await desk.ask("why", investigation["metadata"]["name"])
        claimed = await eventually(desk.claim_question)
        await desk.finish(claimed)
        await desk.reason("ChatMessage", "why", "Finished", "True", "Succeeded")
        await eventually(lambda: _settled(desk))
    reads = Read.of(desk)
    async with desk.controller(relist_seconds=1.0) as writes:
        await eventually(lambda: reads.asked(2))
        await desk.relists(1)
        assert reads.records == {}
        assert [write for write in writes if "events" not in write] == []
        await desk.kube.patch("Alert", desk.namespace, "crash", {"status": {"phase": "Waiting"}}, subresource="status")

        async def mended() -> bool:
            return bool((await desk.get("Alert", "crash"))["status"]["phase"] == "Finished")

        await eventually(mended)


async def _settled(desk: Desk) -> bool:
    return bool(await desk.pool.fetchval("SELECT bool_and(settled) FROM investigation"))
