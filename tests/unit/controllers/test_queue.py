"""Tests the queue of keys, on an event loop whose time passes without sleeping."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tarsy.controllers.machinery.queue import KeyedQueue

Run = Callable[[Coroutine[Any, Any, None]], None]


class _Jump(selectors.DefaultSelector):
    """Instead of waiting for the next timer, lets its time be now."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everybody waits for something that never comes")
        self.skipped += max(0.0, timeout)
        return super().select(0)


@pytest.fixture
def run() -> Iterator[Run]:
    selector = _Jump()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.skipped  # type: ignore[method-assign]
    yield loop.run_until_complete
    loop.close()


async def work(queue: KeyedQueue[str], count: int) -> list[tuple[str, float]]:
    """Works `count` keys off; each with the second at which it came."""
    seen = []
    for _ in range(count):
        key = await queue.get()
        seen.append((key, round(asyncio.get_running_loop().time(), 3)))
        queue.done(key)
    return seen


async def nothing_within(queue: KeyedQueue[str], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await queue.get()
    except TimeoutError:
        return True
    return False


def test_key_that_is_wanted_many_times_is_worked_on_once(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        assert len(queue) == 2
        assert [key for key, _ in await work(queue, 2)] == ["a", "b"]
        assert await nothing_within(queue, 100)

    run(body())


def test_key_that_is_wanted_while_it_is_worked_on_is_worked_on_once_more_and_not_at_the_same_time(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        assert await nothing_within(queue, 100)
        queue.done("a")
        assert await work(queue, 1) == [("a", 100.0)]
        assert await nothing_within(queue, 100)

    run(body())


def test_failures_wait_twice_as_long_each_time_up_to_the_limit_and_success_forgets_them(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue(first_delay=1, longest_delay=5)
        queue.add("a")
        waits = []
        for _ in range(5):
            before = asyncio.get_running_loop().time()
            assert await queue.get() == "a"
            waits.append(round(asyncio.get_running_loop().time() - before, 3))
            queue.failed("a")
        assert waits == [0, 1, 2, 4, 5]
        await work(queue, 1)
        queue.add("a")
        await queue.get()
        assert queue.failed("a") == 1

    run(body())


def test_key_that_fails_a_thousand_times_still_waits_the_limit_only(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue(first_delay=0.1, longest_delay=30)
        delay = 0.0
        for _ in range(1100):
            queue.add("a")
            await queue.get()
            delay = queue.failed("a")
        assert delay == 30

    run(body())


def test_of_two_wishes_for_later_the_earlier_stands(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        queue.add_after("a", 10)
        queue.add_after("a", 3)
        queue.add_after("a", 7)
        assert await work(queue, 1) == [("a", 3.0)]
        assert await nothing_within(queue, 100)

    run(body())


def test_wish_for_now_is_not_delayed_by_one_for_later(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        queue.add_after("a", 10)
        queue.add("a")
        assert await work(queue, 2) == [("a", 0.0), ("a", 10.0)]

    run(body())


def test_later_key_wakes_a_worker_that_waits_already(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        worker = asyncio.create_task(work(queue, 2))
        await asyncio.sleep(1)
        queue.add_after("b", 5)
        await asyncio.sleep(1)
        queue.add_after("a", 2)
        assert await worker == [("a", 4.0), ("b", 6.0)]

    run(body())


def test_many_workers_share_the_keys_and_no_two_hold_the_same(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[int] = KeyedQueue()
        holding: set[int] = set()
        seen: list[int] = []

        async def worker() -> None:
            while True:
                key = await queue.get()
                assert key not in holding
                holding.add(key)
                await asyncio.sleep(key % 3)
                seen.append(key)
                holding.discard(key)
                queue.done(key)

        async with asyncio.timeout(1000):
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(worker()) for _ in range(8)]
                for turn in range(4):
                    for key in range(50):
                        queue.add(key)
                    await asyncio.sleep(0.5 + turn)
                await asyncio.sleep(200)
                for task in workers:
                    task.cancel()
        assert set(seen) == set(range(50))
        assert len(queue) == 0

    run(body())


def test_what_can_wait_comes_after_all_that_cannot(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        for key in ("old-1", "old-2", "both"):
            queue.add_when_idle(key)
        for key in ("new", "both"):
            queue.add(key)
        queue.add_when_idle("new")
        assert len(queue) == 4
        assert [key for key, _ in await work(queue, 4)] == ["new", "both", "old-1", "old-2"]
        assert await nothing_within(queue, 10)

    run(body())


def test_key_that_is_worked_on_while_it_is_wanted_when_idle_is_worked_on_again(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        queue.add_when_idle("a")
        key = await queue.get()
        queue.add_when_idle("a")
        queue.done(key)
        assert [key for key, _ in await work(queue, 1)] == ["a"]

    run(body())


def test_who_waits_for_a_key_is_woken_by_one_that_can_wait(run: Run) -> None:
    async def body() -> None:
        queue: KeyedQueue[str] = KeyedQueue()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add_when_idle("a")
        assert await waiting == "a"

    run(body())
