"""Tests that namespaces are served in turn."""

import asyncio

from tarsy.controllers.machinery.fair_queue import FairQueue


async def test_namespace_with_much_work_does_not_delay_others() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(3):
        queue.put("large", f"large-{number}")
    queue.put("small", "small-0")
    assert [await queue.get() for _ in range(2)] == ["large-0", "small-0"]
    queue.put("small", "small-1")
    assert [await queue.get() for _ in range(3)] == ["large-1", "small-1", "large-2"]


async def test_reader_waits_for_an_item_and_a_cancelled_one_takes_none() -> None:
    queue: FairQueue[str] = FairQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    queue.put("one", "a")
    assert await asyncio.wait_for(second, 30) == "a"
    queue.put("one", "b")
    assert await queue.get() == "b"
