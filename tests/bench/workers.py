"""Workers as processes of their own: investigations a minute by their number, and how soon others go on after a kill.

What bounds the first is CPU: the model answers at once and all is on one machine, so where there are fewer cores than
processes, the figures show the machine. The second is the lease for the most part: nobody may go on before it is sure
that a worker which says nothing is over.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from tests.bench.bed import AGENT, RUN_SECONDS, Bed, Tenant, loop_script
from tests.bench.figures import Figure, Result, spread
from tests.bench.processes import machine_time

from tarsy_dev.operator_process import OperatorProcess

CALLS, TOKENS = 3, 20
LEASE_SECONDS = 15
WATCH_SECONDS = 0.05
_CALLS = """
SELECT c.started_at AS at FROM investigation i JOIN stage s ON s.investigation = i.id
JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE i.namespace = $1 AND i.name LIKE 'run-%' AND i.attempt = $2 AND c.state = 'started' AND c.started_at > $3
"""


async def run(bed: Bed, quick: bool) -> Result:
    """Investigations a minute with 1, 2 and 4 workers, then a SIGKILL."""
    figures: list[Figure] = []
    for workers in (1, 2, 4):
        figures += await _a_minute(bed, workers, 6 if quick else 120)
    figures += await _after_a_kill(bed, 5 if quick else 100)
    how = (
        f"Worker processes beside an operator that runs nothing. A minute: one stage, one agent, {CALLS} model calls "
        f"({CALLS - 1} with one tool call) of a model that answers at once; first start to last end in the record. "
        "SIGKILL: one of two workers holds all runs, each in the middle of a model call, and is killed; from then "
        f"until the other asks the model again, with leases of {LEASE_SECONDS} s."
    )
    return Result(how, figures)


@contextlib.asynccontextmanager
async def _worker(bed: Bed, places: int) -> AsyncIterator[OperatorProcess]:
    limits = ["--places", str(places), "--global-limit", "1000", "--lease-seconds", str(LEASE_SECONDS)]
    fixed = ["--kubeconfig", str(bed.stack.kubeconfig), "--health-port", "0", "--drain-seconds", "0"]
    environment = {"TARSY_DATABASE_URL": bed.stack.database_url}
    process = OperatorProcess([*fixed, *limits], environment, bed.stack.operator_log, command="worker")
    try:
        yield process
    finally:
        await process.stop()


async def _a_minute(bed: Bed, workers: int, runs: int) -> list[Figure]:
    async with (
        bed.tenant(f"workers-{workers}", loop_script(CALLS, tokens=TOKENS), "--places", "0") as tenant,
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(workers):
            await stack.enter_async_context(_worker(bed, 20))
        await tenant.chain([AGENT])
        machine = machine_time()
        await tenant.create_many("run", runs)
        rows = await tenant.settled("run", runs)
        busy = machine_time().share_since(machine)
    seconds = (max(row["finished_at"] for row in rows) - min(row["started_at"] for row in rows)).total_seconds()
    name = f"{workers} worker{'s' * (workers > 1)}"
    return [
        Figure(f"{name}: investigations a minute", 60 * runs / seconds, "1/min", detail={"runs": runs}),
        Figure(f"{name}: machine busy", busy, "of all cores"),
    ]


async def _after_a_kill(bed: Bed, runs: int) -> list[Figure]:
    script = loop_script(1, tokens=TOKENS)
    script["agents"][AGENT][0]["gate"] = "door"
    async with bed.tenant("recovery", script, "--places", "0") as tenant, _worker(bed, runs) as victim:
        door = f"{tenant.base_url.removesuffix('/v1')}/control/gates/door"
        async with bed.http.post(door, raise_for_status=True):
            await tenant.chain([AGENT])
        async with bed.http.delete(door, raise_for_status=True):
            await tenant.create_many("run", runs)
        began = datetime.fromtimestamp(0, UTC)
        await _under_way(tenant, runs, 1, began)
        async with _worker(bed, runs):
            await asyncio.sleep(LEASE_SECONDS / 3)  # it has started, and waits for something to do
            if len(await tenant.bed.pool.fetch(_CALLS, tenant.name, 1, began)) < runs:
                raise RuntimeError("the machine is too busy: a worker lost its leases before it was killed")
            killed = datetime.now(UTC)
            victim.kill()
            again = await _under_way(tenant, runs, 2, killed)
            async with bed.http.post(door, raise_for_status=True):
                await tenant.settled("run", runs)
    seconds = [(row["at"] - killed).total_seconds() for row in again]
    return spread(f"SIGKILL with {runs} in flight: asked again after", seconds, "s")


async def _under_way(tenant: Tenant, runs: int, attempt: int, since: datetime) -> list[Any]:
    """Waits until so many runs are in the middle of a model call of this attempt, begun since; the rows of `_CALLS`."""
    async with asyncio.timeout(RUN_SECONDS):
        while True:
            rows: list[Any] = await tenant.bed.pool.fetch(_CALLS, tenant.name, attempt, since)
            if len(rows) >= runs:
                return rows
            await asyncio.sleep(WATCH_SECONDS)
