"""Alerts, questions and desired states over HTTP: made as the caller, refused as the Kubernetes API refuses."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from integration.http.site import Site, Visitor, condition, uid
from integration.store.build import event, execution, new_run, stage, worker, writer
from tarsy.record.run import RunOutcome, State
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES
from tarsy.store.claims import Claims
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.runs import Runs

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


async def test_an_alert_without_a_name_gets_one(site: Site, administrator: Visitor, namespace: str) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", ALERT)
    assert answer.status == 202 and answer.body["name"].startswith("alert-")


async def test_who_may_not_create_alerts_is_refused_before_the_body_is_read(site: Site, namespace: str) -> None:
    viewer = await site.visitor(namespace, "viewer", here=_may(("get", "alerts")))
    for body in (ALERT, {"nonsense": True}):
        assert (await viewer.post(f"/namespaces/{namespace}/alerts", body)).status == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"data": "x"}, "alertType: Field required"),
        ({"alertType": "A"}, "set exactly one of data (the text itself) and dataFrom"),
        ({**ALERT, "data": "x" * (MAX_DATA_BYTES + 1)}, "data must have at most 262144 bytes"),
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


async def test_an_alert_as_large_as_allowed_is_taken(site: Site, administrator: Visitor, namespace: str) -> None:
    answer = await administrator.post(f"/namespaces/{namespace}/alerts", {**ALERT, "data": "x" * MAX_DATA_BYTES})
    assert answer.status == 202


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
    ("state", "said"), [(None, "has not ended yet; ask when it has"), (State.CANCELLED, "was cancelled")]
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
