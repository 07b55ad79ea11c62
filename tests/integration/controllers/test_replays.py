"""Acceptance of replays: the rights on what is recorded, and records that cannot be replayed."""

from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from integration.controllers.test_authors import ALICE, grant, let_read, refused
from tarsy.record.run import RunOutcome, State

OF_RUN: dict[str, Any] = {"replay": {"of": {"name": "run"}}}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.runs.acceptance.RECHECK_SECONDS", 0.3)


async def accepted(desk: Desk, name: str) -> UUID:
    found = UUID((await desk.get("Investigation", name))["metadata"]["uid"])

    async def look() -> bool:
        return await desk.reads.record(found) is not None

    await eventually(look)
    return found


async def a_finished_run(desk: Desk) -> None:
    await desk.configure()
    alert = {"alertType": "PodCrash", "data": "it crashed"}
    await desk.put("Investigation", "run", {"alert": alert})
    await accepted(desk, "run")


async def finish(desk: Desk) -> None:
    claimed = await desk.claim()
    await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED))


async def test_who_may_not_read_the_trace_may_not_replay_it(desk: Desk) -> None:
    async with desk.controller():
        await a_finished_run(desk)
        await finish(desk)
        await grant(desk, "chains", names=["one"])
        await desk.put("Investigation", "theft", {**OF_RUN, "author": ALICE})
        said = await refused(desk, "Investigation", "theft")
        assert "alice may not read the trace of Investigation" in said and "tarsy-tracer" in said
        await let_read(desk, "investigations/trace", "run", group="record.tarsy.dev")
        await accepted(desk, "theft")
        claimed = await desk.claim()
        assert claimed.plan.replay is not None and claimed.alert_data == "it crashed"


async def test_who_may_not_use_a_provider_may_not_bring_it(desk: Desk) -> None:
    async with desk.controller():
        await a_finished_run(desk)
        await finish(desk)
        await desk.put("LLMProvider", "other", {"type": "openai", "model": "m"})
        await grant(desk, "chains", names=["one"])
        await let_read(desk, "investigations/trace", "run", group="record.tarsy.dev")
        replay = {"of": {"name": "run"}, "overrides": {"llmProviderRef": {"name": "other"}}}
        await desk.put("Investigation", "what-if", {"replay": replay, "author": ALICE})
        assert "may not use LLMProvider" in await refused(desk, "Investigation", "what-if")
        await grant(desk, "llmproviders", names=["other"])
        await accepted(desk, "what-if")
        claimed = await desk.claim()
        assert {provider.ref.name for provider in claimed.plan.providers} == {"other"}


async def test_records_that_cannot_be_replayed_say_why(desk: Desk) -> None:
    async with desk.controller():
        await a_finished_run(desk)
        await desk.put("Investigation", "early", OF_RUN)
        await desk.reason("Investigation", "early", "Accepted", "False", "ReplaySourceRunning")
        await desk.put("Investigation", "none", {"replay": {"of": {"name": "nobody"}}})
        await desk.reason("Investigation", "none", "Accepted", "False", "ReplaySourceMissing")
        await desk.core("ConfigMap", "case", {"data": {"bad": "{}"}})
        await desk.put("Investigation", "bad", {"replay": {"cassetteRef": {"name": "case", "key": "bad"}}})
        said = await desk.reason("Investigation", "bad", "Accepted", "False", "CassetteInvalid")
        assert "line 1: cassette" in said
        await finish(desk)
        await accepted(desk, "early")
        await desk.put("Investigation", "again", {"replay": {"of": {"name": "early"}}})
        await desk.reason("Investigation", "again", "Accepted", "False", "ReplaySourceRunning")
        await finish(desk)
        await desk.reason("Investigation", "again", "Accepted", "False", "ReplayOfReplay")
