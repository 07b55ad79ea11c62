"""Precedents: the second run of a workload is told how the first ended, and cites it nowhere."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from e2e.scenarios.checkout import ALERT, ANSWERS, ON_CALL
from e2e.scenarios.checkout import CONFIGURATION as CHAIN
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = f"{CHAIN.rstrip()}\n  precedents: {{use: Hint}}\n"
RIGHTS = (
    {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},
    {"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]},
    {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/timeline"], "verbs": ["get"]},
)


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await scene.let(*RIGHTS)
    async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
        await scene.alert("first", ALERT, author=ON_CALL)
        first = await scene.run("first")
        about = {"name": await scene.investigation("first")}
        await scene.put("Review", "ritas", {"investigationRef": about, "verdict": "Wrong", "author": ON_CALL})
        await scene.reason("Review", "ritas", "Accepted", "Stored")
        await scene.alert("second", ALERT, author=ON_CALL)
        second = await scene.run("second")
        told = await scene.pool.fetchval(
            "SELECT precedents FROM investigation_input WHERE investigation = $1", second.id
        )
        yield {"precedents": Played("second", replace(second, about=first), more={"precedents.yaml": as_yaml(told)})}


async def test_a_run_is_told_of_a_refuted_one_as_history(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["precedents"].run
    sent = run.execution("0-collector").model_calls[0].sent
    assert "REFUTED, its conclusion was wrong" in sent[1].content and "They are no evidence" in sent[1].content
    finding = run.record.outcome.finding if run.record.outcome else None
    assert finding is not None and all(one.tool == "kubernetes.get_logs" for one in finding.claims[0].citations)
