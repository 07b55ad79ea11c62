"""A worker pod: what its processes do in a minute by their number, and how soon others go on after a kill.

What bounds the first is CPU: the model answers at once and all is on one machine, so where there are fewer cores than
processes, the figures show the machine; the CPU of an investigation, the supervisor's included, is comparable anywhere.
The second is the lease for the most part: nobody may go on before it is sure that a worker which says nothing is over.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any

from tests.bench import at_once
from tests.bench.bed import AGENT, RUN_SECONDS, Bed, Tenant, loop_script, now
from tests.bench.figures import Figure, Result, spread
from tests.bench.processes import machine_time, tree_cpu_seconds
from tests.bench.worker_pod import worker_pod

from tarsy.runtime.settings import WorkerSettings

CALLS, TOKENS = 3, 20
PLACES = 40
LEASE_SECONDS = WorkerSettings().lease_seconds
WATCH_SECONDS = 0.05
_CALLS = """
SELECT c.started_at AS at FROM investigation i JOIN stage s ON s.investigation = i.id
JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
WHERE i.namespace = $1 AND i.name LIKE 'run-%' AND i.attempt = $2 AND c.state = 'started' AND c.started_at > $3
"""


async def run(bed: Bed, quick: bool) -> Result:
    """Investigations a minute with 1, 2 and 4 processes, a hundred at once at the pace of a model, then a SIGKILL."""
    figures: list[Figure] = []
    for processes in (1, 2, 4):
        figures += await _a_minute(bed, processes, 6 if quick else 120)
    figures += await _paced(bed, 2, 4 if quick else 100)
    figures += await _after_a_kill(bed, 5 if quick else 100)
    how = (
        "A worker pod (tarsy worker --processes) beside an operator that runs nothing. A minute: one stage, one agent, "
        f"{CALLS} model calls ({CALLS - 1} with one tool call) of a model that answers at once; first start to last "
        "end in the record; CPU of the supervisor and all processes. At once: as in hundred_at_once. "
        "SIGKILL: one of two workers holds all runs, each in the middle of a model call, and is killed; from then "
        f"until the other asks the model again, with leases of {LEASE_SECONDS:g} s."
    )
    return Result(how, figures)


async def _a_minute(bed: Bed, processes: int, runs: int) -> list[Figure]:
    script = loop_script(CALLS, tokens=TOKENS)
    async with (
        bed.tenant(f"workers-{processes}", script, "--places", "0") as tenant,
        worker_pod(bed, PLACES, processes) as worker,
    ):
        await _warm(tenant)
        machine, cpu = machine_time(), tree_cpu_seconds(worker.pid)
        await tenant.create_many("run", runs)
        rows = await tenant.settled("run", runs)
        busy, used = machine_time().share_since(machine), tree_cpu_seconds(worker.pid) - cpu
    seconds = (max(row["finished_at"] for row in rows) - min(row["started_at"] for row in rows)).total_seconds()
    name = f"{processes} process{'es' * (processes > 1)}"
    return [
        Figure(f"{name}: investigations a minute", 60 * runs / seconds, "1/min", detail={"runs": runs}),
        Figure(f"{name}: CPU an investigation", 1000 * used / runs, "ms", "1 to 4 processes: at most 15 % more"),
        Figure(f"{name}: machine busy", busy, "of all cores"),
    ]


async def _warm(tenant: Tenant) -> None:
    """Lets every process run something before it is measured."""
    await tenant.chain([AGENT])
    await tenant.create_many("heat", 2 * PLACES)
    await tenant.settled("heat", 2 * PLACES)
    await tenant.forget()


async def _paced(bed: Bed, processes: int, runs: int) -> list[Figure]:
    pace = {"first_ms": at_once.FIRST_MS, "per_ms": at_once.PER_MS}
    script = loop_script(at_once.CALLS, tokens=at_once.TOKENS, **pace)
    async with (
        bed.tenant("workers-paced", script, "--places", "0") as tenant,
        worker_pod(bed, runs, processes) as worker,
    ):
        await tenant.chain([AGENT])
        ideal = at_once.ideal_seconds(await tenant.asked(at_once.CALLS))
        await tenant.create_many("heat", runs)
        await tenant.settled("heat", runs)
        machine, cpu, started = machine_time(), tree_cpu_seconds(worker.pid), now()
        await tenant.create_many("run", runs)
        rows = await tenant.settled("run", runs)
        busy, used = machine_time().share_since(machine), tree_cpu_seconds(worker.pid) - cpu
    wall = max(row["finished_at"] for row in rows).timestamp() - started
    name = f"{runs} at once, {processes} processes"
    return [
        Figure(f"{name}: wall / ideal", wall / ideal, "times", "at most 1.2 on two free cores"),
        Figure(f"{name}: CPU per model call", 1000 * used / (runs * at_once.CALLS), "ms/call"),
        Figure(f"{name}: CPU / ideal", used / ideal, "cores"),
        Figure(f"{name}: machine busy", busy, "of all cores"),
    ]


async def _after_a_kill(bed: Bed, runs: int) -> list[Figure]:
    script = loop_script(1, tokens=TOKENS)
    script["agents"][AGENT][0]["gate"] = "door"
    async with bed.tenant("recovery", script, "--places", "0") as tenant, worker_pod(bed, runs) as victim:
        door = f"{tenant.base_url.removesuffix('/v1')}/control/gates/door"
        async with bed.http.post(door, raise_for_status=True):
            await tenant.chain([AGENT])
        async with bed.http.delete(door, raise_for_status=True):
            await tenant.create_many("run", runs)
        began = datetime.fromtimestamp(0, UTC)
        await _under_way(tenant, runs, 1, began)
        async with worker_pod(bed, runs):
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
