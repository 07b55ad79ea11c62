"""Tests that the server behaves as the OpenAPI document describes.

Schemathesis makes the requests, with parameters of things that there are and of things that there are not
(`TARSY_SCHEMATHESIS_EXAMPLES` asks for more of them an operation).
"""

import asyncio
from collections.abc import Mapping

import aiohttp

from integration.http import fuzz
from integration.http.site import Site, Visitor, condition, uid
from integration.store.build import (
    PROMPT,
    event,
    execution,
    model_call,
    model_result,
    new_run,
    stage,
    tool_call,
    tool_result,
    worker,
    writer,
)
from tarsy.record import ids
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.run import RunOutcome, State
from tarsy.store.judging.eval_rows import EndedSample, NewEvalRun
from tarsy.store.judging.evals import Evals
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs


async def _seeded(site: Site, namespace: str) -> dict[str, Mapping[str, str]]:
    """A record with something in each of its tables, and objects of each kind; what the paths of operations name."""
    pool = site.services.pool
    alert = {"alertType": "PodCrash", "data": "a pod crashes"}
    chain = {"alertTypes": ["PodCrash"], "stages": [{"name": "look", "agents": [{"name": "investigator"}]}]}
    await site.put("Alert", namespace, "alert-1", alert, phase="Investigating")
    await site.put("Chain", namespace, "crash", chain, conditions=[condition("Ready", "False")])
    await site.put("LLMProvider", namespace, "model", {"type": "openai", "model": "m-1"})
    transport = {"transport": {"type": "http", "http": {"url": "https://tools.example/mcp"}}}
    await site.put("MCPServer", namespace, "tools", transport, conditions=[condition("Ready", "True")], toolCount=1)
    made = await site.put("Investigation", namespace, "alert-1", {"alert": alert})
    plan = new_run(namespace=namespace).plan
    plan = plan.model_copy(update={"chat": plan.stages[0].agents[0]})
    run = (await site.accepted(namespace, id=uid(made), plan=plan)).id
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder, begun = writer(pool, run), execution(run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    await recorder.model_call_finished(model_result(begun.id), [event(begun.id, metadata={"a": [1, None]})])
    await recorder.tool_call_started(tool_call(begun.id))
    await recorder.tool_call_finished(tool_result(begun.id))
    claim = Claim(text="Full.", citations=(Citation(call_id="call_1", quote="full", reason="No such call."),))
    finding = Finding(summary="Full.", confidence=Confidence.LOW, claims=(claim,))
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="All.", finding=finding))
    asked = await site.put(
        "ChatMessage", namespace, "why", {"investigationRef": {"name": "alert-1"}, "question": "Why?"}
    )
    await Questions(pool).ask(run, [NewQuestion(uid(asked), "why", "Why?", plan.to_answer())])
    case = {"name": "one", "source": {"investigationRef": {"name": "alert-1"}}, "expect": {"verdict": "Cause"}}
    suite = await site.put("EvalSuite", namespace, "suite", {"cases": [case]}, digest="s")
    measured = {"suiteRef": {"name": "suite"}, "candidate": {"chainRef": {"name": "crash"}}}
    eval_run = uid(await site.put("EvalRun", namespace, "measured", measured, phase="Running"))
    frozen = {"name": "one", "recording": "r", "digest": "d", "expect": case["expect"]}
    terms = {"cases": [frozen], "samples": 1, "parallelism": 1, "gate": {}}
    evals = Evals(pool)
    await evals.begin(
        NewEvalRun(
            eval_run, namespace, "ns", "measured", uid(suite), "suite", "s", terms, "crash", namespace, "revision"
        )
    )
    await evals.add_sample(eval_run, "one", 0, run)
    check = {"name": "verdict", "outcome": "Failed", "sentence": "No claim is supported."}
    await evals.end_sample(eval_run, EndedSample("one", 0, "Failed", [check], coverage=0.5))
    call = {"id": "c", "server": "tools", "serverNamespace": namespace, "tool": "scale", "access": "changes"}
    waiting = {
        "runRef": {"name": "alert-1", "uid": str(run), "kind": "Investigation"},
        "call": call,
        "argumentsDigest": f"sha256:{'a' * 64}",
        "preview": {"kind": "None"},
        "why": {"claim": "Too few.", "evidence": ["call_0"]},
        "expiresAt": "2126-01-01T00:00:00Z",
        "required": 1,
        "requesters": ["rita"],
        "decisions": [],
    }
    await site.put("ToolApproval", namespace, "scale", waiting)
    there = {"namespace": namespace, "name": "alert-1"}
    return {
        "/toolapprovals/": {**there, "name": "scale"},
        "/evalsuites/": {**there, "name": "suite"},
        "/evalruns/": {**there, "name": "measured"},
        "": there,
        "/chatmessages/{name}/": {**there, "name": "why"},
        "/llm/": {**there, "id": str(ids.model_call_id(begun.id, 0))},
        "/mcp/": {**there, "id": str(ids.tool_call_id(begun.id, 2, 0, 0))},
    }


async def test_every_answer_is_as_the_document_says(site: Site, administrator: Visitor, namespace: str) -> None:
    seeded = await _seeded(site, namespace)
    token = administrator.session.headers["Authorization"]
    operations = fuzz.operations((await administrator.get("/openapi.json")).body)
    assert len(operations) > 20
    for operation in operations:
        values = next(seeded[part] for part in sorted(seeded, key=len, reverse=True) if part in operation.path)
        path = {name: value for name, value in values.items() if f"{{{name}}}" in operation.path}
        await asyncio.to_thread(fuzz.ask, operation, f"{site.base}/api/v1", token, path)


async def test_the_document_is_for_everybody(site: Site) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{site.base}/api/v1/openapi.json") as answer:
        assert answer.status == 200 and (await answer.json())["openapi"] == "3.1.0"
