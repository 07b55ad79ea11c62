"""Tests that the writer on Postgres keeps the contract of the port, as the recorder in memory does (`unit/engine`)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import claimed_run, next_attempt, writer
from tarsy.engine.ports import Recorder
from tarsy.record.timeline import TimelineEvent
from tarsy.store.reading.reads import Reads
from tarsy.store.sealing.sealed_record import SealedRecord
from unit.engine.recorder_contract import RecorderContract, Subject


class _OnPostgres(Subject):
    def __init__(self, pool: asyncpg.Pool, run: UUID, owner: UUID, *, holds: bool = False, alone: bool = False) -> None:
        self.run, self.holds = run, holds
        self.recorder = self.write = writer(pool, run, hold_seconds=3600.0, alone=alone)
        self._pool, self._owner = pool, owner

    async def next_attempt(self) -> Recorder:
        await self.write.history()
        return writer(self._pool, self.run, await next_attempt(self._pool, self.run, self._owner))

    async def timeline(self) -> Sequence[TimelineEvent]:
        return await Reads(self._pool).timeline(self.run)

    async def missing(self) -> Mapping[str, str]:
        found = await self._pool.fetchval("SELECT evidence_missing FROM investigation WHERE id = $1", self.run)
        return dict(found)


class TestRunWriter(RecorderContract):
    @pytest.fixture
    async def subject(self, pool: asyncpg.Pool) -> AsyncIterator[Subject]:
        subject = _OnPostgres(pool, *await claimed_run(pool))
        yield subject
        (report,) = await SealedRecord(pool).check(subject.run)
        assert report.flaws == []


@pytest.mark.heavy("the contract of the other writer is beside it, and test_held_steps is about holding")
class TestHoldingRunWriter(RecorderContract):
    @pytest.fixture
    async def subject(self, pool: asyncpg.Pool) -> AsyncIterator[Subject]:
        subject = _OnPostgres(pool, *await claimed_run(pool), holds=True, alone=True)
        begun, ended = asyncio.Event(), asyncio.Event()

        async def hold() -> None:  # a task of its own: a fixture begins and ends in two
            async with subject.write.holding():
                begun.set()
                await ended.wait()

        holding = asyncio.create_task(hold())
        await begun.wait()
        yield subject
        ended.set()
        with contextlib.suppress(ExceptionGroup):  # a test may end with a lost lease
            await holding


@pytest.mark.heavy("tests/unit/store/test_written_results.py has what differs")
class TestLoneRunWriter(RecorderContract):
    @pytest.fixture
    async def subject(self, pool: asyncpg.Pool) -> Subject:
        return _OnPostgres(pool, *await claimed_run(pool), alone=True)
