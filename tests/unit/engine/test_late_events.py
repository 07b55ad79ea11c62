"""Events of a stream that is followed or lasts are written in the background; their writing ends with the stream."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tarsy.engine.model_calls.late_events import LATE_SECONDS, LateEvents
from tarsy.engine.run_context import NoFollowers
from tarsy.record.run import LeaseLost
from tarsy.record.timeline import Event, EventStatus, EventType
from unit.engine.clock import in_virtual_time


def event() -> Event:
    return Event(uuid4(), EventType.LLM_RESPONSE, EventStatus.STREAMING)


class Follower(NoFollowers):
    """Comes some seconds after it is made."""

    def __init__(self, comes: float = 0.0) -> None:
        self._comes = comes
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + comes

    @property
    def followed(self) -> bool:  # type: ignore[override]
        return self._loop.time() >= self._at

    @contextmanager
    def when_followed(self, tell: Callable[[], None]) -> Iterator[None]:
        timer = self._loop.call_at(self._at, tell)
        yield
        timer.cancel()


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


@pytest.mark.parametrize(("over", "written"), [(-0.01, 0), (0.01, 1)], ids=["below", "above"])
def test_an_event_is_written_when_its_stream_lasts(over: float, written: int) -> None:
    writes = Writes()

    async def main() -> None:
        async with LateEvents(writes, NoFollowers()) as late:
            late.begin(event())
            await asyncio.sleep(LATE_SECONDS + over)

    in_virtual_time(main())
    assert len(writes.begun) == len(writes.ended) == written


@pytest.mark.parametrize(
    ("comes", "written"), [(0.0, 1.0), (0.5, 1.0), (1.5, 1.5), (5.9, 5.9), (6.1, 6.0), (99.0, 6.0)]
)
def test_an_event_is_written_as_soon_as_the_run_is_followed(comes: float, written: float) -> None:
    writes = Writes()

    async def main() -> None:
        async with LateEvents(writes, Follower(comes)) as late:
            await asyncio.sleep(1.0)
            late.begin(event())
            await asyncio.sleep(9)

    in_virtual_time(main())
    assert [at for at, _ in writes.begun] == [pytest.approx(written)]


def test_a_follower_that_comes_after_the_stream_has_nothing_written() -> None:
    writes = Writes()

    async def main() -> None:
        async with LateEvents(writes, Follower(1.0)) as late:
            late.begin(event())
            await asyncio.sleep(0.9)
        await asyncio.sleep(9)

    in_virtual_time(main())
    assert writes.begun == []


def test_events_that_wait_are_written_together_and_later_ones_after_them() -> None:
    writes, events = Writes(), [event() for _ in range(3)]

    async def main() -> None:
        async with LateEvents(writes, NoFollowers()) as late:
            late.begin(events[0])
            await asyncio.sleep(4.8)
            late.begin(events[1])
            await asyncio.sleep(0.3)
            late.begin(events[2])
            await asyncio.sleep(9)

    in_virtual_time(main())
    assert writes.begun == [(pytest.approx(5.0), events[:2]), (pytest.approx(10.1), events[2:])]


def test_events_that_begin_while_others_are_written_are_written_after_them() -> None:
    writes, events = Writes(), [event() for _ in range(2)]

    async def main() -> None:
        async with LateEvents(writes, Follower()) as late:
            late.begin(events[0])
            await asyncio.sleep(0.3)
            late.begin(events[1])
            await asyncio.sleep(9)

    in_virtual_time(main())
    assert writes.begun == [(pytest.approx(0.0), events[:1]), (pytest.approx(1.0), events[1:])]


def test_the_block_ends_when_the_writing_has() -> None:
    writes, order = Writes(), list[str]()

    async def main() -> None:
        async with LateEvents(writes, Follower()) as late:
            late.begin(event())
            await asyncio.sleep(0.5)
            order.append("read")
            assert not writes.ended
        order.append("ended")
        assert writes.ended == [pytest.approx(1.0)]

    in_virtual_time(main())
    assert order == ["read", "ended"]


def test_an_error_of_the_writing_is_raised_by_the_end_of_the_block() -> None:
    async def main() -> None:
        async with LateEvents(Writes(LeaseLost("gone")), Follower()) as late:
            late.begin(event())
            await asyncio.sleep(5)

    with pytest.raises(LeaseLost):
        in_virtual_time(main())


def test_a_cancelled_block_cancels_the_writing_and_stays_cancelled() -> None:
    writes = Writes()

    async def stream() -> None:
        async with LateEvents(writes, Follower()) as late:
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
