"""From `kubectl apply` of an alert to the first request the model sees, on an idle stack, one alert after the other.

Where the time goes is read from the record: its timestamps are Postgres' own, on the same clock.
"""

import asyncio
import json
import shutil
import statistics
from dataclasses import dataclass

from tests.bench.bed import Bed, Tenant, loop_script, now
from tests.bench.figures import Figure, Result, spread

AIM = "p95 under 300 ms"
MARKS = """
    SELECT i.accepted_at AS "alert seen, investigation made, plan accepted", i.started_at AS "claimed by a worker",
        e.started_at AS "execution begun", c.started_at AS "tools opened, call recorded"
    FROM investigation i JOIN stage s ON s.investigation = i.id JOIN execution e ON e.stage = s.id
    JOIN llm_interaction c ON c.execution = e.id WHERE i.id = $1 ORDER BY c.started_at LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Milliseconds from the start to the first model request, those of the creating itself, and of each step."""

    to_request: float
    creating: float
    steps: dict[str, float]

    @property
    def rest(self) -> float:
        """From the answer of the API server, or the end of kubectl, to the request."""
        return self.to_request - self.creating


async def run(bed: Bed, quick: bool) -> Result:
    """Measures with kubectl, where there is one, and with the bare API call."""
    count = 3 if quick else 40
    kubectl = shutil.which("kubectl")
    figures: list[Figure] = []
    async with bed.tenant("first-request", loop_script(1, tokens=5)) as tenant:
        await tenant.chain(["investigator"])
        series = await _series(tenant, "raw", count, None)
        figures += spread("API create sent -> first model request", [one.to_request for one in series], "ms", AIM)
        figures += spread("API create answered -> first model request", [one.rest for one in series], "ms")
        for step in series[0].steps:
            value = statistics.median(one.steps[step] for one in series)
            figures.append(Figure(f"  until {step}, p50", value, "ms"))
        if kubectl:
            await _series(tenant, "kubectl-first", 1, kubectl)  # fills kubectl's discovery cache
            series = await _series(tenant, "kubectl", count, kubectl)
            figures += spread("kubectl apply started -> first model request", [s.to_request for s in series], "ms", AIM)
            figures += spread("kubectl apply itself, start to exit", [one.creating for one in series], "ms")
            figures += spread("kubectl apply exited -> first model request", [one.rest for one in series], "ms")
    how = (
        f"{count} alerts one after the other, each after the last has settled; operator idle before. Clock: before the "
        "request or the kubectl process starts, until the scripted model has read the request."
    )
    return Result(how if kubectl else f"{how} There is no kubectl here.", figures)


async def _series(tenant: Tenant, prefix: str, count: int, kubectl: str | None) -> list[_Measured]:
    found = []
    for number in range(count):
        name = f"{prefix}-{number}-"
        await tenant.forget()
        started = now()
        if kubectl:
            await _apply(kubectl, tenant, name + "0")
        else:
            await tenant.create(name + "0")
        created = now()
        request = (await tenant.asked())[0]
        row = (await tenant.settled(name, 1))[0]
        marks = [(label, at.timestamp()) for label, at in (await tenant.bed.pool.fetchrow(MARKS, row["id"])).items()]
        marks.append(("request read by the model", request["received"]))
        before = [started, *(at for _, at in marks)]
        steps = {label: (at - earlier) * 1000 for (label, at), earlier in zip(marks, before, strict=False)}
        found.append(_Measured((request["received"] - started) * 1000, (created - started) * 1000, steps))
        await asyncio.sleep(0.2)  # what the operator does after the last status is no part of the next measurement
    return found


async def _apply(kubectl: str, tenant: Tenant, name: str) -> None:
    stack = tenant.bed.stack
    arguments = (
        "--kubeconfig",
        str(stack.kubeconfig),
        "--cache-dir",
        str(stack.folder / "kubectl"),
        "apply",
        "-f",
        "-",
    )
    process = await asyncio.create_subprocess_exec(
        kubectl, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, cwd=stack.folder
    )
    await process.communicate(json.dumps(tenant.alert(name)).encode())
    if process.returncode:
        raise RuntimeError(f"kubectl apply ended with {process.returncode}")
