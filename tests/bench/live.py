"""Following live: from a model's write to a WebSocket's client, four processes and Postgres between them.

Words of a model are the times at which its server wrote them, so a client knows how long each was on its way: through
the provider's client, the engine, masking, NOTIFY, the hub of another process and a WebSocket. All clients are in this
one process, which is also busy: with a thousand of them the figures are an upper bound.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import asyncpg
from tests.bench.children import listening
from tests.bench.figures import Figure, Result, percentile
from tests.bench.stamp_server import MICROSECONDS

from tarsy.plan.model import AgentLimits, Backend
from tarsy.record.ids import event_id
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import NewRun, Runs
from tarsy.store.runs.writer import RunWriter
from tarsy.stream.deltas import Deltas
from tarsy.stream.notifier import Notifier
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.postgres import LocalPostgres
from unit.engine.build import agent, plan, stage

HERE = Path(__file__).parent
PATIENCE = 300.0
WARM = 5  # words of a stream that are not counted: the run is claimed, the text is followed
AT_ONCE = 50  # clients that connect
Told = Callable[[dict[str, Any]], bool]


async def run(quick: bool) -> Result:
    """Delay of words with 1, 100 and 1,000 subscribers, events a second, and what it costs where nobody follows."""
    paces = ((1, 20, 100), (10, 20, 100)) if quick else ((1, 200, 100), (100, 200, 100), (1_000, 50, 500))
    figures: list[Figure] = []
    server = LocalPostgres(fsync=False, environ={})
    await asyncio.to_thread(server.start)
    try:
        pool = await open_pool(server.dsn)
        try:
            await migrate(pool)
            async with _services(server.dsn) as (model, url):
                for followers, words, apart in paces:
                    figures += await _delays(pool, server.dsn, model, url, followers, words, apart)
                for followers in (1, 10) if quick else (1, 100):
                    figures.append(await _events(pool, url, followers, 100 if quick else 3_000))
        finally:
            await pool.close()
    finally:
        await asyncio.to_thread(server.stop)
    figures.append(_unfollowed(pool))
    how = (
        "Words of one model call, one each 100 ms, or 500 ms for a thousand subscribers, whose one process can read no "
        "more. Worker, API and model server are processes of their own, all clients share one. An event is written, "
        "read by one hub and told; what all clients were told counts."
    )
    return Result(how, figures)


async def _delays(
    pool: asyncpg.Pool, dsn: str, model: str, url: str, followers: int, words: int, apart: int
) -> list[Figure]:
    run = await _accepted(pool, f"words-{followers}", model, f"{words + WARM}@{apart}")
    delays: list[float] = []

    def reader() -> Told:
        mine: list[float] = []

        def told(message: dict[str, Any]) -> bool:
            now = time.monotonic_ns() // 1000 % MICROSECONDS
            if message["type"] == "delta":
                mine.extend((now - int(word)) / 1000 for word in message["text"].split())
            if message["type"] != "timelineEvent.closed":
                return False
            delays.extend(mine[WARM:])
            return True

        return told

    async with _following(url, run.name, [reader() for _ in range(followers)]) as done:
        async with _child("live_worker.py", dsn):
            await done()
    said = f"{_subscribers(followers)}: model's write to client"
    return [
        Figure(f"{said}, p50", percentile(delays, 0.5), "ms"),
        Figure(f"{said}, p99", percentile(delays, 0.99), "ms"),
        Figure(f"{_subscribers(followers)}: words told before the event", 100 * len(delays) / (followers * words), "%"),
    ]


async def _events(pool: asyncpg.Pool, url: str, followers: int, count: int) -> Figure:
    """Events a second that a hub reads and tells, all clients together."""
    run = await _accepted(pool, f"events-{followers}", "http://127.0.0.1:1", "none")
    worker = uuid4()
    await Claims(pool).register(worker, "bench", 3600)
    (claimed,) = await Claims(pool).claim(worker, 1, 1000)
    notifier = Notifier(pool)
    sending = asyncio.create_task(notifier.run())
    write = RunWriter(pool, claimed.id, claimed.attempt, remaining=lambda: PATIENCE, notify=notifier.notify)

    def reader() -> Told:
        seen = 0

        def told(message: dict[str, Any]) -> bool:
            nonlocal seen
            seen += message["type"] == "timelineEvent.closed"
            return seen >= count

        return told

    async with _following(url, run.name, [reader() for _ in range(followers)]) as done:
        began = time.perf_counter()
        for start in range(0, count, 10):
            await write.write_events([_event(claimed.id, number) for number in range(start, start + 10)])
        await done()
        took = time.perf_counter() - began
    sending.cancel()
    await asyncio.wait([sending])
    name = f"{_subscribers(followers)}: events told a second, all together"
    return Figure(name, count * followers / took, "1/s")


def _unfollowed(pool: asyncpg.Pool) -> Figure:
    """What a chunk costs that nobody reads along with."""
    deltas = Deltas(pool, lambda *_: contextlib.nullcontext())
    event, chunks = uuid4(), 200_000
    with deltas.of(uuid4(), lambda: None) as texts:  # type: ignore[arg-type, return-value]
        texts.began(event, [])
        began = time.process_time()
        for _ in range(chunks):
            texts.grew(event)
        took = time.process_time() - began
    return Figure("nobody follows: CPU a chunk", took / chunks * 1e6, "us")


def _subscribers(count: int) -> str:
    return f"{count:,} subscriber{'s' * (count > 1)}"


def _event(run: UUID, number: int) -> Event:
    text = f"Looked at pod checkout-{number}: it restarts because its memory is used up. " * 4
    return Event(event_id(run, str(number)), EventType.LLM_RESPONSE, EventStatus.COMPLETED, text)


async def _accepted(pool: asyncpg.Pool, name: str, model_url: str, model: str) -> NewRun:
    who = agent()
    provider = who.provider.model_copy(update={"backend": Backend.OPENAI_NATIVE, "base_url": model_url, "model": model})
    of = plan(stage("look", who.model_copy(update={"provider": provider})), limits=AgentLimits(finding_repairs=0))
    run = NewRun(uuid4(), "team-a", "uid-of-team-a", name, of, "{}", "", {"username": "ann"})
    await Runs(pool).accept(run)
    return run


@asynccontextmanager
async def _following(url: str, name: str, readers: Sequence[Told]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Clients that follow an investigation, each until its reader is content; yields what waits for that."""
    headers, few = {"Authorization": "Bearer ann"}, asyncio.Semaphore(AT_ONCE)
    action = json.dumps({"action": "subscribe", "channel": f"investigation:team-a/{name}"})
    ready = [asyncio.Event() for _ in readers]

    async def follow(session: aiohttp.ClientSession, told: Told, caught_up: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with few:
                socket = await stack.enter_async_context(session.ws_connect(f"{url}/api/v1/ws", max_msg_size=0))
                await socket.send_str(action)
                while (message := json.loads(await socket.receive_str()))["type"] != "caughtUp":
                    if message["type"] == "error":
                        raise RuntimeError(message["message"])
                caught_up.set()
            while not told(json.loads(await socket.receive_str())):
                pass

    async with asyncio.timeout(PATIENCE), _session(headers) as session, asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(session, *one)) for one in zip(readers, ready, strict=True)]
        for caught_up in ready:
            await caught_up.wait()

        async def done() -> None:
            await asyncio.wait(tasks)

        yield done


def _session(headers: dict[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers)


@asynccontextmanager
async def _services(dsn: str) -> AsyncIterator[tuple[str, str]]:
    """The addresses of the model server and of the API."""
    model, port = free_port(), free_port()
    async with _child("stamp_server.py", str(model)), _child("live_server.py", dsn, str(port)):
        await listening(model)
        await listening(port)
        yield f"http://127.0.0.1:{model}/v1", f"http://127.0.0.1:{port}"


@asynccontextmanager
async def _child(script: str, *arguments: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, str(HERE / script), *arguments)
    try:
        yield
    finally:
        process.kill()
        await process.wait()
