"""Tests the list of configuration objects, and what they did in recorded runs, over HTTP."""

from typing import Any

from integration.http.site import Site, Visitor, condition
from integration.store.build import PROMPT, execution, model_call, model_result, new_run, stage, worker, writer
from tarsy.plan.model import ObjectRef
from tarsy.store.runs.claims import Claims

CHAIN = {"alertTypes": ["PodCrash"], "stages": [{"name": "look", "agents": [{"name": "investigator"}]}]}
READY = [condition("Ready", "True")]


def _rule(verb: str, *resources: str) -> dict[str, list[str]]:
    return {"apiGroups": ["tarsy.dev"], "resources": list(resources), "verbs": [verb]}


async def _planned(site: Site, namespace: str, name: str = "alert-1") -> Any:
    """A run whose plan names the objects that it was made from."""
    plan = new_run(namespace=namespace).plan
    refs = [("Chain", "crashloop"), ("LLMProvider", "local"), ("Agent", "kubernetes-agent")]
    objects = tuple(ObjectRef(kind=kind, namespace=namespace, name=called) for kind, called in refs)
    return await site.accepted(namespace, name, plan=plan.model_copy(update={"objects": objects}))


async def test_objects_with_problems_come_first_and_only_kinds_that_may_be_listed(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Chain", namespace, "crash", CHAIN, conditions=READY)
    http = {"type": "http", "http": {"url": "https://tools.example/mcp?token=do-not-tell"}}
    away = [*READY, condition("Available", "False", "Unreachable")]
    await site.put("MCPServer", namespace, "tools", {"transport": http}, conditions=away, lastError="refused")
    body = (await administrator.get("/configuration", namespace=namespace)).body
    assert [(one["kind"], one["health"]) for one in body["items"]] == [("MCPServer", "Degraded"), ("Chain", "Ready")]
    server = body["items"][0]
    assert (server["reason"], server["address"], server["lastError"]) == (
        "Unreachable",
        "https://tools.example",
        "refused",
    )
    assert server["since"] == "2026-11-22T12:00:00Z" and "do-not-tell" not in str(body)
    first = (await administrator.get("/configuration", namespace=namespace, limit=1)).body
    rest = await administrator.get("/configuration", namespace=namespace, limit=1, **{"continue": first["continue"]})
    assert [one["name"] for one in (*first["items"], *rest.body["items"])] == ["tools", "crash"]
    assert (await administrator.get("/configuration", limit=1001)).status == 400
    viewer = await site.visitor(namespace, "viewer", here=[_rule("list", "mcpservers")])
    body = (await viewer.get("/configuration", namespace=namespace)).body
    assert (body["kinds"], [one["name"] for one in body["items"]]) == (["MCPServer"], ["tools"])
    assert (await viewer.get("/configuration")).status == 403


async def test_activity_is_of_runs_in_the_namespaces_that_are_named(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    pool = site.services.pool
    run = await _planned(site, namespace)
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder, begun = writer(pool, run.id), execution(run.id)
    await recorder.begin_stage(stage(run.id))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    await recorder.model_call_finished(model_result(begun.id))
    body = (await administrator.get("/configuration/activity", namespace=namespace)).body
    assert body["hours"] == 24
    (provider,) = body["items"]
    assert (provider["kind"], provider["namespace"], provider["name"]) == ("LLMProvider", namespace, "local")
    assert provider["hours"] == [{"hoursAgo": 0, "succeeded": 1, "failed": 0}]
    await pool.execute("UPDATE llm_interaction SET state = 'failed', started_at = now() - interval '90 minutes'")
    (provider,) = (await administrator.get("/configuration/activity", namespace=namespace)).body["items"]
    assert provider["hours"] == [{"hoursAgo": 1, "succeeded": 0, "failed": 1}]
    assert (await administrator.get("/configuration/activity", namespace=namespace, hours=1)).body["items"] == []
    for hours, status in ((0, 400), (168, 200), (169, 400)):
        assert (await administrator.get("/configuration/activity", hours=hours)).status == status


async def test_last_runs_of_an_object_are_those_that_were_planned_from_it(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await _planned(site, namespace, "first")
    await _planned(site, namespace, "second")
    await site.accepted(namespace, "of-nothing")
    query = {"namespace": namespace, "kind": "LLMProvider", "ofNamespace": namespace, "ofName": "local"}
    body = (await administrator.get("/configuration/runs", **query)).body
    assert [one["name"] for one in body["items"]] == ["second", "first"]
    assert (body["items"][0]["state"], body["items"][0]["chain"]) == ("pending", "crashloop")
    assert len((await administrator.get("/configuration/runs", **query, limit=1)).body["items"]) == 1
    other = {**query, "ofName": "other"}
    assert (await administrator.get("/configuration/runs", **other)).body["items"] == []
    assert (await administrator.get("/configuration/runs", **{**query, "kind": "Alert"})).status == 400
    viewer = await site.visitor(namespace, "runs-only", here=[_rule("list", "investigations")])
    refused = await viewer.get("/configuration/runs", **query)
    assert (refused.status, "may not list llmproviders" in refused.message) == (403, True)
