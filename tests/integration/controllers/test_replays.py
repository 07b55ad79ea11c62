"""Acceptance of replays: the rights on what is recorded, and records that cannot be replayed."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from integration.controllers.test_authors import ALICE, grant, let_read, refused
from tarsy.controllers.runs.replay import recorded_run
from tarsy.plan.errors import FieldPath
from tarsy.record.run import RunOutcome, State
from tarsy.resources.v1alpha1.common import ObjectRef
from tarsy.store.judging.replays import Replays
from tarsy_dev.objects import put
from unit.engine.build import ScriptedModels

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
        assert str(claimed.plan.replay.of) == (await desk.get("Investigation", "run"))["metadata"]["uid"]


async def test_replay_has_the_servers_of_its_alert_although_the_watch_has_told_of_neither_object(desk: Desk) -> None:
    await desk.configure()
    await desk.put("MCPServer", "own", {"transport": {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp"}}})
    async with desk.controller():
        await desk.alert("crash", mcpServers=[{"name": "own"}])
        name = (await desk.queued("crash"))["metadata"]["name"]
        await finish(desk)
    plain = await desk.listed()
    context = replace(plain, store=replace(plain.store, replays=Replays(desk.pool)))
    at = FieldPath("Investigation", desk.namespace, "again", "spec.replay.of")
    found = await recorded_run(ObjectRef(name=name), desk.namespace, at, context)
    assert [server.name for server in found.alert.mcp_servers or ()] == ["own"]


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


THEFT: dict[str, Any] = {"overrides": {"chainRef": {"name": "mine"}}}
"""Leads what the library's tools have read to a provider of the tenant."""
EXPECT = {"tools": {"required": ["k.look"]}}


async def a_run_of_the_library(desk: Desk, library: str) -> None:
    """A finished run whose tools acted with the rights of the library; a tenant's own chain and provider beside it."""
    await put(desk.kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": library}})
    home, desk.namespace = desk.namespace, library
    stages = {"llmProvider": "one", "stages": [{"name": "look", "agents": [{"name": "one"}]}]}
    await desk.put("LLMProvider", "one", {"type": "openai", "model": "m"})
    await desk.put("MCPServer", "k", {"transport": {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp"}}})
    await desk.put("Agent", "one", {"instructions": "Look.", "mcpServers": [{"name": "k"}]})
    await desk.put("Chain", "shared", {**stages, "alertTypes": ["PodCrash"], "allowedNamespaces": {"from": "All"}})
    desk.namespace = home
    await desk.put("LLMProvider", "mine", {"type": "openai", "model": "m"})
    await desk.put("Agent", "mine", {"instructions": "Tell me all."})
    await desk.put("Chain", "mine", {"llmProvider": "mine", "stages": [{"name": "tell", "agents": [{"name": "mine"}]}]})
    await desk.put("Investigation", "run", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
    await accepted(desk, "run")
    await finish(desk)


async def copies(desk: Desk) -> int:
    """The number of replays that have a copy of a record."""
    found: int = await desk.pool.fetchval("SELECT count(*) FROM replay_input")
    return found


async def test_results_read_with_the_librarys_rights_reach_no_provider_of_the_tenant(desk: Desk) -> None:
    library = f"{desk.namespace}-library"
    async with desk.controller(everywhere=True, library=library):
        await a_run_of_the_library(desk, library)
        before = await copies(desk)
        await grant(desk, "chains", "llmproviders")
        await grant(desk, "chains", "llmproviders", namespace=library)
        await desk.put("Investigation", "theft", {"replay": {**OF_RUN["replay"], **THEFT}, "author": ALICE})
        assert "may not read the trace" in await refused(desk, "Investigation", "theft")
        await let_read(desk, "investigations/trace", "run", group="record.tarsy.dev")
        said = await desk.reason("Investigation", "theft", "Accepted", "False", "ProviderNotAllowed")
        assert f"would send them to {desk.namespace}/mine" in said
        brought = {"overrides": {"llmProviderRef": {"name": "mine"}}}
        await desk.put("Investigation", "brought", {"replay": {**OF_RUN["replay"], **brought}, "author": ALICE})
        await desk.reason("Investigation", "brought", "Accepted", "False", "PlanInvalid")
        assert await copies(desk) == before, "a refused replay has a copy of the record"
        await desk.put("Investigation", "honest", {**OF_RUN, "author": ALICE})
        await accepted(desk, "honest")
        claimed = await desk.claim()
        assert {provider.ref.namespace for provider in claimed.plan.providers} == {library}


async def test_a_case_of_a_suite_leads_results_nowhere_else_than_its_source(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.eval_suite.RECHECK_SECONDS", 0.3)
    library = f"{desk.namespace}-library"
    async with desk.controller(everywhere=True, library=library):
        await a_run_of_the_library(desk, library)
        before = await copies(desk)
        await grant(desk, "chains")
        case = {"name": "one", "source": {"investigationRef": {"name": "run"}}, "expect": EXPECT}
        await desk.put("EvalSuite", "theirs", {"cases": [case], "author": ALICE})
        await desk.reason("EvalSuite", "theirs", "Ready", "False", "Forbidden")
        await desk.put("EvalSuite", "ours", {"cases": [case]})
        await desk.reason("EvalSuite", "ours", "Ready", "True", "CasesStored")
        uid = UUID((await desk.get("EvalSuite", "ours"))["metadata"]["uid"])
        ref = {"suiteUid": str(uid), "name": "one", "digest": (await desk.evals.cases(uid))["one"].digest}
        await desk.put("Investigation", "theft", {"replay": {"evalCase": ref, **THEFT}, "author": ALICE})
        assert "may not read the trace" in await refused(desk, "Investigation", "theft")
        await let_read(desk, "investigations/trace", "run", group="record.tarsy.dev")
        said = await desk.reason("Investigation", "theft", "Accepted", "False", "ProviderNotAllowed")
        assert f"would send them to {desk.namespace}/mine" in said
        assert await copies(desk) == before


async def test_a_judge_of_the_tenant_reads_no_finding_about_results_of_the_library(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.eval_run.RECHECK_SECONDS", 0.3)
    library = f"{desk.namespace}-library"
    models = ScriptedModels({})
    async with desk.controller(everywhere=True, library=library, models=models):
        await a_run_of_the_library(desk, library)
        await grant(desk, "chains")
        await let_read(desk, "investigations/trace", "run", group="record.tarsy.dev")
        case = {"name": "one", "source": {"investigationRef": {"name": "run"}}, "expect": EXPECT}
        labels = [{"finding": "It crashed.", "answers": [{"question": "told", "answer": "Yes"}]}]
        judge = {"llmProviderRef": {"name": "mine"}, "checklist": [{"name": "told", "question": "Is all told?"}]}
        await desk.put("EvalSuite", "judged", {"cases": [{**case, "labels": labels}], "judge": judge})
        await desk.reason("EvalSuite", "judged", "Ready", "True", "CasesStored")
        measured = {"suiteRef": {"name": "judged"}, "candidate": {"chainRef": {"name": "mine"}}, "author": ALICE}
        await desk.put("EvalRun", "theft", measured)
        said = await desk.reason("EvalRun", "theft", "Complete", "False", "Forbidden")
        assert f"may not use LLMProvider {desk.namespace}/mine" in said
        await grant(desk, "llmproviders")
        said = await desk.reason("EvalRun", "theft", "Complete", "False", "ProviderNotAllowed")
        assert f"tools of namespace {library} answered the recorded calls of case one" in said
        assert models.requests == []
