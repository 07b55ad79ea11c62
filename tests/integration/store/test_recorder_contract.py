"""Tests that the writer on Postgres keeps the contract of the port, as the recorder in memory does (`unit/engine`)."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import claimed_run, next_attempt, writer
from tarsy.engine.ports import Recorder
from tarsy.record.timeline import TimelineEvent
from tarsy.store.reads import Reads
from unit.engine.recorder_contract import RecorderContract, Subject


class _OnPostgres(Subject):
    def __init__(self, pool: asyncpg.Pool, run: UUID, owner: UUID) -> None:
        self.run, self.recorder = run, writer(pool, run)
        self._pool, self._owner = pool, owner

    async def next_attempt(self) -> Recorder:
        return writer(self._pool, self.run, await next_attempt(self._pool, self.run, self._owner))

    async def timeline(self) -> Sequence[TimelineEvent]:
        return await Reads(self._pool).timeline(self.run)

    async def missing(self) -> Mapping[str, str]:
        found = await self._pool.fetchval("SELECT evidence_missing FROM investigation WHERE id = $1", self.run)
        return dict(found)


class TestRunWriter(RecorderContract):
    @pytest.fixture
    async def subject(self, pool: asyncpg.Pool) -> Subject:
        return _OnPostgres(pool, *await claimed_run(pool))
