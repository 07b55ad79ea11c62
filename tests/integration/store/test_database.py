"""Tests that transient errors are retried, others are raised, and no error contains a password."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from integration.databases import TEMPLATE, address, make_template
from integration.store.build import claimed_run, event, stage, writer
from tarsy.runtime.settings import WorkerSettings
from tarsy.store import database
from tarsy.store.database import call, describe_address, open_pool
from tarsy.store.errors import StoreError, StoreUnavailable
from tarsy.store.migrate import Migration, migrate, migrations
from tarsy.store.reading.reads import Reads
from tarsy_dev.postgres import LocalPostgres


@pytest.fixture
def own_server() -> Iterator[LocalPostgres]:
    """A server that a test may stop and start again over the same data."""
    with tempfile.TemporaryDirectory(prefix="tarsy-store-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)  # not below pytest's own folder: as root, Postgres runs as another user
        with LocalPostgres(Path(name) / "postgres", fsync=False, environ={}) as server:
            asyncio.run(make_template(server.dsn))
            yield server


@pytest.fixture
async def own_pool(own_server: LocalPostgres) -> AsyncIterator[asyncpg.Pool]:
    opened = await open_pool(address(own_server.dsn, TEMPLATE), min_size=2, max_size=4)
    yield opened
    opened.terminate()


@pytest.mark.heavy("a server of its own; chaos/test_postgres restarts it under load")
async def test_step_survives_a_restart_of_postgres(own_server: LocalPostgres, own_pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(own_pool)
    write = writer(own_pool, run, seconds=90)
    await write.begin_stage(stage(run))
    await asyncio.to_thread(own_server.stop)
    step = asyncio.create_task(write.write_events([event(run)]))
    done, _ = await asyncio.wait([step], timeout=0.5)
    assert not done
    await asyncio.to_thread(own_server.start)
    async with asyncio.timeout(90):
        await step
    assert [shown.content for shown in await Reads(own_pool).timeline(run)] == ["response"]


@pytest.mark.heavy("a server of its own")
async def test_step_gives_up_when_its_time_is_up(own_server: LocalPostgres, own_pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(own_pool)
    await asyncio.to_thread(own_server.stop)
    until = time.monotonic() + 0.5
    write = type(writer(own_pool, run))(own_pool, run, 1, remaining=lambda: until - time.monotonic())
    with pytest.raises(StoreUnavailable, match=f"write timeline events of investigation {run}"):
        async with asyncio.timeout(60):
            await write.write_events([event(run)])
    with pytest.raises(StoreUnavailable):
        await Reads(own_pool).record(run)


async def test_connection_that_was_cut_is_replaced_unnoticed(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write = writer(pool, run)
    await pool.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await write.write_events([event(run)])
    held = await pool.acquire()
    await pool.execute("SELECT pg_terminate_backend($1)", held.get_server_pid())
    with contextlib.suppress(asyncpg.InternalClientError):  # the pool may have noticed first
        await pool.release(held)
    await write.write_events([event(run)])


async def test_deadlock_is_tried_again(pool: asyncpg.Pool) -> None:
    await pool.execute("CREATE TABLE pair (id int PRIMARY KEY, n int); INSERT INTO pair VALUES (1, 0), (2, 0)")
    both = asyncio.Barrier(2)
    tries = 0

    async def cross(first: int, second: int) -> None:
        met = False

        async def update(connection: asyncpg.Connection) -> None:
            nonlocal met, tries
            tries += 1
            async with connection.transaction():
                await connection.execute("UPDATE pair SET n = n + 1 WHERE id = $1", first)
                if not met:
                    met = True
                    await both.wait()
                await connection.execute("UPDATE pair SET n = n + 1 WHERE id = $1", second)

        await call(pool, "cross", update, remaining=lambda: 60.0)

    async with asyncio.TaskGroup() as group:
        group.create_task(cross(1, 2))
        group.create_task(cross(2, 1))
    assert [row["n"] for row in await pool.fetch("SELECT n FROM pair ORDER BY id")] == [2, 2]
    assert tries == 3


async def test_refused_statement_is_not_tried_again(pool: asyncpg.Pool) -> None:
    tries = 0

    async def divide(connection: asyncpg.Connection) -> None:
        nonlocal tries
        tries += 1
        await connection.execute("SELECT 1 / 0")

    with pytest.raises(StoreError, match=r"^Cannot divide: division by zero$") as refused:
        await call(pool, "divide", divide, remaining=lambda: 60.0)
    assert not isinstance(refused.value, StoreUnavailable)
    assert tries == 1


async def test_read_only_server_counts_as_away(pool: asyncpg.Pool) -> None:
    async def write(connection: asyncpg.Connection) -> None:
        async with connection.transaction(readonly=True):
            await connection.execute("DELETE FROM worker")

    left = iter([60.0, 0.0])
    with pytest.raises(StoreUnavailable, match="read-only"):
        await call(pool, "write", write, remaining=lambda: next(left))


async def test_failover_is_waited_out_by_writers_while_readers_go_on(pool: asyncpg.Pool) -> None:
    """As after a switch to a standby: for a while every server that answers takes reads only."""
    run, _ = await claimed_run(pool)
    name = await pool.fetchval("SELECT quote_ident(current_database())")
    await pool.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await pool.expire_connections()
    step = asyncio.create_task(writer(pool, run, seconds=90).write_events([event(run)]))
    done, _ = await asyncio.wait([step], timeout=0.5)
    assert not done
    assert await Reads(pool).record(run) is not None
    async with pool.acquire() as other, other.transaction():
        await other.execute("SET TRANSACTION READ WRITE")
        await other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
    async with asyncio.timeout(60):
        await step  # on a new connection, which found the new primary
    assert [shown.content for shown in await Reads(pool).timeline(run)] == ["response"]


async def test_schema_of_a_database_in_failover_is_waited_for(dsn: str) -> None:
    pool = await open_pool(dsn, max_size=1)
    await pool.execute("SET default_transaction_read_only = on")
    try:
        with pytest.raises(StoreUnavailable, match="read-only"):
            await migrate(pool, [*migrations(), Migration(9999, "more", "CREATE TABLE more (id int)")])
    finally:
        await pool.close()


async def test_pool_without_a_free_connection_says_so(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = await open_pool(dsn, max_size=2)
    try:
        async with pool.acquire(), pool.acquire():
            with monkeypatch.context() as patch:
                patch.setattr("tarsy.store.database._CONNECT_SECONDS", 0.3)
                with pytest.raises(StoreUnavailable, match="investigations: all 2 connections to Postgres are"):
                    await Reads(pool).record(uuid4())
        assert await Reads(pool).record(uuid4()) is None
    finally:
        await pool.close()


async def test_what_is_slow_or_waits_long_is_counted_and_does_its_work(dsn: str) -> None:
    pool = await open_pool(dsn, max_size=1)
    try:
        async with asyncio.TaskGroup() as group:
            asleep = asyncio.Event()

            async def sleep(connection: asyncpg.Connection) -> None:
                asleep.set()
                await connection.execute("SELECT pg_sleep(4)")

            group.create_task(call(pool, "sleep", sleep))
            await asleep.wait()
            waiting = group.create_task(Reads(pool).record(uuid4()))
        assert waiting.result() is None
        assert pool.pressure.slow >= 1 and pool.pressure.waits == 1
    finally:
        await pool.close()


async def test_cancelled_step_frees_its_connection(dsn: str) -> None:
    pool = await open_pool(dsn, max_size=1)
    task = asyncio.create_task(call(pool, "sleep", lambda c: c.execute("SELECT pg_sleep(30)"), remaining=lambda: 60.0))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        assert await pool.fetchval("SELECT 1") == 1
    await pool.close()


async def test_a_connection_is_returned_without_a_task_and_goes_on_as_it_is(dsn: str) -> None:
    tasks: list[str] = []
    pool = await open_pool(dsn, min_size=1, max_size=1)

    async def begins(connection: asyncpg.pool.PoolConnectionProxy) -> int:
        await connection.execute("BEGIN")
        return await server(connection)

    async def server(connection: asyncpg.pool.PoolConnectionProxy) -> int:
        return int(await connection.fetchval("SELECT pg_backend_pid()"))

    def counted(loop: asyncio.AbstractEventLoop, task: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        tasks.append(task.__qualname__)
        return asyncio.Task(task, loop=loop, **options)

    first = await call(pool, "ask", server)
    asyncio.get_running_loop().set_task_factory(counted)  # type: ignore[arg-type]
    assert await call(pool, "ask", server) == first
    assert tasks == []
    asyncio.get_running_loop().set_task_factory(None)
    assert await call(pool, "leave a transaction open", begins) == first
    async with pool.acquire() as connection:
        assert not connection.is_in_transaction()
    await pool.expire_connections()
    assert await call(pool, "ask", server) != first
    await pool.close()


async def test_pool_names_itself_and_works_in_its_schema(dsn: str) -> None:
    pool = await open_pool(dsn, application="tarsy-test")
    assert await pool.fetchval("SHOW application_name") == "tarsy-test"
    assert await pool.fetchval("SHOW search_path") == "tarsy"
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}
    await pool.close()


async def test_postgres_that_is_away_is_named_without_the_password(unused_tcp_port: int) -> None:
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{unused_tcp_port}/tarsy does not answer") as away:
        await open_pool(f"postgresql://tarsy:s3cret@127.0.0.1:{unused_tcp_port}/tarsy")
    assert "s3cret" not in str(away.value)


async def test_database_that_does_not_exist_is_told_apart(postgres: LocalPostgres) -> None:
    with pytest.raises(StoreError, match=r'database "nowhere" does not exist') as refused:
        await open_pool(address(postgres.dsn, "nowhere"))
    assert not isinstance(refused.value, StoreUnavailable)


@pytest.mark.parametrize("address", ["postgresql://u:s3cret@host:port/db", "mysql://u:s3cret@host/db", "s3cret"])
async def test_malformed_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(StoreError) as refused:
        await open_pool(address)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_description_of_an_address_has_no_credentials() -> None:
    assert describe_address("postgresql://u:s3cret@db.example:6432/tarsy?sslmode=require") == "db.example:6432/tarsy"


async def test_types_of_postgres_are_looked_up_once_a_process(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_KNOWN_TYPES", {})
    looked_up, found = [], []
    for _ in range(2):
        queries: list[str] = []
        pool = await open_pool(dsn, max_size=1)
        try:
            async with pool.acquire() as connection:
                with connection.query_logger(lambda query, seen=queries: seen.append(query.query)):
                    found.append(
                        await connection.fetchval("SELECT $2::jsonb[] FROM unnest($1::uuid[])", [uuid4()], [{}])
                    )
        finally:
            await pool.close()
        looked_up.append(any("typeinfo" in query for query in queries))
    assert looked_up == [True, False]
    assert found == [[{}], [{}]]


async def test_a_session_that_stands_still_in_a_transaction_holds_its_runs_no_longer_than_a_lease(
    pool: asyncpg.Pool,
) -> None:
    """A node that loses its power in the middle of a write leaves the lease's row locked until the session ends."""
    milliseconds = await pool.fetchval(
        "SELECT setting::integer FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
    )
    assert 0 < milliseconds <= WorkerSettings().lease_seconds * 1000
