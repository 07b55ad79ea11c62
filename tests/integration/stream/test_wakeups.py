"""Tests that wake-ups arrive, are coalesced, and that their loss costs a poll interval."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from integration.store.build import claimed_run, event, new_run, stage
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.writer import RunWriter
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

CHANNELS = ("tarsy_queue", "tarsy_run")
LONG = 30.0


@asynccontextmanager
async def running(*services: Listener | Notifier) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(service.run()) for service in services]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def connection_of_listener(pool: asyncpg.Pool) -> int:
    return int(
        await pool.fetchval(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'tarsy-listener'"
        )
    )


async def test_changes_of_a_run_wake_those_who_follow_it_and_nobody_else(dsn: str, pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    listener, notifier = Listener(dsn, CHANNELS, poll_seconds=LONG), Notifier(pool)
    async with running(listener, notifier):
        with listener.subscribe("tarsy_run", str(run)) as mine, listener.subscribe("tarsy_run", "other") as other:
            assert await mine.wait() and await other.wait()  # woken by the connection itself
            write = RunWriter(pool, run, 1, remaining=lambda: 60.0, notify=notifier.notify)
            await write.begin_stage(stage(run))
            async with asyncio.timeout(60):
                assert await mine.wait()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await other.wait()


async def test_accepted_run_wakes_the_queue(dsn: str, pool: asyncpg.Pool) -> None:
    listener, notifier = Listener(dsn, CHANNELS, poll_seconds=LONG), Notifier(pool)
    async with running(listener, notifier):
        with listener.subscribe("tarsy_queue") as queue:
            await queue.wait()
            await Runs(pool, notifier.notify).accept(new_run())
            async with asyncio.timeout(60):
                assert await queue.wait()


async def test_wakeups_before_the_task_comes_round_are_sent_once(dsn: str, pool: asyncpg.Pool) -> None:
    received = await _received(dsn, pool, Notifier(pool), lambda notify: [notify("tarsy_run", "a") for _ in range(500)])
    assert received == ["a"]


async def test_wakeups_beyond_the_bound_become_one_for_all_readers(dsn: str, pool: asyncpg.Pool) -> None:
    received = await _received(
        dsn, pool, Notifier(pool, bound=10), lambda notify: [notify("tarsy_run", str(n)) for n in range(11)]
    )
    assert received == [""]


async def test_runs_that_went_on_wait_for_each_other_and_nothing_else_waits_with_them(
    dsn: str, pool: asyncpg.Pool
) -> None:
    received: list[str] = []
    heard = asyncio.Event()
    connection = await asyncpg.connect(dsn)
    for channel in CHANNELS:
        await connection.add_listener(channel, lambda *said: (received.append(said[2] + said[3]), heard.set()))

    async def next_one() -> None:
        async with asyncio.timeout(60):
            await heard.wait()
        heard.clear()

    notifier = Notifier(pool, progress_seconds=LONG)
    async with running(notifier):
        notifier.notify("tarsy_run", "a")
        await next_one()
        notifier.notify("tarsy_run", "b")
        await asyncio.sleep(0.2)
        assert received == ["tarsy_runa"]
        notifier.notify("tarsy_queue", "")
        await next_one()
        assert sorted(received) == ["tarsy_queue", "tarsy_runa", "tarsy_runb"]
    await connection.close()


async def _received(
    dsn: str, pool: asyncpg.Pool, notifier: Notifier, ask: Callable[[Callable[[str, str], None]], object]
) -> list[str]:
    received: list[str] = []
    first, ended = asyncio.Event(), asyncio.Event()
    connection = await asyncpg.connect(dsn)
    await connection.add_listener("tarsy_run", lambda *said: (received.append(said[3]), first.set()))
    await connection.add_listener("the_end", lambda *_: ended.set())
    ask(notifier.notify)
    async with running(notifier), asyncio.timeout(60):
        await first.wait()
        await pool.execute("SELECT pg_notify('the_end', '')")
        await ended.wait()
    await connection.close()
    return received


async def test_payload_free_wakeup_reaches_every_reader_of_the_channel(dsn: str, pool: asyncpg.Pool) -> None:
    listener = Listener(dsn, CHANNELS, poll_seconds=LONG)
    async with running(listener):
        with listener.subscribe("tarsy_run", "a") as one, listener.subscribe("tarsy_run", "b") as two:
            assert await one.wait() and await two.wait()
            await pool.execute("SELECT pg_notify('tarsy_run', '')")
            async with asyncio.timeout(60):
                assert await one.wait() and await two.wait()


async def test_listener_connects_again_when_its_connection_is_killed(dsn: str, pool: asyncpg.Pool) -> None:
    listener = Listener(dsn, CHANNELS, poll_seconds=LONG)
    async with running(listener):
        with listener.subscribe("tarsy_queue") as queue:
            await queue.wait()
            await pool.execute("SELECT pg_terminate_backend($1)", await connection_of_listener(pool))
            async with asyncio.timeout(60):
                assert await queue.wait()  # what was sent meanwhile is gone: look
                await pool.execute("SELECT pg_notify('tarsy_queue', '')")
                assert await queue.wait()


async def test_reader_looks_after_the_poll_interval_when_nobody_listens() -> None:
    listener = Listener("postgresql://nobody@127.0.0.1:1/none", CHANNELS, poll_seconds=0.1)
    async with running(listener):
        with listener.subscribe("tarsy_queue") as queue:
            async with asyncio.timeout(60):
                assert not await queue.wait()


async def test_what_is_unsent_at_the_end_is_sent(dsn: str, pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    heard = asyncio.Event()
    connection = await asyncpg.connect(dsn)
    await connection.add_listener("tarsy_run", lambda *_: heard.set())
    notifier = Notifier(pool, pause_seconds=LONG)
    async with running(notifier):
        notifier.notify("tarsy_queue", "")
        await asyncio.sleep(0.1)
        await RunWriter(pool, run, 1, remaining=lambda: 60.0, notify=notifier.notify).write_events([event(run)])
    async with asyncio.timeout(60):
        await heard.wait()
    await connection.close()


async def test_notifier_outlives_a_postgres_that_is_away(pool: asyncpg.Pool) -> None:
    notifier = Notifier(pool)
    async with running(notifier):
        await pool.expire_connections()
        await pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        notifier.notify("tarsy_queue", "")
        await asyncio.sleep(0.1)
        notifier.notify("tarsy_queue", "")


def test_subscribing_to_a_channel_nobody_listens_to_is_refused() -> None:
    with pytest.raises(ValueError, match="only to tarsy_queue, tarsy_run"):
        Listener("postgresql://localhost/x", CHANNELS).subscribe("else").__enter__()
