"""What a large record and many finished objects cost: start, queries, claims, deletion.

There are 10,000 finished Investigations in the embedded Kubernetes API (200 with `--quick`), and their record in
Postgres with a million timeline events, or as many as TARSY_BENCH_EVENTS says.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from tests.bench.big_record import fill
from tests.bench.figures import Figure, Result, percentile, spread
from tests.bench.processes import cpu_seconds, memory

from tarsy.controllers.runs.projection import project
from tarsy.controllers.runs.rest import status_digest
from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Investigation
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy.store.reading.reads import Reads
from tarsy.store.retention import Retention
from tarsy.store.runs.claims import Claims
from tarsy_dev.objects import put
from tarsy_dev.stack import Stack, running_stack

SPACE = "scale"
CLIENTS = 16
START_SECONDS = 600.0
QUIET_SECONDS = 3
IDLE_SECONDS = 30
"""Rounds that are seconds apart count by their share only in a longer time; the kernel counts hundredths."""
PLACES = 20
_WAITING = """
INSERT INTO investigation (id, namespace, namespace_uid, name, alert_type, chain, chain_namespace, plan_hash,
    stages_planned, limit_seconds, accepted_at)
SELECT gen_random_uuid(), 'team-' || n % 20, 'uid', 'run-' || n, 'PodCrash', 'chain', 'library', 'hash', 1, 3600,
    now() - n * interval '1 second'
FROM generate_series(1, $1::integer) n
"""
_SIZE = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'tarsy'::regnamespace"
)


async def run(quick: bool) -> Result:
    """Fills both, starts an operator over them, then asks and claims and deletes."""
    objects = 200 if quick else 10_000
    events = 20_000 if quick else int(os.environ.get("TARSY_BENCH_EVENTS", "1000000"))
    asked = 5 if quick else 200
    async with running_stack(api="embedded") as stack:
        await stack.install(admission=False)
        pool = await open_pool(stack.database_url, min_size=2, max_size=CLIENTS, application="tarsy bench")
        try:
            await migrate(pool)
            await put(stack.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
            empty = await _started(stack, "first")
            runs, figures = await filled(stack, pool, objects, events)
            figures += await _start(stack, empty, objects)
            figures += await _ask(pool, runs, asked)
            figures += await _claim(pool, min(asked, 20))
            figures += await _purge(pool, max(1, events // objects))
        finally:
            await pool.close()
    how = (
        f"{objects:,} finished Investigations in the embedded API and {events:,} timeline events of them in Postgres "
        f"(fsync on). Started: from the operator's process to the acceptance of an Investigation that waited for it, "
        f"and to the first of {QUIET_SECONDS} seconds in which it used no CPU. Of each object: less a start without "
        f"any. Each question {asked} times, one after the other."
    )
    return Result(how, figures)


async def filled(stack: Stack, pool: asyncpg.Pool, objects: int, events: int) -> tuple[list[UUID], list[Figure]]:
    """The objects, their record, and their status as the operator would write it: it has nothing to mend.

    Args:
        stack: its Kubernetes API gets the Investigations.
        pool: a migrated database.
        objects: number of Investigations.
        events: number of timeline events of all of them.
    """
    await put(stack.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    made: list[dict[str, Any]] = [{}] * objects

    async def create(number: int) -> None:
        spec = {"alert": {"alertType": "PodCrash", "data": "crash looping " * 50}}
        made[number] = await stack.client.create(
            {
                "apiVersion": API_VERSION,
                "kind": "Investigation",
                "metadata": {"name": f"old-{number:05}", "namespace": SPACE},
                "spec": spec,
            }
        )

    await _side_by_side(range(objects), create)
    uid = (await stack.client.get("Namespace", None, SPACE))["metadata"]["uid"]
    runs = [(UUID(raw["metadata"]["uid"]), raw["metadata"]["name"]) for raw in made]
    began = time.monotonic()
    await fill(pool, SPACE, uid, runs, max(1, events // objects))
    seconds = time.monotonic() - began
    reads = Reads(pool)

    async def publish(number: int) -> None:
        meta = {"annotations": {ACCEPTED_UID: made[number]["metadata"]["uid"]}}
        obj = parse_as(
            Investigation,
            await stack.client.patch("Investigation", SPACE, runs[number][1], {"metadata": meta}),
        )
        record = await reads.record(runs[number][0])
        assert record is not None
        status = project(record, obj, datetime.now(UTC)).to_dict()
        name = runs[number][1]
        kept = await stack.client.patch("Investigation", SPACE, name, {"status": status}, subresource="status")
        await reads.mark_published(record.id, record.revision, status_digest(kept["status"]))

    await _side_by_side(range(objects), publish)
    size = await pool.fetchval(_SIZE)
    return [run for run, _ in runs], [
        Figure("filling the record", seconds, "s"),
        Figure("the record", float(size) / 2**30, "GiB"),
    ]


async def _side_by_side(numbers: Sequence[int], work: Callable[[int], Awaitable[None]]) -> None:
    left = iter(numbers)

    async def client() -> None:
        for number in left:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())


@dataclass(frozen=True, slots=True)
class _Started:
    """What one start cost: seconds to the first answer and to rest, CPU seconds until then and a second after, MiB."""

    answered: float
    quiet: float
    cpu: float
    idle: float
    memory: float


async def _start(stack: Stack, empty: _Started, objects: int) -> list[Figure]:
    """An operator finds them all, and one that is new and asks to be cancelled: that is an answer of its own."""
    before = {item["metadata"]["resourceVersion"] for item in await stack.client.list("Investigation", SPACE)}
    found = await _started(stack, "new")
    after = {item["metadata"]["resourceVersion"] for item in await stack.client.list("Investigation", SPACE)}
    each = (found.memory - empty.memory) / objects
    return [
        Figure("start, to the first answer", found.answered, "s"),
        Figure("start, to rest", found.quiet, "s"),
        Figure("CPU of the start", found.cpu, "s", aim="under 10"),
        Figure("CPU of the start, of each object", (found.cpu - empty.cpu) * 1000 / objects, "ms"),
        Figure("CPU at rest", found.idle * 1000, "ms a second"),
        Figure("memory at rest", found.memory, "MiB"),
        Figure("memory at rest, of each object", each * 1024, "KiB"),
        Figure("memory with 100,000 objects, by that", empty.memory + each * 100_000, "MiB"),
        Figure("old objects written at the start", float(len(after - before) - 1), "objects", aim="0"),
    ]


async def _started(stack: Stack, name: str) -> _Started:
    """Starts an operator, and stops it when it has answered and rests."""
    spec = {"alert": {"alertType": "Nothing", "data": "x"}, "desiredState": "Cancelled"}
    meta = {"name": name, "namespace": SPACE}
    await stack.client.create({"apiVersion": API_VERSION, "kind": "Investigation", "metadata": meta, "spec": spec})
    began = time.monotonic()
    operator = stack.operator()
    try:
        async with asyncio.timeout(START_SECONDS):
            await _ended(stack, name)
            answered = time.monotonic() - began
            used, quiet = -1.0, 0
            while quiet < QUIET_SECONDS:
                quiet = quiet + 1 if cpu_seconds(operator.pid) - used <= 0.1 else 0
                used = cpu_seconds(operator.pid)
                await asyncio.sleep(1.0)
        rested = time.monotonic() - began - QUIET_SECONDS
        await asyncio.sleep(IDLE_SECONDS - 1)
        idle = (cpu_seconds(operator.pid) - used) / IDLE_SECONDS
        return _Started(answered, rested, used, idle, memory(operator.pid)[0])
    finally:
        await operator.stop()


async def _ended(stack: Stack, name: str) -> None:
    while True:
        found = await stack.client.get("Investigation", SPACE, name)
        if (found.get("status") or {}).get("finishedAt"):
            return
        await asyncio.sleep(0.1)


async def _ask(pool: asyncpg.Pool, runs: Sequence[UUID], times: int) -> list[Figure]:
    reads, retention = Reads(pool), Retention(pool)
    chosen = random.Random(7)
    call = "SELECT c.id FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id"
    calls = [row["id"] for row in await pool.fetch(f"{call} WHERE s.investigation = ANY($1) LIMIT 1000", runs[:50])]
    questions: dict[str, tuple[Callable[[], Awaitable[Any]], int]] = {
        "an investigation by id": (lambda: reads.record(chosen.choice(runs)), times),
        "an investigation by name": (lambda: reads.find(SPACE, f"old-{chosen.randrange(len(runs)):05}"), times),
        "its timeline": (lambda: reads.timeline(chosen.choice(runs), 0, 1000), times),
        "what changed in it last": (lambda: reads.timeline(chosen.choice(runs), 40, 1000), times),
        "what a model call was sent": (lambda: reads.sent(chosen.choice(calls)), times),
        "what is to be published": (lambda: reads.unpublished(1000), times),
        "the queue": (reads.queue_depth, times),
        "which runs have not ended": (reads.unfinished, times),
        "usage of an hour": (lambda: reads.usage(3600, "model"), times),
        "usage of all": (lambda: reads.usage(86_400.0 * 365, "model"), max(3, times // 20)),
        "which records are old": (lambda: retention.survey(86_400.0), max(3, times // 10)),
    }
    figures = []
    for name, (question, count) in questions.items():
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            await question()
            taken.append((time.perf_counter() - began) * 1000)
        figures += spread(name, taken, "ms")
    return figures


async def _claim(pool: asyncpg.Pool, times: int) -> list[Figure]:
    worker, claims = uuid4(), Claims(pool)
    await claims.register(worker, "bench", 3600)
    await pool.execute(_WAITING, times * PLACES)
    await pool.execute("ANALYZE investigation")
    began, taken = time.perf_counter(), []
    for _ in range(times):
        one = time.perf_counter()
        await claims.claim(worker, PLACES, 10**9)
        taken.append((time.perf_counter() - one) * 1000)
    figures = [Figure("claims, one worker", times * PLACES / (time.perf_counter() - began), "runs a second")]
    return [*figures, *spread(f"a claim of {PLACES}", taken, "ms")]


async def _purge(pool: asyncpg.Pool, events: int) -> list[Figure]:
    """Deletes the older half, while something is written all the time; each has so many `events`."""
    retention = Retention(pool)
    middle = await pool.fetchval(
        "SELECT extract(epoch FROM now() - percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at))"
        " * interval '1 s' - to_timestamp(0))::float8 FROM investigation WHERE settled"
    )
    taken, waits, deleted = [], [], 0
    done = asyncio.Event()

    async def beside() -> None:
        while not done.is_set():
            began = time.perf_counter()
            await pool.execute("UPDATE worker SET expires_at = now() + interval '1 hour'")
            waits.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.02)

    writer = asyncio.create_task(beside())
    while True:
        began = time.perf_counter()
        batch = await retention.purge_some(middle)
        if not batch:
            break
        taken.append((time.perf_counter() - began) * 1000)
        deleted += sum(batch.values())
    done.set()
    await writer
    return [
        Figure("deleting old records", deleted * events / (sum(taken) / 1000), "timeline events a second"),
        Figure("investigations deleted", float(deleted), ""),
        *spread("a transaction of deletion", taken, "ms"),
        Figure("a heartbeat meanwhile, p95", percentile(waits, 0.95), "ms"),
    ]
