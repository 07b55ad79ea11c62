"""Many investigations at once with the pace of a real model: wall time over the scripted ideal, memory, CPU.

The ideal is what one loop takes if everything but the model costs nothing; it is reckoned from the script and the
number of chunks that the model says it sent. The wall time starts before the first alert is created. Where the CPU is
the limit the ideal cannot be reached by anybody, so as many bare loops of the same SDKs run in one process as well.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.bench.bare import conversation, run_bare
from tests.bench.bed import Bed, loop_script, now
from tests.bench.figures import Figure, Result
from tests.bench.processes import cpu_seconds, machine_time, memory

CALLS, TOKENS, FIRST_MS, PER_MS = 5, 200, 300.0, 5.0
AIM = "under 1.05 where the CPU is not the limit"
LIMIT = 0.9


async def run(bed: Bed, quick: bool) -> Result:
    """Numbers that the CPU can do, then a hundred."""
    figures: list[Figure] = []
    for count in (1, 2) if quick else (3, 10, 100):
        figures += await _at_once(bed, count)
    how = (
        f"One stage, one agent, {CALLS} model calls of {TOKENS} tokens ({CALLS - 1} with one tool call), {FIRST_MS:g} "
        f"ms to the first token and {PER_MS:g} ms a token; alerts created side by side. Wall: first create sent to the "
        "last end in the record. The CPU was the limit where the operator used over "
        f"{LIMIT:.0%} of a core (it is one Python process) or the machine over {LIMIT:.0%} of all cores; model, tool "
        "server, Postgres and API server are on the same machine."
    )
    return Result(how, figures)


def ideal_seconds(calls: Iterable[Mapping[str, Any]]) -> float:
    """Seconds that one loop takes if everything but the model costs nothing, from the model's journal of its calls."""
    return sum(FIRST_MS + PER_MS * (call["chunks"] - 1) for call in calls) / 1000


async def _at_once(bed: Bed, count: int) -> list[Figure]:
    script = loop_script(CALLS, tokens=TOKENS, first_ms=FIRST_MS, per_ms=PER_MS)
    limits = ("--places", str(count), "--global-limit", str(count))
    async with bed.tenant(f"at-once-{count}", script, *limits) as tenant:
        await tenant.chain(["investigator"])
        calls = await tenant.asked(CALLS)
        ideal = ideal_seconds(calls)
        messages = await conversation(tenant)
        await tenant.forget()
        pid = tenant.operator.pid
        resident, _ = memory(pid)
        started, machine, cpu = now(), machine_time(), cpu_seconds(pid)
        await tenant.create_many("run", count)
        created = now()
        rows = await tenant.settled("run", count)
        used, busy, (_, highest) = cpu_seconds(pid) - cpu, machine_time().share_since(machine), memory(pid)
        requests = await tenant.asked(count * CALLS)
        bare = await run_bare(tenant, messages, loops=count, at_once=count)
    wall = max(row["finished_at"] for row in rows).timestamp() - started
    runs = sorted((row["finished_at"] - row["started_at"]).total_seconds() for row in rows)
    limited = used / wall > LIMIT or busy > LIMIT
    detail = {
        "started": datetime.fromtimestamp(started, UTC).isoformat(),
        "creating_seconds": created - started,
        "run_seconds": runs,
        "requests": len(requests),
        "model_seconds": [round(r["ended"] - r["received"], 3) for r in requests if r["ended"]],
    }
    return [
        Figure(f"{count} at once: wall / ideal", wall / ideal, "times", AIM, detail),
        Figure(f"{count} at once: wall", wall, "s"),
        Figure(f"{count} at once: ideal", ideal, "s"),
        Figure(f"{count} at once: median run / ideal", runs[len(runs) // 2] / ideal, "times"),
        Figure(f"{count} at once: bare loops, wall / ideal", bare.wall_seconds / ideal, "times"),
        Figure(f"{count} at once: operator's CPU", used, "s"),
        Figure(f"{count} at once: operator's CPU per model call", used * 1000 / (count * CALLS), "ms/call"),
        Figure(f"{count} at once: bare loops' CPU per model call", bare.cpu_seconds * 1000 / bare.calls, "ms/call"),
        Figure(f"{count} at once: operator's share of one core", used / wall, "cores"),
        Figure(f"{count} at once: machine busy", busy, "of all cores"),
        Figure(f"{count} at once: CPU was the limit", float(limited), "1: yes"),
        Figure(f"{count} at once: resident memory before", resident, "MiB"),
        Figure(f"{count} at once: resident memory, peak", highest, "MiB"),
    ]
