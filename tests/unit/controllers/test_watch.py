"""Tests that the watch goes on whatever happens to kopf."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import kopf
import pytest

from tarsy.controllers.machinery import watch
from tarsy.controllers.machinery.watch import Watch
from tarsy.kube.client import Connection

COUNT = 3 * watch.AT_ONCE + 1


class Client:
    """Reaches nothing; nothing is asked of it."""

    async def connection(self) -> Connection:
        return Connection("http://127.0.0.1:9", None, None, None, False)

    async def read(self, target: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        return {"resources": []}


async def test_watching_starts_again_when_one_task_fails_and_another_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "END_SECONDS", 0.1)
    loop, starts, again = asyncio.get_running_loop(), 0, asyncio.Event()

    async def fails() -> None:
        raise RuntimeError("404 page not found")

    async def never_ends() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    async def spawn_tasks(**_: Any) -> list[asyncio.Task[None]]:
        nonlocal starts
        starts += 1
        if starts == 2:
            loop.call_soon_threadsafe(again.set)
        return [asyncio.create_task(never_ends()), asyncio.create_task(fails())]

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    watching = asyncio.create_task(Watch(Client(), lambda *_: None).run())  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(60):
            await again.wait()
    finally:
        watching.cancel()
        await asyncio.wait([watching], timeout=20)


async def test_watching_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def spawn_tasks(*, stop_flag: Any, **_: Any) -> list[asyncio.Task[None]]:
        async def until_told() -> None:
            await asyncio.to_thread(stop_flag.wait)

        loop.call_soon_threadsafe(started.set)
        return [asyncio.create_task(until_told())]

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    watching = asyncio.create_task(Watch(Client(), lambda *_: None).run())  # type: ignore[arg-type]
    async with asyncio.timeout(60):
        await started.wait()
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching


async def test_watcher_that_ends_only_with_the_help_of_its_scheduler_is_not_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "END_SECONDS", 0.2)
    asked, served = asyncio.Event(), asyncio.Event()

    async def spawner() -> None:
        await asked.wait()
        served.set()

    async def watcher() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            asked.set()
            while not served.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await served.wait()

    async def broken() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("404")

    helper = asyncio.create_task(spawner(), name="spawner of a scheduler")
    watching = asyncio.create_task(watcher())
    with pytest.raises(RuntimeError, match="404"):
        await watch.until_one_ends([asyncio.create_task(broken()), asyncio.create_task(asyncio.Event().wait())])
    assert watching.done() and helper.done()


async def test_events_are_taken_in_order_on_the_loop_and_one_that_fails_holds_up_no_other() -> None:
    loop, taken, all_taken = asyncio.get_running_loop(), [], asyncio.Event()
    failed: list[object] = []
    loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))

    def take(kind: str | None, raw: Mapping[str, Any]) -> None:
        taken.append(raw["number"])
        if raw["number"] == COUNT - 1:
            all_taken.set()
        if raw["number"] == 7:
            raise ValueError("cannot be taken")

    handover = watch.Handover(loop, take)

    def put() -> None:
        for number in range(COUNT):
            handover.put(None, {"number": number})

    await asyncio.to_thread(put)
    async with asyncio.timeout(60):
        await all_taken.wait()
    assert taken == list(range(COUNT))
    assert [str(error) for error in failed] == ["cannot be taken"]


async def test_loop_turns_between_the_events_of_a_long_listing() -> None:
    taken: list[int] = []
    seen: list[int] = []
    handover = watch.Handover(asyncio.get_running_loop(), lambda _, raw: taken.append(raw["number"]))
    for number in range(COUNT):
        handover.put(None, {"number": number})
    while len(taken) < COUNT:
        await asyncio.sleep(0)
        seen.append(len(taken))
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) <= watch.AT_ONCE < COUNT
