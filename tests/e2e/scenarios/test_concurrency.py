"""Four alerts where two runs may be in progress: never more than two are, and none hears of another."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise

from e2e.scenarios.brain import Turnstile, calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.record import Run
from e2e.scenarios.scene import WAIT_SECONDS, Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: scripted
  executiveSummary: {enabled: false}
  stages:
  - {name: collect, agents: [{name: collector}]}
"""
ALERTS = ("north", "east", "south", "west")


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    door = Turnstile()
    answers = {
        "collector": [
            says("I look.", calls("kubernetes.list_pods", namespace="shop"), wait=door),
            says("The pod checkout-5d4f crashes." + finding("checkout-5d4f crashes.", "Low")),
        ]
    }

    async def admitted(_: str) -> None:
        door.admit()

    async with scene.product(CONFIGURATION, answers, at_once=2):
        for alert in ALERTS:
            await scene.alert(alert, f"Checkout answers 502 in region {alert}.")
        async with asyncio.timeout(WAIT_SECONDS):
            await door.arrived.acquire()
            await door.arrived.acquire()
            for waiting in (2, 1, 0):
                await scene.states(running=2, pending=waiting)
                door.admit()
                if waiting:
                    await door.arrived.acquire()
            door.admit()
        yield {f"concurrency-{alert}": Played(alert, await scene.run(alert), admitted) for alert in ALERTS}


async def test_no_more_runs_than_allowed_and_none_hears_of_another(scene: Scene) -> None:
    runs = {one.alert: one.run for one in (await check_goldens(played, scene)).values()}
    for alert, run in runs.items():
        said = "".join(message.content for call in run.executions[0].model_calls for message in call.sent)
        assert [other for other in ALERTS if f"region {other}" in said] == [alert]
    assert _most_at_once(list(runs.values())) == 2


def _most_at_once(runs: list[Run]) -> int:
    """How many were in progress at the same time, at most, by the record."""
    changes = sorted(change for run in runs for change in zip(run.seconds, (1, -1), strict=True))
    counts = [0]
    for _, change in changes:
        counts.append(counts[-1] + change)
    assert all(abs(after - before) == 1 for before, after in pairwise(counts))
    return max(counts)
