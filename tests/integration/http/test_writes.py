"""Tests alerts, questions and desired states over HTTP: they are written with the caller's token."""

import asyncio
import hashlib
import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from integration.http.site import Site, Visitor, condition, uid
from integration.store.build import event, execution, new_run, stage, worker, writer
from tarsy.http.routes.alerts import ALERT_BODY_BYTES
from tarsy.http.views.alerts import MAX_SUBMITTED_BYTES
from tarsy.record.run import RunOutcome, State
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES
from tarsy.store.intake import Intake
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

PRODUCT = "tarsy.dev"
ALERT = {"alertType": "PodCrash", "data": "a pod crashes"}


def _may(*verbs_on: tuple[str, str]) -> list[dict[str, list[str]]]:
    return [{"apiGroups": [PRODUCT], "resources": [resource], "verbs": [verb]} for verb, resource in verbs_on]


async def _investigation(site: Site, namespace: str, name: str = "alert-1", state: State | None = None) -> UUID:
    """An Investigation with its record, ended in a state or waiting."""
    made = await site.put("Investigation", namespace, name, {"alert": ALERT})
    run = new_run(namespace=namespace)
    plan = run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]})
    await site.accepted(namespace, name, id=uid(made), plan=plan)
    if state is not None:
        await Claims(site.services.pool).claim(await worker(site.services.pool), 10, 1000)
        await Runs(site.services.pool).finish(uid(made), 1, RunOutcome(state, final_analysis="It was full."))
    return uid(made)


async def test_an_alert_is_created_as_its_caller_and_told_again(site: Site, namespace: str) -> None:
    investigator = await site.visitor(namespace, "investigator", here=_may(("create", "alerts"), ("get", "alerts")))
    more = {"incidentKey": "i-1", "ttlSecondsAfterFinished": 60, "severity": "Critical", "budget": {"tokens": 9}}
    body = {**ALERT, "name": "crash-1", **more}
    answer = await investigator.post(f"/namespaces/{namespace}/alerts", body)
    assert answer.status == 202
    made = await site.services.kube.get("Alert", namespace, "crash-1")
    assert answer.body == {
        "namespace": namespace,
        "name": "crash-1",
        "uid": made["metadata"]["uid"],
        "alertType": "PodCrash",
    }
    spec = made["spec"]
    assert spec == {**ALERT, **more}
    status = {"phase": "Investigating", "investigationRef": {"name": "crash-1-abc", "uid": "u-1"}}
    await site.services.kube.patch("Alert", namespace, "crash-1", {"status": status}, subresource="status")
    told = (await investigator.get(f"/namespaces/{namespace}/alerts/crash-1")).body
    assert (told["phase"], told["investigation"], told["investigationUid"]) == ("Investigating", "crash-1-abc", "u-1")
    assert "data" not in told
    assert (await investigator.get(f"/namespaces/{namespace}/alerts/missing")).status == 404


async def test_an_alert_without_a_type_has_the_default_one_of_its_namespace(site: Site, namespace: str) -> None:
    investigator = await site.visitor(namespace, "investigator", here=_may(("create", "alerts")))
    await site.put("InvestigationDefaults", namespace, "default", {"defaultAlertType": "Report"})
    answer = await investigator.post(f"/namespaces/{namespace}/alerts", {"name": "untyped", "data": "x"})
    assert (answer.status, answer.body["alertType"]) == (202, "Report")
    made = await site.services.kube.get("Alert", namespace, "untyped")
    assert made["spec"]["alertType"] == "Report"


async def test_an_alert_without_a_name_gets_one(site: Site, administrator: Visitor, namespace: str) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", ALERT)
    assert answer.status == 202 and answer.body["name"].startswith("alert-")


CHAIN = {"alertTypes": ["PodCrash"], "llmProvider": "model", "stages": [{"name": "look", "agents": [{"name": "one"}]}]}
SERVER = {
    "transport": {"type": "http", "http": {"url": "http://tools.example/mcp"}},
    "tools": {"readOnly": ["*"], "deny": ["delete_pod"]},
}


async def _configured(site: Site, namespace: str) -> None:
    await site.put("LLMProvider", namespace, "model", {"type": "openai", "model": "m"})
    await site.put("Agent", namespace, "one", {})
    await site.put("Chain", namespace, "pods", CHAIN)
    await site.put("MCPServer", namespace, "kube", SERVER)
    offered = {
        "type": "Verified",
        "status": "True",
        "reason": "ToolsKnown",
        "message": "It has these tools.",
        "observedGeneration": 1,
    }
    status = {"conditions": [offered | {"lastTransitionTime": "2026-11-22T12:00:00Z"}], "tools": ["get_pods"]}
    status |= {"toolCount": 1}
    await site.services.kube.patch("MCPServer", namespace, "kube", {"status": status}, subresource="status")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"mcpServers": [{"name": "kubes"}]},
            "mcpServers[0].name: there is no MCPServer kubes in namespace {}; did you mean kube?",
        ),
        (
            {"mcpServers": [{"name": "kube", "tools": ["get_pod"]}]},
            "mcpServers[0].tools: MCPServer {}/kube has no tool get_pod; did you mean get_pods?",
        ),
        (
            {"mcpServers": [{"name": "kube", "tools": ["delete_pod"]}]},
            "mcpServers[0].tools: MCPServer {}/kube denies delete_pod",
        ),
        ({"nativeTools": {"googleSearch": True}}, "nativeTools.googleSearch: no agent of Chain {}/pods has"),
    ],
)
async def test_an_alert_that_no_run_could_serve_is_answered_with_400_and_every_mistake(
    site: Site, administrator: Visitor, namespace: str, more: dict[str, Any], said: str
) -> None:
    await _configured(site, namespace)
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, **more})
    assert answer.status == 400
    assert said.replace("{}", namespace).split(" in namespace ")[0] in answer.message
    assert await site.services.kube.list("Alert", namespace) == []


async def test_an_alert_that_a_run_can_serve_is_taken_and_one_without_a_chain_waits(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await _configured(site, namespace)
    path = f"/namespaces/{namespace}/alerts"
    for body in (
        {**ALERT, "mcpServers": [{"name": "kube", "tools": ["get_pods"]}], "nativeTools": {"googleSearch": False}},
        {**ALERT, "alertType": "Unknown", "mcpServers": [{"name": "kube"}]},
        {**ALERT, "chainRef": {"name": "later"}, "nativeTools": {"googleSearch": True}},
    ):
        answer = await administrator.post(path, body)
        assert answer.status == 202, answer.body
    unknown = await administrator.post(path, {**ALERT, "alertType": "Unknown", "mcpServers": [{"name": "none"}]})
    assert unknown.status == 400 and "mcpServers[0].name: there is no MCPServer none" in unknown.message


async def test_who_may_not_use_the_chain_is_told_nothing_of_what_it_has(site: Site, namespace: str) -> None:
    await _configured(site, namespace)
    sender = await site.visitor(namespace, "sender", here=_may(("create", "alerts"), ("use", "mcpservers")))
    body = {**ALERT, "nativeTools": {"googleSearch": True}}
    assert (await sender.post(f"/namespaces/{namespace}/alerts", body)).status == 202


async def test_who_may_not_use_a_server_is_not_told_its_tools(site: Site, namespace: str) -> None:
    await _configured(site, namespace)
    sender = await site.visitor(namespace, "sender", here=_may(("create", "alerts"), ("use", "chains")))
    body = {**ALERT, "mcpServers": [{"name": "kube", "tools": ["get_pod"]}]}
    assert (await sender.post(f"/namespaces/{namespace}/alerts", body)).status == 202


async def test_who_may_not_create_alerts_is_refused_before_the_body_is_read(site: Site, namespace: str) -> None:
    viewer = await site.visitor(namespace, "viewer", here=_may(("get", "alerts")))
    for body in (ALERT, {"nonsense": True}):
        assert (await viewer.post(f"/namespaces/{namespace}/alerts", body)).status == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"data": "x"}, "alertType: give one; InvestigationDefaults"),
        ({"alertType": "A"}, "set exactly one of data (the text itself) and dataFrom"),
        ({**ALERT, "data": " \n"}, "data must not be empty"),
        ({**ALERT, "name": "Not_A_Name"}, "name: String should match pattern"),
        ({**ALERT, "author": {"username": "the-boss"}}, "author: Extra inputs are not permitted"),
        (
            {**ALERT, "ttlSecondsAfterFinished": -1},
            "ttlSecondsAfterFinished: Input should be greater than or equal to 0",
        ),
        ([ALERT], "body"),
    ],
)
async def test_a_wrong_alert_is_refused_by_a_sentence(
    site: Site, administrator: Visitor, namespace: str, body: Any, said: str
) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", body)
    assert answer.status == 400 and said in answer.message, answer.body


@pytest.mark.parametrize("size", [MAX_DATA_BYTES - 1, MAX_DATA_BYTES])
async def test_an_alert_that_fits_an_object_is_in_it(
    site: Site, administrator: Visitor, namespace: str, size: int
) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, "data": "x" * size, "name": "large"})
    assert answer.status == 202
    assert (await site.services.kube.get("Alert", namespace, "large"))["spec"]["data"] == "x" * size


@pytest.mark.parametrize("size", [MAX_DATA_BYTES + 1, MAX_SUBMITTED_BYTES - 1, MAX_SUBMITTED_BYTES])
async def test_a_larger_alert_is_kept_beside_the_record(
    site: Site, administrator: Visitor, namespace: str, size: int
) -> None:
    text = "é" * (size // 2) + "x" * (size % 2)
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, "data": text, "name": "large"})
    assert answer.status == 202
    spec = (await site.services.kube.get("Alert", namespace, "large"))["spec"]
    record = spec["dataFrom"]["record"]
    assert "data" not in spec
    assert (record["sizeBytes"], record["digest"]) == (size, hashlib.sha256(text.encode()).hexdigest())
    assert record["preview"].startswith("éé")
    assert await Intake(site.services.pool).body(namespace, record["digest"]) == text


async def test_a_large_alert_is_masked_before_it_is_kept(site: Site, administrator: Visitor, namespace: str) -> None:
    text = "password: hunter2hunter2\n" + "x" * MAX_DATA_BYTES
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, "data": text, "name": "large"})
    assert answer.status == 202
    record = (await site.services.kube.get("Alert", namespace, "large"))["spec"]["dataFrom"]["record"]
    kept = await Intake(site.services.pool).body(namespace, record["digest"])
    assert kept is not None and "hunter2" not in kept + record["preview"]


async def test_an_alert_above_1_mib_is_413_with_its_size(site: Site, administrator: Visitor, namespace: str) -> None:
    text = "é" * (MAX_SUBMITTED_BYTES // 2) + "x"
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, "data": text})
    assert (answer.status, answer.message) == (413, "data has 1048577 bytes; the limit is 1048576 (1 MiB)")
    assert await site.services.kube.list("Alert", namespace) == []


@pytest.mark.parametrize(("more", "status"), [(-1, 202), (0, 202), (1, 413)])
async def test_a_body_has_a_limit_of_its_own(
    site: Site, administrator: Visitor, namespace: str, more: int, status: int
) -> None:
    content = json.dumps({**ALERT, "data": "x" * 1000}).encode()
    content = content[:-1] + b" " * (ALERT_BODY_BYTES - len(content) + more) + b"}"
    url = f"{site.base}/api/v1/namespaces/{namespace}/alerts"
    headers = {"Content-Type": "application/json"}
    async with administrator.session.post(url, data=content, headers=headers) as answer:
        assert answer.status == status


async def test_an_equal_request_with_the_same_key_leads_to_the_same_alert(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    path = f"/namespaces/{namespace}/alerts"
    first = await administrator.post(path, ALERT, Idempotency_Key="a-1")
    again = await administrator.post(path, dict(reversed(ALERT.items())), Idempotency_Key="a-1")
    assert (again.status, again.body) == (202, first.body) and first.status == 202
    other = await administrator.post(path, {**ALERT, "data": "another"}, Idempotency_Key="a-1")
    assert other.status == 422 and "Idempotency-Key was used for another alert" in other.message
    fresh = await administrator.post(path, ALERT, Idempotency_Key="a-2")
    assert fresh.status == 202 and fresh.body["name"] != first.body["name"]
    assert len(await site.services.kube.list("Alert", namespace)) == 2


@pytest.mark.heavy("many at once; one equal request is beside it")
async def test_many_equal_requests_at_once_make_one_alert(site: Site, administrator: Visitor, namespace: str) -> None:
    path = f"/namespaces/{namespace}/alerts"
    answers = await asyncio.gather(*(administrator.post(path, ALERT, Idempotency_Key="a") for _ in range(10)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body["uid"] for answer in answers}) == 1
    assert len(await site.services.kube.list("Alert", namespace)) == 1


async def test_the_key_of_somebody_else_is_another_key(site: Site, administrator: Visitor, namespace: str) -> None:
    path = f"/namespaces/{namespace}/alerts"
    investigator = await site.visitor(namespace, "investigator", here=_may(("create", "alerts")))
    first = await administrator.post(path, ALERT, Idempotency_Key="a")
    second = await investigator.post(path, ALERT, Idempotency_Key="a")
    assert second.status == 202 and second.body["uid"] != first.body["uid"]


async def test_a_named_alert_with_a_key_is_made_once_and_without_one_conflicts(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    path, body = f"/namespaces/{namespace}/alerts", {**ALERT, "name": "crash"}
    first = await administrator.post(path, body, Idempotency_Key="a")
    assert (await administrator.post(path, body, Idempotency_Key="a")).body == first.body
    assert (await administrator.post(path, body)).status == 409
    assert (await administrator.post(path, body, Idempotency_Key="b")).status == 409


@pytest.mark.parametrize(("key", "status"), [("k" * 254, 202), ("k" * 255, 202), ("k" * 256, 400), ("", 400)])
async def test_a_key_has_a_length(site: Site, administrator: Visitor, namespace: str, key: str, status: int) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", ALERT, Idempotency_Key=key)
    assert answer.status == status


async def test_what_the_kubernetes_api_says_to_the_caller_is_passed_on(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    body = {**ALERT, "name": "twice"}
    assert (await administrator.post(f"/namespaces/{namespace}/alerts", body)).status == 202
    again = await administrator.post(f"/namespaces/{namespace}/alerts", body)
    assert again.status == 409 and "already exists" in again.message


@pytest.mark.parametrize(("verb", "wanted"), [("cancel", "Cancelled"), ("conclude", "Concluded")])
async def test_an_investigation_is_ended_by_its_desired_state(
    site: Site, namespace: str, verb: str, wanted: str
) -> None:
    identity = await _investigation(site, namespace)
    person = await site.visitor(namespace, "person", here=_may(("patch", "investigations")))
    answer = await person.post(f"/namespaces/{namespace}/investigations/alert-1/{verb}")
    assert answer.status == 202
    assert (answer.body["desiredState"], answer.body["uid"]) == (wanted, str(identity))
    assert (await site.services.kube.get("Investigation", namespace, "alert-1"))["spec"]["desiredState"] == wanted
    assert (await person.post(f"/namespaces/{namespace}/investigations/missing/{verb}")).status == 404
    stranger = await site.visitor(namespace, "stranger", here=_may(("get", "investigations")))
    for name in ("alert-1", "missing"):
        assert (await stranger.post(f"/namespaces/{namespace}/investigations/{name}/{verb}")).status == 403


async def test_what_has_ended_or_is_being_cancelled_is_a_conflict(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await _investigation(site, namespace, "ended", State.COMPLETED)
    await _investigation(site, namespace, "waiting")
    path = f"/namespaces/{namespace}/investigations"
    for verb in ("cancel", "conclude"):
        answer = await administrator.post(f"{path}/ended/{verb}")
        assert answer.status == 409 and "has ended: Succeeded" in answer.message
    assert (await administrator.post(f"{path}/waiting/cancel")).status == 202
    answer = await administrator.post(f"{path}/waiting/conclude")
    assert answer.status == 409 and "is being cancelled" in answer.message


async def test_cancelling_one_that_has_ended_cancels_the_questions_about_it(site: Site, namespace: str) -> None:
    await _investigation(site, namespace, "ended", State.COMPLETED)
    may = (("patch", "investigations"), ("patch", "chatmessages"))
    person = await site.visitor(namespace, "person", here=_may(*may))
    for name, about in (("first", "ended"), ("second", "ended"), ("other", "another")):
        spec = {"investigationRef": {"name": about}, "question": "Why?"}
        meta = {"namespace": namespace, "name": name}
        await site.services.kube.create(
            {"apiVersion": "tarsy.dev/v1alpha1", "kind": "ChatMessage", "metadata": meta, "spec": spec}
        )
    stranger = await site.visitor(namespace, "stranger", here=_may(("patch", "investigations")))
    path = f"/namespaces/{namespace}/investigations/ended"
    assert (await stranger.post(f"{path}/cancel")).status == 403
    assert (await person.post(f"{path}/conclude")).status == 409

    answer = await person.post(f"{path}/cancel")

    assert answer.status == 202 and sorted(answer.body["questions"]) == ["first", "second"]
    wanted = {
        name: (await site.services.kube.get("ChatMessage", namespace, name))["spec"].get("desiredState", "Running")
        for name in ("first", "second", "other")
    }
    assert wanted == {"first": "Cancelled", "second": "Cancelled", "other": "Running"}
    assert (await site.services.kube.get("Investigation", namespace, "ended"))["spec"]["desiredState"] == "Running"
    assert (await person.post(f"{path}/cancel")).status == 409, "nothing is left to cancel"


async def test_a_question_is_asked_as_its_caller_and_listed_until_it_is_answered(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    about = await _investigation(site, namespace, state=State.COMPLETED)
    rules = _may(("create", "chatmessages"), ("list", "chatmessages"), ("patch", "chatmessages"))
    person = await site.visitor(namespace, "person", here=rules)
    path = f"/namespaces/{namespace}/investigations/alert-1/chatmessages"
    asked = await person.post(path, {"question": "Why?", "name": "why"})
    assert asked.status == 202 and asked.body["investigation"] == "alert-1"
    (waiting,) = (await person.get(path)).body["items"]
    assert (waiting["name"], waiting["state"], waiting["place"], waiting["question"]) == ("why", "pending", None, None)
    again = await person.post(path, {"question": "And?"})
    assert again.status == 409 and "is not answered yet" in again.message

    run = new_run(namespace=namespace)
    plan = run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]}).to_answer()
    question = NewQuestion(UUID(asked.body["uid"]), "why", "Why?", plan, {"username": "ada"})
    await Questions(site.services.pool).ask(about, [question])
    assert (await person.post(path, {"question": "And?"})).status == 409
    (queued,) = (await person.get(path)).body["items"]
    assert (queued["place"], queued["question"], queued["author"], queued["state"]) == (1, "Why?", "ada", "pending")
    assert (await person.post(f"/namespaces/{namespace}/chatmessages/why/cancel")).status == 202

    (claimed,) = await Claims(site.services.pool).claim(await worker(site.services.pool), 0, 100, questions=1)
    recorder = writer(site.services.pool, claimed.id)
    await recorder.begin_stage(stage(claimed.id))
    await recorder.begin_execution(execution(claimed.id))
    await recorder.write_events([event(claimed.id, content="because")])
    done = RunOutcome(State.COMPLETED, final_analysis="Because.")
    await Runs(site.services.pool).finish(claimed.id, claimed.attempt, done)
    (answered,) = (await person.get(path)).body["items"]
    assert (answered["answer"], answered["state"]) == ("Because.", "completed")
    assert (await person.post(path, {"question": "And?"})).status == 202
    base = f"/namespaces/{namespace}/investigations/alert-1"
    timeline = (await administrator.get(f"{base}/timeline", chatMessage="why")).body
    assert [one["content"] for one in timeline["items"]] == ["because"]
    assert timeline["investigation"]["name"] == "why"
    trace = (await administrator.get(f"{base}/trace", chatMessage="why")).body
    assert [one["name"] for one in trace["stages"]] == ["stage-0"]


@pytest.mark.parametrize(
    ("state", "said"), [(None, "has not finished; ask again when it has"), (State.CANCELLED, "was cancelled")]
)
async def test_no_question_is_taken_about_what_runs_or_was_cancelled(
    site: Site, administrator: Visitor, namespace: str, state: State | None, said: str
) -> None:
    await _investigation(site, namespace, state=state)
    path = f"/namespaces/{namespace}/investigations"
    answer = await administrator.post(f"{path}/alert-1/chatmessages", {"question": "Why?"})
    assert answer.status == 409 and said in answer.message
    missing = await administrator.post(f"{path}/missing/chatmessages", {"question": "Why?"})
    assert missing.status == 404


@pytest.mark.parametrize(
    ("question", "status"), [("", 400), (" \n", 400), ("x", 202), ("x" * 100_000, 202), ("x" * 100_001, 400)]
)
async def test_a_question_has_limits(
    site: Site, administrator: Visitor, namespace: str, question: str, status: int
) -> None:
    await _investigation(site, namespace, state=State.COMPLETED)
    path = f"/namespaces/{namespace}/investigations/alert-1/chatmessages"
    assert (await administrator.post(path, {"question": question})).status == status


async def test_questions_have_pages_and_what_was_refused_stands_at_their_end(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    about = await _investigation(site, namespace, state=State.COMPLETED)
    run = new_run(namespace=namespace)
    plan = run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]}).to_answer()
    template = NewQuestion(about, "", "?", plan)
    names = ["first", "second", "third"]
    made = [replace(template, id=new_run().id, name=name) for name in names]
    await Questions(site.services.pool).ask(about, made)
    spec = {"investigationRef": {"name": "alert-1"}, "question": "What?"}
    refused = {"phase": "Failed", "lastError": {"reason": "ChatDisabled", "message": "No questions."}}
    conditions = [condition("Finished", "True")]
    await site.put("ChatMessage", namespace, "refused", spec, **refused, conditions=conditions)
    await site.put("ChatMessage", namespace, "about-another", {**spec, "investigationRef": {"name": "alert-2"}})
    path = f"/namespaces/{namespace}/investigations/alert-1/chatmessages"
    first = (await administrator.get(path, limit=2)).body
    second = (await administrator.get(path, limit=2, **{"continue": first["continue"]})).body
    assert [one["name"] for one in (*first["items"], *second["items"])] == [*names, "refused"]
    assert second["continue"] is None and second["items"][-1]["failure"]["reason"] == "ChatDisabled"
    assert (await administrator.get(path, **{"continue": "AAAA"})).status == 400
    assert (await administrator.get(path, limit=201)).status == 400


async def test_a_replay_is_created_as_its_caller(site: Site, namespace: str) -> None:
    """What it may read and run is judged at acceptance; here, what can be known at once."""
    investigator = await site.visitor(namespace, "investigator", here=_may(("create", "investigations")))
    path = f"/namespaces/{namespace}/investigations/alert-1/replays"
    assert (await investigator.post(path, {})).status == 404
    await _investigation(site, namespace)
    early = await investigator.post(path, {})
    assert early.status == 409 and "has not finished" in early.message
    await _investigation(site, namespace, "done", State.COMPLETED)
    overrides = {"chainRef": {"name": "next"}, "llmProviderRef": {"name": "other"}}
    answer = await investigator.post(path.replace("alert-1", "done"), {"overrides": overrides, "onMiss": "Refuse"})
    assert answer.status == 202 and answer.body["name"].startswith("done-replay-")
    made = await site.services.kube.get("Investigation", namespace, answer.body["name"])
    assert made["metadata"]["uid"] == answer.body["uid"] and answer.body["replayOf"] == "done"
    assert made["spec"]["replay"] == {"of": {"name": "done"}, "overrides": overrides, "onMiss": "Refuse"}
    wrong = await investigator.post(path.replace("alert-1", "done"), {"of": {"name": "alert-1"}})
    assert wrong.status == 400


async def test_an_investigation_is_run_again_as_its_caller(site: Site, namespace: str) -> None:
    rights = _may(("create", "investigations"), ("get", "investigations"), ("get", "alerts"))
    investigator = await site.visitor(namespace, "investigator", here=rights)
    path = f"/namespaces/{namespace}/investigations"
    done = {"conditions": [condition("Finished", "True")]}
    assert (await investigator.post(f"{path}/none/retries", {})).status == 404
    alert, chain = await site.put("Alert", namespace, "crash", ALERT), {"name": "own"}
    spec = {"alertRef": {"name": "crash", "uid": uid(alert)}, "chainRef": chain, "budget": {"tokens": 9}}
    first = await site.put("Investigation", namespace, "first", {**spec, "ttlSecondsAfterFinished": 5}, **done)
    answer = await investigator.post(f"{path}/first/retries", {})
    assert answer.status == 202 and answer.body["name"].startswith("first-retry-")
    made = await site.services.kube.get("Investigation", namespace, answer.body["name"])
    assert made["metadata"]["uid"] == answer.body["uid"] and answer.body["retryOf"] == "first"
    retry_of = {"name": "first", "uid": first["metadata"]["uid"]}
    copied = ("alertRef", "chainRef", "budget", "retryOf")
    assert {field: made["spec"][field] for field in copied} == {
        "alertRef": {"name": "crash", "uid": str(uid(alert))},
        "chainRef": chain,
        "budget": {"tokens": 9},
        "retryOf": retry_of,
    }
    assert made["spec"].get("ttlSecondsAfterFinished") != 5
    other = await investigator.post(
        f"{path}/first/retries", {"chain": "next", "llmProvider": "large", "name": "second"}
    )
    made = await site.services.kube.get("Investigation", namespace, "second")
    assert other.status == 202 and made["spec"]["chainRef"] == {"name": "next"}
    assert made["spec"]["llmProviderRef"] == {"name": "large"}
    await site.put("Investigation", namespace, "inline", {"alert": ALERT}, **done)
    assert (await investigator.post(f"{path}/inline/retries", {})).status == 202
    assert (await investigator.post(f"{path}/first/retries", {"chain": "../x"})).status == 400
    assert (await investigator.post(f"{path}/first/retries", {"name": "second"})).status == 409


async def test_what_cannot_be_run_again_is_refused_with_the_remedy(site: Site, namespace: str) -> None:
    rights = _may(("create", "investigations"), ("get", "investigations"), ("get", "alerts"))
    investigator = await site.visitor(namespace, "investigator", here=rights)
    blind = await site.visitor(namespace, "blind", here=_may(("create", "investigations")))
    done = {"conditions": [condition("Finished", "True")]}
    await site.put("Investigation", namespace, "running", {"alert": ALERT}, conditions=[condition("Finished", "False")])
    await site.put("Investigation", namespace, "replay", {"replay": {"of": {"name": "first"}}}, **done)
    await site.put("Investigation", namespace, "gone", {"alertRef": {"name": "expired"}}, **done)
    told = (
        ("running", "has not finished; wait for its end or cancel it"),
        ("replay", "is a replay; start a replay of the recorded investigation"),
        ("gone", "expired of investigation gone was deleted or has expired; submit the alert again"),
    )
    for name, sentence in told:
        path = f"/namespaces/{namespace}/investigations/{name}/retries"
        answer = await investigator.post(path, {})
        assert answer.status == 409 and sentence in answer.message
        assert (await blind.post(path, {})).status == 403, "the caller's own right to read it counts"
