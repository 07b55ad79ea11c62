"""How long evidence of a large namespace takes to compute, and how much memory its objects are."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import orjson
from tests.bench.figures import Figure, Result

from tarsy.evidence.report import find_changes, find_faults
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.topology import Topology
from unit.evidence.objects import (
    LISTED,
    NAMESPACE,
    NOW,
    Obj,
    ended,
    event,
    made,
    node,
    pod,
    service,
    status_of,
    template,
)
from unit.evidence.objects import workload as workload_of

_TARGET = ObjectKey("Deployment", NAMESPACE, "d-0")
_PODS_EACH = 50


def _namespace(pods: int) -> list[Obj]:
    """Deployments of 50 pods each with a Service and two policies over all, every tenth pod crashing, with Events."""
    objects = [node(f"n-{number}") for number in range(100)]
    objects += [made("NetworkPolicy", f"p-{number}", spec={"podSelector": {}, "ingress": [{}]}) for number in range(2)]
    for place in range(max(1, pods // _PODS_EACH)):
        marks = {"app": f"d-{place}"}
        of = template(labels=marks)
        owner = workload_of(name=f"d-{place}", of=of, replicas=_PODS_EACH)
        revision = made("ReplicaSet", f"d-{place}-1", owner=owner, spec={"template": of})
        objects += [owner, revision, service(f"s-{place}", selector=marks)]
        for number in range(min(pods, _PODS_EACH)):
            bad = (status_of(lastState=ended(1, minutes=number), restartCount=2),) if number % 10 == 0 else ()
            one = pod(f"d-{place}-{number}", *bad, of=of, owner=revision, node=f"n-{number}")
            objects.append(one)
            if bad:
                objects.append(
                    event(one, "BackOff", "Back-off restarting failed container", name=f"e-{place}-{number}")
                )
    return objects


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return round(time.process_time() - began, 2)


def _measure(quick: bool) -> Result:
    figures = []
    for pods in (100, 1_000) if quick else (1_000, 5_000, 10_000):
        text = orjson.dumps(_namespace(pods))
        gc.collect()
        tracemalloc.start()
        objects = orjson.loads(text)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

        def read(objects: list[Obj] = objects) -> Topology:
            return Topology(Snapshot(NOW, objects, LISTED))

        found = read()
        aim = "< 10" if pods == 10_000 else ""
        figures += [
            Figure(f"{pods:,} pods: topology", _seconds(read), "s"),
            Figure(f"{pods:,} pods: rules", _seconds(lambda found=found: find_faults(found)), "s"),
            Figure(
                f"{pods:,} pods: changes of a Deployment, rules included",
                _seconds(lambda found=found: find_changes(found, NAMESPACE, _TARGET)),
                "s",
                aim,
            ),
            Figure(
                f"{pods:,} pods: changes of the namespace, rules included",
                _seconds(lambda found=found: find_changes(found, NAMESPACE)),
                "s",
                aim,
            ),
            Figure(f"{pods:,} pods: {len(objects):,} objects in memory", round(memory / 2**20), "MiB"),
        ]
    return Result("objects of a synthetic namespace, seconds of CPU; small pods, without field managers", figures)


async def run(quick: bool) -> Result:
    """Measures in a thread of its own; `quick` takes small namespaces."""
    return await asyncio.to_thread(_measure, quick)
