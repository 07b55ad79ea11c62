"""How a long-running process ends: asked once in order, asked twice at once."""

import asyncio
import os
import signal

import pytest

from tarsy.app.lifecycle import Shutdown, until_stopped


async def hang() -> None:
    await asyncio.Event().wait()


async def signalled(drain_seconds: float | None, *signals: float) -> list[str]:
    """What happens to a process that gets SIGTERM after each of these seconds."""
    told: list[str] = []

    async def drain() -> None:
        told.append("drains")
        await asyncio.sleep(drain_seconds or 0)
        told.append("drained")

    async def main(shutdown: Shutdown) -> None:
        if drain_seconds is not None:
            shutdown.drain = drain
        try:
            await hang()
        finally:
            told.append("ends")

    for seconds in signals:
        asyncio.get_running_loop().call_later(seconds, os.kill, os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        await until_stopped(main)
    return told


async def test_a_process_drains_before_it_ends() -> None:
    assert await signalled(0.05, 0.01) == ["drains", "drained", "ends"]


async def test_a_second_signal_hurries() -> None:
    assert await signalled(60, 0.01, 0.05) == ["drains", "ends"]


async def test_a_process_that_has_nothing_to_drain_yet_ends_at_once() -> None:
    assert await signalled(None, 0.01) == ["ends"]


async def test_what_ends_the_work_ends_the_process() -> None:
    async def main(shutdown: Shutdown) -> None:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        await until_stopped(main)


async def test_an_error_of_draining_is_not_hidden() -> None:
    async def drain() -> None:
        raise ValueError("a bug")

    async def main(shutdown: Shutdown) -> None:
        shutdown.drain = drain
        shutdown.signal()
        await hang()

    with pytest.raises(ValueError, match="a bug"):
        await until_stopped(main)
