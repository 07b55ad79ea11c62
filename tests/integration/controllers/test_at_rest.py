"""Tests that finished investigations cost nothing: each record is read once, and no other work waits for it."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually

COUNT = 10


async def test_records_of_what_is_over_are_read_once_however_often_all_is_listed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.configure()
    names = [f"i-{number}" for number in range(COUNT)]
    async with desk.controller():
        for name in names:
            await desk.put("Investigation", name, {"alert": {"alertType": "PodCrash", "data": "x"}})
            await desk.reason("Investigation", name, "Accepted", "True", "Planned")
            await desk.finish(await desk.claim())
        for name in names:
            await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
        await eventually(lambda: _settled(desk))
    read: Counter[UUID] = Counter()
    original = desk.reads.record

    async def count(run: UUID) -> Any:
        read[run] += 1
        return await original(run)

    monkeypatch.setattr(desk.reads, "record", count)
    async with desk.controller(relist_seconds=0.2) as writes:
        await eventually(lambda: _all(read))
        await desk.relists(5)
        assert set(read.values()) == {1}
        assert [write for write in writes if "investigations" in write] == []
        await desk.kube.patch("Investigation", desk.namespace, names[0], {"metadata": {"labels": {"a": "b"}}})
        await eventually(lambda: _again(read))
        assert Counter(read.values()) == {1: COUNT - 1, 2: 1}


async def _settled(desk: Desk) -> bool:
    return bool(await desk.pool.fetchval("SELECT bool_and(settled) FROM investigation"))


async def _all(read: Counter[UUID]) -> bool:
    return len(read) == COUNT


async def _again(read: Counter[UUID]) -> bool:
    return sum(read.values()) > COUNT
