"""What kopf costs: its share of the active controller's CPU, beside a bare watch of aiohttp and orjson.

There are 3,000 finished Investigations (100 with `--quick`) in the embedded Kubernetes API, with their record. The same
controller runs twice, once with each watch, which is a thread of its own either way: the kernel counts its CPU time.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from tests.bench.figures import Figure, Result
from tests.bench.scale import filled

from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy_dev.stack import Stack, running_stack

CHILD = Path(__file__).with_name("kopf_child.py")
PHASE_SECONDS = 600.0
REST_SECONDS = 2.0
_CHANGE = (
    "UPDATE investigation SET revision = revision + 1, settled = false"
    " WHERE id IN (SELECT id FROM investigation WHERE settled ORDER BY id LIMIT $1)"
)


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds of the process and of the thread that watches, and the events that it passed on."""

    total: float
    watch: float
    events: int

    def since(self, before: "Used") -> "Used":
        """What was used since then."""
        return Used(self.total - before.total, self.watch - before.watch, self.events - before.events)


async def run(quick: bool) -> Result:
    """Starts the controller over all objects, then changes the status of some, with each watch."""
    objects, changes = (100, 50) if quick else (3000, 1000)
    async with running_stack(api="embedded") as stack:
        await stack.install(admission=False)
        pool = await open_pool(stack.database_url, min_size=1, max_size=8, application="tarsy bench")
        try:
            await migrate(pool)
            await filled(stack, pool, objects, objects)
            found = {which: await _measured(which, stack, pool, changes) for which in ("kopf", "bare")}
        finally:
            await pool.close()
    how = (
        f"{objects:,} finished Investigations; the loaded controller's process until it rests, then while it "
        f"publishes the status of {changes:,} of them, each of which its watch brings back. CPU of the watch: that of "
        "its thread. Bare: the same controller, whose watch is aiohttp and orjson by hand."
    )
    figures = []
    for number, (phase, unit, per) in enumerate((("start", "s", 1.0), ("a status change", "ms", changes / 1000))):
        kopf, bare = found["kopf"][number], found["bare"][number]
        figures += [
            Figure(f"{phase}: CPU of the controller", kopf.total / per, unit, beside=bare.total / per),
            Figure(f"{phase}: CPU of the watch", kopf.watch / per, unit, beside=bare.watch / per),
            Figure(f"{phase}: share of the watch", share(kopf), "%", beside=share(bare)),
            Figure(f"{phase}: events", float(kopf.events), "", beside=float(bare.events)),
        ]
    return Result(how, figures, columns=("kopf", "bare"))


def share(used: Used) -> float:
    """Returns the CPU of the watch in percent of the process."""
    return 100 * used.watch / used.total


async def _measured(which: str, stack: Stack, pool: asyncpg.Pool, changes: int) -> tuple[Used, Used]:
    """CPU until the controller rests after its start, and for so many changes of a status."""
    async with _child(which, stack) as child, asyncio.timeout(PHASE_SECONDS):
        loaded = await _ask(child)
        start = await _rested(child)
        await pool.execute(_CHANGE, changes)
        left = changes
        while left:
            changed = await _rested(child)
            left = await pool.fetchval("SELECT count(*) FROM investigation WHERE revision > published_revision")
        return start.since(loaded), changed.since(start)


@contextlib.asynccontextmanager
async def _child(which: str, stack: Stack) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), str(stack.kubeconfig), stack.database_url, which,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        await child.wait()


async def _rested(child: asyncio.subprocess.Process) -> Used:
    """Waits until the process has seen events and hardly uses CPU."""
    before = await _ask(child)
    while True:
        await asyncio.sleep(REST_SECONDS)
        now = await _ask(child)
        used = now.since(before)
        if now.events and not used.events and used.total < 0.1 * REST_SECONDS:
            return now
        before = now


async def _ask(child: asyncio.subprocess.Process) -> Used:
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the controller has no pipes")
    child.stdin.write(b"\n")
    line = await child.stdout.readline()
    if not line:
        raise RuntimeError(f"the controller ended with {await child.wait()}")
    return Used(**json.loads(line))
