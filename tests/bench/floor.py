"""The operator beside the floor: a bare loop by hand that persists the same, in the same run on the same machine.

The ratios are the figures to look at. The operator's CPU is all of its process: watching, status, live stream, record,
heartbeat. Postgres' is all of its processes, autovacuum included. The same is run once more with the agents in a worker
of their own, which shows what the agents cost apart from the controller.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.bench.bare import FLOOR, conversation, run_bare
from tests.bench.bed import Bed, Tenant, loop_script, now
from tests.bench.figures import Figure, Result
from tests.bench.processes import cpu_seconds, tree_cpu_seconds
from tests.bench.worker_pod import worker_pod

CALLS, TOKENS = 10, 200
POSTGRES_AIM = "at most 2.5"
FIRST_MS, PER_MS = 300.0, 5.0


@dataclass(frozen=True, slots=True)
class _Setting:
    """How many loops run side by side, at what pace of the model, and the aims of the ratios."""

    name: str
    tenant: str
    at_once: int
    rounds: int
    pace: dict[str, float]
    cpu_aim: str
    wall_aim: str = ""


async def run(bed: Bed, quick: bool) -> Result:
    """Alternates rounds of the operator and of the bare loop; medians of the rounds."""
    paced = {"first_ms": FIRST_MS, "per_ms": PER_MS}
    settings = (
        _Setting("50 at once, undelayed", "undelayed", 4 if quick else 50, 1 if quick else 3, {}, "at most 1.3"),
        _Setting(
            "100 at once, paced", "paced", 4 if quick else 100, 1 if quick else 2, paced, "at most 1.1", "at most 1.05"
        ),
    )
    figures: list[Figure] = []
    for setting in settings:
        figures += await _measured(bed, setting)
        figures += await _with_worker(bed, setting)
    how = (
        f"One stage, one agent, {CALLS} model calls of {TOKENS} streamed tokens, {CALLS - 1} of them with one tool "
        f"call over streamable HTTP. Paced: {FIRST_MS:g} ms to the first token and {PER_MS:g} ms a token. The bare "
        "loop (bare_loop.py) streams, calls tools and persists requests, answers, results and events with two commits "
        "a call. CPU is user+system: operator and bare loop of their process, Postgres of all its processes. Median "
        "of alternated rounds. Wall: first create sent to the last end in the record; of the bare loop, of the round. "
        "Worker: CPU of a worker with one process that holds all runs; controller: of the operator beside it, which "
        "holds none."
    )
    return Result(how, figures, ("operator", "bare loop"))


@dataclass(frozen=True, slots=True)
class _Round:
    """CPU a model call in ms, of the process and of Postgres; wall seconds of the round.

    `controller_ms` is the operator's, where a worker beside it runs the agents.
    """

    cpu_ms: float
    postgres_ms: float
    wall: float
    controller_ms: float = 0.0


async def _measured(bed: Bed, setting: _Setting) -> list[Figure]:
    script = loop_script(CALLS, tokens=TOKENS, **setting.pace)
    count = setting.at_once
    limits = ("--places", str(count), "--global-limit", str(count))
    ours: list[_Round] = []
    bare: list[_Round] = []
    async with bed.tenant(f"floor-{setting.tenant}", script, *limits) as tenant:
        await tenant.chain(["investigator"])
        messages = await conversation(tenant)
        for number in range(setting.rounds):
            ours.append(await _operator_round(tenant, f"round-{number}", count))
            bare.append(await _bare_round(tenant, messages, count))
            await tenant.forget()
    return [
        _beside(f"{setting.name}: CPU a model call", "ms", ours, bare, lambda r: r.cpu_ms, setting.cpu_aim),
        _beside(f"{setting.name}: Postgres, CPU a model call", "ms", ours, bare, lambda r: r.postgres_ms, POSTGRES_AIM),
        _beside(f"{setting.name}: wall", "s", ours, bare, lambda r: r.wall, setting.wall_aim),
    ]


async def _with_worker(bed: Bed, setting: _Setting) -> list[Figure]:
    """Alternates rounds of a worker beside an operator without places, and of the bare loop."""
    script = loop_script(CALLS, tokens=TOKENS, **setting.pace)
    count = setting.at_once
    ours: list[_Round] = []
    bare: list[_Round] = []
    async with (
        bed.tenant(f"floor-{setting.tenant}-worker", script, "--places", "0") as tenant,
        worker_pod(bed, count) as worker,
    ):
        await tenant.chain(["investigator"])
        messages = await conversation(tenant)
        for number in range(setting.rounds):
            ours.append(await _operator_round(tenant, f"round-{number}", count, worker.pid))
            bare.append(await _bare_round(tenant, messages, count))
            await tenant.forget()
    name = f"{setting.name}: CPU a model call"
    return [
        _beside(f"{name}, worker", "ms", ours, bare, lambda r: r.cpu_ms, ""),
        _beside(f"{name}, controller", "ms", ours, bare, lambda r: r.controller_ms, "", lambda r: r.cpu_ms),
    ]


async def _operator_round(tenant: Tenant, name: str, count: int, worker: int | None = None) -> _Round:
    """Runs a round of the operator, or of the worker with that process id beside it."""
    operator, postgres = tenant.operator.pid, postmaster(tenant)
    process = operator if worker is None else worker
    cpu, database, started = cpu_seconds(process), tree_cpu_seconds(postgres), now()
    controller = cpu_seconds(operator)
    await tenant.create_many(name, count)
    rows = await tenant.settled(name, count)
    wall = max(row["finished_at"] for row in rows).timestamp() - started
    calls = count * CALLS / 1000
    return _Round(
        (cpu_seconds(process) - cpu) / calls,
        (tree_cpu_seconds(postgres) - database) / calls,
        wall,
        0.0 if worker is None else (cpu_seconds(operator) - controller) / calls,
    )


async def _bare_round(tenant: Tenant, messages: list[dict[str, Any]], count: int) -> _Round:
    database = tree_cpu_seconds(postmaster(tenant))
    found = await run_bare(tenant, messages, loops=count, at_once=count, style=FLOOR)
    used = tree_cpu_seconds(postmaster(tenant)) - database
    # The process ran one round more, to warm up, which its own figures leave out.
    return _Round(found.cpu_seconds * 1000 / found.calls, used * 1000 / found.calls / 2, found.wall_seconds)


def postmaster(tenant: Tenant) -> int:
    """Process id of the stack's Postgres. Raises RuntimeError: it is not of this machine."""
    for path in (tenant.bed.stack.folder / "postgres").rglob("postmaster.pid"):
        return int(path.read_text().split()[0])
    raise RuntimeError("Postgres is not a process of this stack: unset TARSY_DATABASE_URL")


def _beside(
    name: str,
    unit: str,
    ours: list[_Round],
    bare: list[_Round],
    of: Callable[[_Round], float],
    aim: str,
    of_bare: Callable[[_Round], float] | None = None,
) -> Figure:
    """Compares the medians of a figure; `of_bare` reads it of the bare loop's rounds where that is another field."""
    both = {"operator": [of(r) for r in ours], "bare loop": [(of_bare or of)(r) for r in bare]}
    mine, other = (statistics.median(series) for series in both.values())
    return Figure(name, mine, unit, aim, both, beside=other)
