"""Counts the API writes of one investigation, with a worker whose steps are one moment each for the publisher."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from integration.controllers.desk import Desk, eventually
from integration.store.build import stage, writer
from tarsy.record.run import StageKind, StageOutcome, State
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import ClaimedRun
from tarsy.store.runs.lifecycle import NewRun, Runs

MOST = 8


class Worker:
    """Claims a run in the moment of its acceptance; the publisher sees the record between the moments only."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self._desk = desk
        self._moment = asyncio.Lock()
        self.claimed: asyncio.Future[ClaimedRun] = asyncio.get_running_loop().create_future()
        self._seen = 0
        accept, unpublished = Runs.accept, Reads.unpublished

        async def accept_and_claim(runs: Runs, run: NewRun) -> bool:
            async with self._moment:
                accepted = await accept(runs, run)
                if accepted:
                    claimed = await desk.claim()
                    await writer(desk.pool, claimed.id).begin_stage(stage(claimed.id))
                    self.claimed.set_result(claimed)
            return accepted

        async def unpublished_between_moments(reads: Reads, *arguments: Any) -> Any:
            async with self._moment:
                found = await unpublished(reads, *arguments)
                self._seen += len(found)
                return found

        monkeypatch.setattr(Runs, "accept", accept_and_claim)
        monkeypatch.setattr(Reads, "unpublished", unpublished_between_moments)

    async def ends(self, index: int, begins: StageKind) -> None:
        """Ends a stage and begins the next one in the same moment, then waits until the publisher has seen it."""
        claimed = await self.claimed
        write = writer(self._desk.pool, claimed.id)
        async with self._moment:
            await write.finish_stage(StageOutcome(stage(claimed.id, index).id, State.COMPLETED))
            await write.begin_stage(replace(stage(claimed.id, index + 1), kind=begins))
            before = self._seen

        async def seen() -> bool:
            return self._seen > before

        await eventually(seen)


async def test_investigation_of_two_stages_and_a_summary_is_eight_writes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.configure(skip=("Chain",))
    agents = [{"name": "one"}]
    stages = [{"name": "stage-0", "agents": agents}, {"name": "stage-1", "agents": agents}]
    await desk.put("Chain", "one", {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": stages})
    worker = Worker(desk, monkeypatch)
    async with desk.controller() as writes:
        for kind in ("LLMProvider", "Agent", "Chain"):
            await desk.reason(kind, "one", "Ready", "True", "Usable")
            await desk.still(kind, "one", 0.3)
        writes.clear()
        await desk.alert()
        name = (await desk.queued())["metadata"]["name"]
        await eventually(lambda: _reports(desk, name, currentStage="stage-0", progress="0/3"))
        await worker.ends(0, StageKind.INVESTIGATION)
        await eventually(lambda: _reports(desk, name, currentStage="stage-1", progress="1/3"))
        await worker.ends(1, StageKind.EXECUTIVE_SUMMARY)
        await desk.finish(await worker.claimed)
        await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        await desk.told(("Investigation", "Succeeded"))
        await desk.still("Investigation", name)
        await desk.still("Alert", "crash", 0.1)
    assert dict(writes) == {
        "POST investigations": 1,
        "PATCH alerts": 1,  # the mark of an accepted Alert
        "PATCH alerts/status": 2,
        "PATCH investigations/status": 3,
        "POST events": 1,
    }
    assert sum(writes.values()) <= MOST


async def _reports(desk: Desk, name: str, **wanted: str) -> bool:
    status = (await desk.get("Investigation", name)).get("status") or {}
    assert {field: status.get(field) for field in wanted} == wanted
    return True
