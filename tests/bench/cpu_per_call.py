"""CPU of the operator per model call, beside a bare loop of the same SDKs in the same run.

Both run the same conversation: the bare loop gets the messages of the operator's own first request, the same tools and
the same model. The operator's figure is all of its process: watching, status, record, heartbeat, everything.
"""

import asyncio
import statistics

from tests.bench.bare import conversation, run_bare
from tests.bench.bed import Bed, Tenant, loop_script, now
from tests.bench.figures import Figure, Result
from tests.bench.processes import cpu_seconds

CALLS, TOKENS = 10, 200
AIM = "at most 1.3"


async def run(bed: Bed, quick: bool) -> Result:
    """Alternates rounds of the operator and of the bare loop, and takes medians."""
    rounds, loops, idle_seconds = (1, 2, 2.0) if quick else (5, 10, 10.0)
    ours: list[float] = []
    ours_net: list[float] = []
    bare: dict[str, list[float]] = {"lean": [], "plain": []}
    async with bed.tenant("cpu-per-call", loop_script(CALLS, tokens=TOKENS)) as tenant:
        await tenant.chain(["investigator"])
        messages = await conversation(tenant)
        idle = await _idle(tenant, idle_seconds)
        for number in range(rounds):
            started, before = now(), cpu_seconds(tenant.operator.pid)
            await tenant.one_by_one(f"round-{number}", loops)
            used, wall = cpu_seconds(tenant.operator.pid) - before, now() - started
            ours.append(used * 1000 / (loops * CALLS))
            ours_net.append((used - idle * wall) * 1000 / (loops * CALLS))
            for style, series in bare.items():
                found = await run_bare(tenant, messages, loops=loops, style=style)
                series.append(found.cpu_seconds * 1000 / found.calls)
            await tenant.forget()
    mine, net = statistics.median(ours), statistics.median(ours_net)
    lean, plain = statistics.median(bare["lean"]), statistics.median(bare["plain"])
    how = (
        f"{rounds} alternated rounds of {loops} loops one after the other, median of rounds. A loop is {CALLS} model "
        f"calls of {TOKENS} streamed tokens, {CALLS - 1} of them with one tool call over streamable HTTP; no delay. "
        "CPU is user+system of all threads of the process (operator: /proc/PID/stat), model, tool server, Postgres and "
        "API server not counted. Net: less what the idle operator uses in the same time. Plain is ChatOpenAI with "
        "all defaults and chunks summed; lean has no timer around each chunk and keeps pieces in lists."
    )
    return Result(
        how,
        [
            Figure("operator", mine, "ms/call", detail=ours),
            Figure("operator, net of idle", net, "ms/call", detail=ours_net),
            Figure("bare loop, lean", lean, "ms/call", detail=bare["lean"]),
            Figure("bare loop, plain", plain, "ms/call", detail=bare["plain"]),
            Figure("operator / lean bare loop", mine / lean, "times", AIM),
            Figure("operator net / lean bare loop", net / lean, "times", AIM),
            Figure("operator / plain bare loop", mine / plain, "times", AIM),
            Figure("idle operator", idle * 1000, "ms/s"),
        ],
    )


async def _idle(tenant: Tenant, seconds: float) -> float:
    """CPU seconds a second of the operator with nothing to do."""
    await asyncio.sleep(1.0)
    before = cpu_seconds(tenant.operator.pid)
    await asyncio.sleep(seconds)
    return (cpu_seconds(tenant.operator.pid) - before) / seconds
