"""Events of a stream that lasts are written in the background, and their writing has ended when the stream has."""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest

from tarsy.engine.model_calls.late_events import LateEvents
from tarsy.record.run import LeaseLost
from tarsy.record.timeline import Event, EventStatus, EventType
from unit.engine.clock import in_virtual_time


def event() -> Event:
    return Event(uuid4(), EventType.LLM_RESPONSE, EventStatus.STREAMING)


class Writes:
    """Keeps what is written; each write takes a second."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun: list[tuple[float, list[Event]]] = []
        self.ended: list[float] = []
        self._error = error

    async def __call__(self, events: Sequence[Event]) -> None:
        now = asyncio.get_running_loop().time
        self.begun.append((now(), list(events)))
        await asyncio.sleep(1.0)
        if self._error is not None:
            raise self._error
        self.ended.append(now())


@pytest.mark.parametrize(("lasts", "written"), [(0.39, 0), (0.41, 1)], ids=["below", "above"])
def test_an_event_is_written_when_its_stream_lasts(lasts: float, written: int) -> None:
    writes = Writes()

    async def main() -> None:
        async with LateEvents(writes, lambda: 0.4) as late:
            late.begin(event())
            await asyncio.sleep(lasts)

    in_virtual_time(main())
    assert len(writes.begun) == len(writes.ended) == written


def test_events_that_wait_are_written_together_and_later_ones_after_them() -> None:
    writes, events = Writes(), [event() for _ in range(3)]

    async def main() -> None:
        async with LateEvents(writes, lambda: 0.4) as late:
            late.begin(events[0])
            await asyncio.sleep(0.2)
            late.begin(events[1])
            await asyncio.sleep(0.3)
            late.begin(events[2])
            await asyncio.sleep(9)

    in_virtual_time(main())
    assert writes.begun == [(pytest.approx(0.4), events[:2]), (pytest.approx(1.4), events[2:])]


def test_the_block_ends_when_the_writing_has() -> None:
    writes, order = Writes(), list[str]()

    async def main() -> None:
        async with LateEvents(writes, lambda: 0.4) as late:
            late.begin(event())
            await asyncio.sleep(0.5)
            order.append("read")
            assert not writes.ended
        order.append("ended")
        assert writes.ended == [pytest.approx(1.4)]

    in_virtual_time(main())
    assert order == ["read", "ended"]


def test_an_error_of_the_writing_is_raised_by_the_end_of_the_block() -> None:
    async def main() -> None:
        async with LateEvents(Writes(LeaseLost("gone")), lambda: 0.0) as late:
            late.begin(event())
            await asyncio.sleep(5)

    with pytest.raises(LeaseLost):
        in_virtual_time(main())


def test_a_cancelled_block_cancels_the_writing_and_stays_cancelled() -> None:
    writes = Writes()

    async def stream() -> None:
        async with LateEvents(writes, lambda: 0.4) as late:
            late.begin(event())
            await asyncio.sleep(60)

    async def main() -> None:
        running = asyncio.create_task(stream())
        await asyncio.sleep(0.6)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    in_virtual_time(main())
    assert len(writes.begun) == 1
    assert writes.ended == []
