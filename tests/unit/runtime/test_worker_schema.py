"""A worker whose code is too old for the schema ends, with the sentence that says why; others would try for ever."""

import asyncio

import pytest

from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker, WorkerWakeups
from tarsy.store.errors import SchemaMismatch, StoreUnavailable
from unit.engine.clock import in_virtual_time
from unit.runtime.fakes import FakeQueue, FakeRunner


class Queue(FakeQueue):
    """A database that is away, or whose schema is newer than the worker's code."""

    refusals: tuple[Exception, ...] = ()

    async def register(self, worker: object, host: str, ttl_seconds: float, offer: object) -> None:
        if self.refusals:
            refusal, *rest = self.refusals
            self.refusals = tuple(rest)
            raise refusal


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


def worker(*refusals: Exception) -> Worker:
    queue = Queue([])
    queue.refusals = refusals
    return Worker(queue, FakeRunner(_never), WorkerSettings(), WorkerWakeups())  # type: ignore[arg-type]


def test_worker_that_may_not_register_any_more_ends_and_says_why() -> None:
    with pytest.raises(BaseExceptionGroup) as ended:
        in_virtual_time(worker(StoreUnavailable("away"), SchemaMismatch("Run the newer version.")).run())
    assert ended.group_contains(SchemaMismatch, match="Run the newer version")


def test_worker_waits_for_minutes_for_a_database_that_is_away() -> None:
    async def body() -> None:
        task = asyncio.create_task(worker(*[StoreUnavailable("away")] * 300).run())
        await asyncio.sleep(310)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    in_virtual_time(body())
