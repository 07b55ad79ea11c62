"""The history recorder in a process of its own: starts over the objects of a namespace, then takes a storm of changes.

Prints one line of JSON for each of both.
"""

import asyncio
import json
import resource
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from tarsy.controllers.history.recorder import HistoryRecorder, HistoryWatches
from tarsy.evidence.history.digests import Digests
from tarsy.evidence.history.kinds import RECORDED_KINDS
from tarsy.kube.client import KubeClient
from tarsy.kube.lease import LeaderElection
from tarsy.masking import default_masker
from tarsy.observe.metric_table import HISTORY_CHANGES, HISTORY_SHED
from tarsy.observe.metrics import Metrics
from tarsy.store.database import open_pool
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.history.retention import HistoryRetention

KINDS = ("ConfigMap", "Deployment", "Pod", "Service")
TICK_SECONDS = 0.001
TYPES = ("Config", "Rollout", "Restart", "Network")


async def main(kubeconfig: Path, database: str, namespace: str, storm_seconds: int, rate: int) -> None:
    """Runs both parts."""
    pool = await open_pool(database, min_size=1, max_size=4, application="tarsy bench")
    async with await KubeClient.load(kubeconfig) as client:
        metrics = Metrics()
        recorder = HistoryRecorder(
            client,
            ObjectHistory(pool),
            HistoryRetention(pool),
            Digests(b"k" * 32),
            metrics,
            HistoryWatches((namespace,), tuple(kind for kind in RECORDED_KINDS if kind.kind in KINDS)),
        )
        election = LeaderElection(client, namespace, "any", "any")
        election.passive.clear()
        election.active.set()
        default_masker()  # the operator has it anyway
        before, began, cpu = _resident(), time.monotonic(), time.process_time()
        pauses: list[tuple[float, float]] = []
        ticking = asyncio.create_task(_tick(pauses))
        work = asyncio.create_task(recorder.run(election))
        await _watching(pool)
        seconds = time.monotonic() - began
        heads = await pool.fetchval("SELECT count(*) FROM object_head")
        start = {"seconds": seconds, "cpu": time.process_time() - cpu, "mebibytes": _peak() - before, "objects": heads}
        _print({**start, **_longest(pauses)})
        pauses.clear()
        _print({**await _storm(recorder, metrics, storm_seconds, rate), **_longest(pauses)})
        for task in (work, ticking):
            task.cancel()
        await asyncio.wait({work, ticking}, timeout=10)
    pool.terminate()


async def _storm(recorder: HistoryRecorder, metrics: Metrics, seconds: int, rate: int) -> dict[str, Any]:
    """Hands so many changes a second to the recorder as its watches do."""
    recording = recorder._recording
    if recording is None:
        raise RuntimeError("nothing is recorded")
    places = [place for place in recording._places if place.known]
    known = {place: list(place.known)[:500] for place in places}
    started = time.monotonic()
    for number in range(seconds * rate):
        place = places[number % len(places)]
        uid = known[place][number // len(places) % len(known[place])]
        metadata = {"name": place.known[uid].name if uid in place.known else "x", "uid": uid}
        metadata["resourceVersion"] = str(10_000_000 + number)
        event = {"type": "MODIFIED", "object": {"metadata": metadata, "spec": {"number": number}}}
        if place.kind.kind == "ConfigMap":
            event = {"type": "MODIFIED", "object": {"metadata": metadata, "data": {"key": str(number)}}}
        if place.kind.kind == "Pod":
            ended = {"finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "exitCode": 1, "reason": "Error"}
            state = {"name": "app", "restartCount": number, "lastState": {"terminated": ended}}
            event = {"type": "MODIFIED", "object": {"metadata": metadata, "status": {"containerStatuses": [state]}}}
        recording.changed(place, "MODIFIED", json.dumps(event).encode())
        ahead = started + (number + 1) / rate - time.monotonic()
        if number % 20 == 0:
            await asyncio.sleep(max(0.0, ahead))
    shed = {kind: metrics.value(HISTORY_SHED, type=kind) for kind in TYPES}
    recorded = sum(metrics.value(HISTORY_CHANGES, type=kind) for kind in (*TYPES, "Scale", "Delete"))
    return {"given": seconds * rate, "recorded": recorded, "shed": {kind: n for kind, n in shed.items() if n}}


async def _watching(pool: asyncpg.Pool) -> None:
    while True:
        states = Counter(row["state"] for row in await pool.fetch("SELECT state FROM object_watch"))
        if states["Watching"] == len(KINDS):
            return
        await asyncio.sleep(0.1)


async def _tick(pauses: list[tuple[float, float]]) -> None:
    """Notes for each millisecond that is waited for how much later it ended, and the loop's own CPU in it."""
    while True:
        began, cpu = time.perf_counter(), time.thread_time()
        await asyncio.sleep(TICK_SECONDS)
        pauses.append((time.perf_counter() - began - TICK_SECONDS, time.thread_time() - cpu))


def _longest(pauses: list[tuple[float, float]]) -> dict[str, float]:
    waits, busy = sorted(one for one, _ in pauses), sorted(one for _, one in pauses)
    place = int(0.99 * len(pauses))
    return {"pause_p99": 1000 * waits[place], "busy_p99": 1000 * busy[place], "busy_longest": 1000 * busy[-1]}


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    """Returns the most memory of this program; getrusage tells that of the process which started it, if it is more."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _print(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
