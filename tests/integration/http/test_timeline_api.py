"""Tests timeline and trace over HTTP: paging, and authorization."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from integration.http.site import Site, Visitor
from integration.store.build import (
    PROMPT,
    event,
    execution,
    model_call,
    model_result,
    stage,
    tool_call,
    tool_result,
    worker,
    writer,
)
from tarsy.record import ids
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.integrity import Integrity
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

TIMELINE = {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/timeline"], "verbs": ["get"]}
TRACE = {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/trace"], "verbs": ["get"]}
SIGNATURE = "a-signature-of-the-provider"


async def _told(site: Site, namespace: str, name: str = "alert-1") -> tuple[UUID, UUID]:
    """A run with one agent, which made a model call and a tool call; the run and the agent's execution."""
    run = await site.accepted(namespace, name)
    pool = site.services.pool
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder, begun = writer(pool, run.id), execution(run.id)
    await recorder.begin_stage(stage(run.id))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    said = Message(
        Role.ASSISTANT,
        "let me look",
        (ToolCall("c1", "kubernetes.get", "{}"),),
        provider_state={"signature": SIGNATURE},
    )
    await recorder.model_call_finished(model_result(begun.id, message=said), [event(begun.id)])
    await recorder.tool_call_started(tool_call(begun.id))
    await recorder.tool_call_finished(tool_result(begun.id))
    await recorder.model_call_started(model_call(begun.id, 1, first_seq=4))
    return run.id, begun.id


def _path(namespace: str, *parts: object, name: str = "alert-1") -> str:
    return "/".join((f"/namespaces/{namespace}/investigations/{name}", *map(str, parts)))


async def test_a_timeline_is_read_in_pages_by_revision_and_then_tells_what_changes(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace)
    pool = site.services.pool
    await Claims(pool).claim(await worker(pool), 10, 1000)
    recorder = writer(pool, run.id)
    await recorder.write_events([event(run.id, "open", EventStatus.STREAMING)])
    for number in range(4):
        await recorder.write_events([event(run.id, f"event-{number}")])
    told: list[str] = []
    after, more = 0, True
    while more:
        page = (await administrator.get(_path(namespace, "timeline"), after=after, limit=2)).body
        told += [item["content"] for item in page["items"]]
        after, more = page["revision"], page["more"]
    assert told == ["open", "event-0", "event-1", "event-2", "event-3"]
    nothing = (await administrator.get(_path(namespace, "timeline"), after=after)).body
    assert nothing["items"] == [] and nothing["revision"] == after and not nothing["more"]
    await recorder.write_events([event(run.id, "open", content="closed")])
    (changed,) = (await administrator.get(_path(namespace, "timeline"), after=after)).body["items"]
    assert (changed["content"], changed["status"], changed["seq"]) == ("closed", "completed", 1)


async def test_a_timeline_tells_the_finding_with_its_evidence(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace)
    pool = site.services.pool
    await Claims(pool).claim(await worker(pool), 10, 1000)
    interaction = uuid4()
    citation = Citation(
        call_id="call_1",
        quote="disk full",
        supported=True,
        interaction=interaction,
        stage="s",
        agent="a",
        tool="k.get",
        integrity=Integrity.K,
    )
    claim = Claim(text="It was full.", citations=(citation,), supported=True)
    finding = Finding(summary="Full.", confidence=Confidence.HIGH, claims=(claim,), notes=("lowered",))
    await Runs(pool).finish(run.id, 1, RunOutcome(State.COMPLETED, final_analysis="All.", finding=finding))
    head = (await administrator.get(_path(namespace, "timeline"))).body["investigation"]
    assert head["finalAnalysis"] == "All." and head["finding"]["notes"] == ["lowered"]
    assert head["finding"]["claims"] == [
        {
            "text": "It was full.",
            "supported": True,
            "ungrounded": [],
            "contradicted": False,
            "citations": [
                {
                    "callId": "call_1",
                    "quote": "disk full",
                    "supported": True,
                    "reason": None,
                    "interaction": str(interaction),
                    "stage": "s",
                    "agent": "a",
                    "tool": "k.get",
                    "integrity": "K",
                    "replaced": False,
                }
            ],
        }
    ]


async def test_limits_of_timeline_and_trace(site: Site, administrator: Visitor, namespace: str) -> None:
    await site.accepted(namespace)
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("timeline", {"limit": 1000}, 200),
        ("timeline", {"limit": 1001}, 400),
        ("timeline", {"limit": 0}, 400),
        ("timeline", {"after": 2**63 - 1}, 200),
        ("timeline", {"after": 2**63}, 400),
        ("timeline", {"after": -1}, 400),
        ("trace", {"limit": 2000}, 200),
        ("trace", {"limit": 2001}, 400),
        ("trace", {"limit": 0}, 400),
        ("trace", {"continue": "bm9uZQ"}, 400),
        ("trace", {"chatMessage": "Not_A_Name"}, 400),
        ("trace", {"chatMessage": "missing"}, 404),
        ("timeline", {"chatMessage": "missing"}, 404),
    ]
    for part, query, status in cases:
        answer = await administrator.get(_path(namespace, part), **query)
        assert answer.status == status, (part, query, answer.body)


async def test_a_trace_tells_calls_by_stage_and_agent_with_their_times(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await _told(site, namespace)
    body = (await administrator.get(_path(namespace, "trace"))).body
    ((agent,),) = [one["agents"] for one in body["stages"]]
    first, second = agent["llm"]
    (tool,) = agent["mcp"]
    assert (first["state"], first["durationMs"], first["spent"]["totalTokens"]) == ("completed", 12, 120)
    assert (second["state"], second["durationMs"], second["spent"]) == ("started", None, None)
    assert (tool["server"], tool["tool"], tool["durationMs"], tool["made"]) == ("kubernetes", "get", 3, True)
    assert first["startedAt"] <= first["finishedAt"] <= tool["finishedAt"] and body["continue"] is None


async def test_a_trace_has_pages_that_repeat_the_stages_and_no_call(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await _told(site, namespace)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 1}
    while True:
        body = (await administrator.get(_path(namespace, "trace"), **query)).body
        (agent,) = body["stages"][0]["agents"]
        seen += [call["id"] for call in (*agent["llm"], *agent["mcp"])]
        if body["continue"] is None:
            break
        query["continue"] = body["continue"]
    assert len(seen) == len(set(seen)) == 3


async def test_a_model_call_is_told_as_it_was_sent_and_without_signatures(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    _, begun = await _told(site, namespace)
    paths = [_path(namespace, "trace/llm", ids.model_call_id(begun, number)) for number in (0, 1)]
    first, second = [await administrator.get(path) for path in paths]
    assert [message["content"] for message in first.body["messages"]] == ["you are", "what is wrong?"]
    assert first.body["answer"]["toolCalls"] == [{"id": "c1", "name": "kubernetes.get", "arguments": "{}"}]
    assert first.body["tools"][0]["name"] == "kubernetes.get" and first.body["owner"]["agent"] == "triage-1"
    assert [message["role"] for message in second.body["messages"]] == ["system", "user", "assistant", "tool"]
    assert second.body["answer"] is None
    assert SIGNATURE not in str(first.body) + str(second.body)


async def test_a_tool_call_is_told_with_arguments_and_result(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    _, begun = await _told(site, namespace)
    call = ids.tool_call_id(begun, 2, 0, 0)
    body = (await administrator.get(_path(namespace, "trace/mcp", call))).body
    assert (body["arguments"], body["result"], body["state"]) == ('{"kind": "Pod"}', "a pod", "completed")
    assert body["ref"] == ids.call_ref(body["idempotencyKey"]) and body["tries"] == [str(call)]


async def test_a_call_is_found_only_in_the_investigation_it_belongs_to(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    _, begun = await _told(site, namespace)
    await site.accepted(namespace, "alert-2")
    llm, mcp = ids.model_call_id(begun, 0), ids.tool_call_id(begun, 2, 0, 0)
    for part, call in (("llm", llm), ("mcp", mcp)):
        assert (await administrator.get(_path(namespace, "trace", part, call))).status == 200
        assert (await administrator.get(_path(namespace, "trace", part, call, name="alert-2"))).status == 404
    assert (await administrator.get(_path(namespace, "trace/llm", mcp))).status == 404
    assert (await administrator.get(_path(namespace, "trace/mcp", llm))).status == 404
    assert (await administrator.get(_path(namespace, "trace/llm/none"))).status == 400


async def test_who_reads_the_timeline_does_not_read_the_trace(site: Site, namespace: str) -> None:
    _, begun = await _told(site, namespace)
    reader = await site.visitor(namespace, "reader", here=[TIMELINE])
    tracer = await site.visitor(namespace, "tracer", here=[TRACE])
    calls = (f"llm/{ids.model_call_id(begun, 0)}", f"mcp/{ids.tool_call_id(begun, 2, 0, 0)}")
    traces = ["trace", *(f"trace/{call}" for call in calls)]
    assert (await reader.get(_path(namespace, "timeline"))).status == 200
    assert {(await reader.get(_path(namespace, part))).status for part in traces} == {403}
    assert (await tracer.get(_path(namespace, "timeline"))).status == 403
    assert {(await tracer.get(_path(namespace, part))).status for part in traces} == {200}
    assert (await tracer.get(_path(namespace))).status == 403


async def test_an_event_of_a_type_that_a_newer_replica_wrote_is_served_with_its_type_as_text(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace)
    pool = site.services.pool
    await Claims(pool).claim(await worker(pool), 10, 1000)
    await writer(pool, run.id).write_events([event(run.id, "known"), event(run.id, "newer")])
    await pool.execute("UPDATE timeline_event SET type = 'something_newer' WHERE content = 'newer'")
    page = await administrator.get(_path(namespace, "timeline"))
    assert page.status == 200
    assert [item["type"] for item in page.body["items"]] == ["llm_response", "something_newer"]


async def test_words_that_a_newer_replica_wrote_are_served_as_text(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    """As the rungs of replays were new once: an older replica answered 500 for the whole trace."""
    _, begun = await _told(site, namespace)
    newer = {
        "stage": "UPDATE stage SET kind = 'newer'",
        "llm_interaction": "UPDATE llm_interaction SET kind = 'newer', state = 'newer'",
        "mcp_interaction": "UPDATE mcp_interaction SET rung = 'newer', access = 'newer', state = 'newer'",
        "timeline_event": "UPDATE timeline_event SET status = 'newer'",
        "investigation": "UPDATE investigation SET budget_limit = 'newer', budget_message = 'It is reached.'",
    }
    checks = "SELECT conrelid::regclass::text AS place, conname FROM pg_constraint WHERE contype = 'c'"
    for row in await site.services.pool.fetch(checks):
        if row["place"] in newer:
            await site.services.pool.execute(f'ALTER TABLE {row["place"]} DROP CONSTRAINT "{row["conname"]}"')
    for update in newer.values():
        await site.services.pool.execute(update)
    (stage_,) = (await administrator.get(_path(namespace, "trace"))).body["stages"]
    ((first, _), (tool,)) = stage_["agents"][0]["llm"], stage_["agents"][0]["mcp"]
    assert {stage_["kind"], first["kind"], first["state"], tool["rung"], tool["access"], tool["state"]} == {"newer"}
    calls = (f"llm/{ids.model_call_id(begun, 0)}", f"mcp/{ids.tool_call_id(begun, 2, 0, 0)}")
    assert {(await administrator.get(_path(namespace, f"trace/{call}"))).status for call in calls} == {200}
    (told,) = (await administrator.get(_path(namespace, "timeline"))).body["items"]
    assert told["status"] == "newer"
    assert (await administrator.get(_path(namespace))).body["budgetExceeded"]["reason"] == "newer"


async def test_two_runs_are_compared_by_whoever_may_read_timeline_and_trace_of_both(
    site: Site, administrator: Visitor, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await _told(site, namespace)
    finding = Finding(summary="Full.", confidence=Confidence.HIGH, claims=(Claim(text="It was.", supported=True),))
    await Runs(site.services.pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="All.", finding=finding))
    await _told(site, namespace, "other")
    path = _path(namespace, "trace", "comparison")
    found = (await administrator.get(path, other="other")).body
    assert (found["first"]["name"], found["second"]["name"]) == ("alert-1", "other")
    assert (found["first"]["summary"], found["first"]["claims"]) == ("Full.", ["It was."])
    assert found["first"]["spent"]["inputTokens"] > 0 and found["first"]["toolCalls"] == 1
    assert found["second"]["summary"] is None and found["second"]["seconds"] is None
    (agent,) = found["agents"]
    assert (agent["same"], agent["first"], agent["second"], agent["firstCalls"]) == (1, [], [], 1)
    assert (await administrator.get(path)).status == 400
    assert (await administrator.get(path, other="missing")).status == 404
    assert (await administrator.get(path, other="other", otherUid=str(uuid4()))).status == 404

    only_own = [{**rule, "resourceNames": ["alert-1"]} for rule in (TIMELINE, TRACE)]
    traces = await site.visitor(namespace, "traces", here=[TRACE])
    one_run = await site.visitor(namespace, "one-run", here=only_own)
    for visitor in (traces, one_run):
        for name in ("other", "missing"):
            assert (await visitor.get(path, other=name)).status == 403
    both = await site.visitor(namespace, "both", here=[TIMELINE, TRACE])
    assert (await both.get(path, other="other")).status == 200

    monkeypatch.setattr("tarsy.http.routes.comparison.MOST_CALLS", 0)
    refused = await administrator.get(path, other="other")
    assert refused.status == 409 and "tool calls" in refused.message
