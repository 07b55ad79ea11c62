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
