"""Tests that the recorder in memory keeps the contract of the port, as the store does (`integration/store`)."""

from collections.abc import Mapping, Sequence
from uuid import uuid4

import pytest

from tarsy.engine.ports import Recorder
from tarsy.record.timeline import TimelineEvent
from tarsy.runtime.in_process.record import Record
from tarsy.runtime.in_process.recorder import MemoryRecorder
from unit.engine.recorder_contract import RecorderContract, Subject


class _InMemory(Subject):
    def __init__(self, *, holds: bool = False) -> None:
        self.run = uuid4()
        self.holds = holds
        self._record = Record()
        self.recorder = self._first = MemoryRecorder(self._record, hold=holds)

    async def next_attempt(self) -> Recorder:
        await self._first.history()
        self._first.lost = True
        return MemoryRecorder(self._record)

    async def timeline(self) -> Sequence[TimelineEvent]:
        return sorted(self._record.events.values(), key=lambda event: event.seq)

    async def missing(self) -> Mapping[str, str]:
        return dict(self._record.missing)


class TestMemoryRecorder(RecorderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _InMemory()


class TestHoldingMemoryRecorder(RecorderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _InMemory(holds=True)
