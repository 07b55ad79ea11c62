"""Tests the list of investigations and single ones, for callers with different permissions."""

from typing import Any
from uuid import uuid4

import pytest

from integration.http.site import Site, Visitor
from integration.store.build import event, execution, model_call, model_result, plan, stage, worker, writer
from tarsy.plan.model import PlannedBudget
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.record.run import Failure, RunOutcome, State
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import NewRun, Runs

LIST = [{"apiGroups": ["tarsy.dev"], "resources": ["investigations"], "verbs": ["list", "get"]}]


async def finished(site: Site, run: NewRun, outcome: RunOutcome) -> None:
    """Ends a run."""
    await Claims(site.services.pool).claim(await worker(site.services.pool), 10, 1000)
    await Runs(site.services.pool).finish(run.id, 1, outcome)


async def test_a_list_holds_what_the_record_says_in_short(site: Site, administrator: Visitor, namespace: str) -> None:
    run = await site.accepted(namespace)
    finding = Finding(summary="The disk was full.", confidence=Confidence.HIGH, claims=(Claim(text="Full."),))
    done = RunOutcome(State.COMPLETED, final_analysis="Long text.", finding=finding, executive_summary="Disk full.")
    await finished(site, run, done)
    answer = await administrator.get("/investigations", namespace=namespace)
    assert answer.status == 200 and answer.body["continue"] is None
    (item,) = answer.body["items"]
    assert item["uid"] == str(run.id)
    assert (item["namespace"], item["name"], item["state"], item["author"]) == (
        namespace,
        "alert-1",
        "completed",
        "ada",
    )
    assert item["finding"] == {
        "summary": "The disk was full.",
        "confidence": "High",
        "shownConfidence": "High",
        "claims": 1,
        "supportedClaims": 0,
    }
    assert item["executiveSummary"] == "Disk full." and item["spent"]["costUSD"] is None
    assert "finalAnalysis" not in item


async def test_pages_lead_through_the_whole_list_once(site: Site, administrator: Visitor, namespace: str) -> None:
    for number in range(5):
        await site.accepted(namespace, f"alert-{number}")
    names: list[str] = []
    query: dict[str, Any] = {"namespace": namespace, "limit": 2}
    for _ in range(3):
        body = (await administrator.get("/investigations", **query)).body
        names += [item["name"] for item in body["items"]]
        query["continue"] = body["continue"]
    assert names == [f"alert-{number}" for number in (4, 3, 2, 1, 0)] and body["continue"] is None


@pytest.mark.parametrize(
    "sort", ["newest", "oldest", "finished", "duration", "severity", "confidence", "cost", "tokens"]
)
async def test_every_order_has_pages(site: Site, administrator: Visitor, namespace: str, sort: str) -> None:
    for number in range(3):
        run = await site.accepted(namespace, f"alert-{number}")
        await finished(site, run, RunOutcome(State.CANCELLED))
    first = (await administrator.get("/investigations", namespace=namespace, limit=2, sort=sort)).body
    query = {"namespace": namespace, "limit": 2, "sort": sort, "continue": first["continue"]}
    second = (await administrator.get("/investigations", **query)).body
    assert len({item["uid"] for item in (*first["items"], *second["items"])}) == 3


async def test_a_token_is_of_its_own_question_only(site: Site, administrator: Visitor, namespace: str) -> None:
    for number in range(2):
        await site.accepted(namespace, f"alert-{number}")
    query: dict[str, Any] = {"namespace": namespace, "limit": 1}
    token = (await administrator.get("/investigations", **query)).body["continue"]
    for other in ({"sort": "oldest"}, {"author": "ada"}, {"namespace": []}):
        answer = await administrator.get("/investigations", **{**query, **other, "continue": token})
        assert answer.status == 400 and "continue: does not belong to this list" in answer.message, other
    for broken in (token[:-3], "AAAA", "W10", "bm9uZQ"):
        assert (await administrator.get("/investigations", **query, **{"continue": broken})).status == 400, broken


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ({"limit": 201}, "limit: Input should be less than or equal to 200"),
        ({"limit": "many"}, "limit"),
        ({"search": "ab"}, "search: String should have at least 3 characters"),
        ({"search": "---"}, "search: must contain a letter or a digit"),
        ({"search": "x" * 201}, "search: String should have at most 200 characters"),
        ({"state": "done"}, "state.0: Input should be 'pending'"),
        ({"sort": "best"}, "sort: Input should be 'newest'"),
        ({"since": "yesterday"}, "since: Value error, must be a time with a time zone"),
        ({"since": "1700000000"}, "since: Value error, must be a time"),
        ({"since": "2026-11-22T12:00:00"}, "since: Value error, must be a time with a time zone"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since: Value error, must be between the years"),
        ({"since": "2026-11-22T12:00:00Z", "until": "2026-11-22T12:00:00Z"}, "until: must be later than since"),
        ({"namespace": "Not_One"}, "namespace.0: String should match pattern"),
        ({"namespace": [f"n{number}" for number in range(21)]}, "namespace: Tuple should have at most 20 items"),
        ({"chain": "a/b/c"}, "chain: String should match pattern"),
        ({"author": ""}, "author: String should have at least 1 character"),
        ({"continue": "§"}, "continue: String should match pattern"),
        ({"nonsense": "1"}, "nonsense is unknown; known parameters: alertType, author, chain, continue"),
        ({"sort": ["newest", "oldest"]}, "sort is given 2 times; give it once"),
    ],
)
@pytest.mark.sweep("another parameter")
async def test_a_wrong_parameter_is_named_with_what_is_allowed(
    site: Site, administrator: Visitor, query: dict[str, Any], named: str
) -> None:
    answer = await administrator.get("/investigations", **query)
    assert answer.status == 400 and named in answer.message, answer.body


@pytest.mark.parametrize("query", [{"limit": 1}, {"limit": 200}, {"search": "abc"}, {"search": "x" * 200}])
async def test_a_parameter_at_its_limit_is_taken(site: Site, administrator: Visitor, query: dict[str, Any]) -> None:
    assert (await administrator.get("/investigations", **query)).status == 200


async def test_filters_and_search_reach_the_record(site: Site, administrator: Visitor, namespace: str) -> None:
    await site.accepted(namespace, "one", alert_data="the payment service is down")
    other = await site.accepted(namespace, "two", alert_data="nothing")
    await finished(site, other, RunOutcome(State.FAILED, failure=Failure("Broken", "It broke.")))
    for query, names in (
        ({"search": "payment"}, ["one"]),
        ({"search": "ayment serv"}, []),
        ({"search": "ayment serv", "searchIn": "timeline"}, ["one"]),
        ({"chain": f"{namespace}/crashloop", "author": "ada"}, ["two", "one"]),
        ({"chain": "elsewhere/crashloop"}, []),
        ({"alertType": "KubePodCrashLooping", "until": "2100-01-01T00:00:00Z"}, ["two", "one"]),
        ({"since": "2100-01-01T00:00:00Z"}, []),
    ):
        answer = await administrator.get("/investigations", namespace=namespace, **query)
        assert [item["name"] for item in answer.body["items"]] == names, query


async def test_who_may_list_in_a_namespace_names_it_and_sees_no_other(
    site: Site, namespace: str, administrator: Visitor
) -> None:
    other = f"other-{uuid4().hex[:8]}"
    await site.services.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await site.accepted(namespace, "mine")
    await site.accepted(other, "theirs")
    viewer = await site.visitor(namespace, "viewer", here=LIST)
    assert (await viewer.get("/investigations")).status == 403
    assert (await viewer.get("/investigations", namespace=other)).status == 403
    assert (await viewer.get("/investigations", namespace=[namespace, other])).status == 403
    answer = await viewer.get("/investigations", namespace=namespace)
    assert [item["name"] for item in answer.body["items"]] == ["mine"]
    both = await administrator.get("/investigations", namespace=[namespace, other])
    assert {item["name"] for item in both.body["items"]} == {"mine", "theirs"}


async def test_one_investigation_has_stages_agents_conditions_and_its_alert(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace)
    await Claims(site.services.pool).claim(await worker(site.services.pool), 10, 1000)
    recorder, begun = writer(site.services.pool, run.id), execution(run.id)
    await recorder.begin_stage(stage(run.id))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id))
    await recorder.model_call_finished(model_result(begun.id, seq=0), [event(begun.id)])
    await finished(site, run, RunOutcome(State.FAILED, failure=Failure("NoFinding", "There is none.")))
    body = (await administrator.get(f"/namespaces/{namespace}/investigations/alert-1")).body
    assert body["alert"] == run.alert_data and body["runbook"] == run.runbook
    assert body["failure"] == {"reason": "NoFinding", "message": "There is none."}
    (told,) = body["stages"]
    (agent,) = told["agents"]
    assert (told["name"], agent["name"], agent["model"], agent["spent"]["totalTokens"]) == (
        "stage-0",
        "triage-1",
        "scripted",
        120,
    )
    conditions = {one["type"]: (one["status"], one["reason"]) for one in body["conditions"]}
    assert conditions["Finished"] == ("True", "NoFinding") and conditions["Succeeded"] == ("False", "NoFinding")


async def test_one_investigation_shows_its_budget_and_the_turns_of_its_agents_with_their_limits(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    whole = plan(namespace=namespace)
    (planned,) = whole.stages
    agents = (planned.agents[0].model_copy(update={"name": "triage-1", "max_iterations": 7}),)
    stages = (planned.model_copy(update={"name": "stage-0", "agents": agents}),)
    budget = PlannedBudget(tokens=50_000, cost_usd=0.5)
    run = await site.accepted(namespace, plan=whole.model_copy(update={"stages": stages, "budget": budget}))
    unlimited = await site.accepted(namespace, "unlimited")
    await Claims(site.services.pool).claim(await worker(site.services.pool), 10, 1000)
    for number, one in enumerate((run, unlimited)):
        recorder, begun = writer(site.services.pool, one.id), execution(one.id)
        await recorder.begin_stage(stage(one.id))
        await recorder.begin_execution(begun)
        for turn in range(2 - 2 * number):
            await recorder.model_call_started(model_call(begun.id, turn))
            await recorder.model_call_finished(model_result(begun.id, turn, seq=turn), [event(begun.id)])
    path = f"/namespaces/{namespace}/investigations"
    shown = [(await administrator.get(f"{path}/{name}")).body for name in ("alert-1", "unlimited")]
    assert [one["budget"] for one in shown] == [
        {"tokens": 50_000, "costUSD": 0.5, "toolCalls": None, "minutes": None},
        None,
    ]
    turns = [
        (one["stages"][0]["agents"][0]["iterations"], one["stages"][0]["agents"][0]["maxIterations"]) for one in shown
    ]
    assert turns == [(2, 7), (0, None)], "an agent that the plan does not name has no limit"


async def test_a_run_whose_plan_a_newer_version_wrote_is_shown_without_limits(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace)
    text = '{"version": "of tomorrow"}'
    await site.services.pool.execute("UPDATE investigation_input SET plan = $2 WHERE investigation = $1", run.id, text)
    answer = await administrator.get(f"/namespaces/{namespace}/investigations/alert-1")
    assert answer.status == 200 and answer.body["budget"] is None


async def test_an_older_run_of_the_name_is_found_by_its_uid(site: Site, administrator: Visitor, namespace: str) -> None:
    older, newer = await site.accepted(namespace), await site.accepted(namespace)
    path = f"/namespaces/{namespace}/investigations/alert-1"
    assert (await administrator.get(path)).body["uid"] == str(newer.id)
    assert (await administrator.get(path, uid=older.id)).body["uid"] == str(older.id)
    answer = await administrator.get(path, uid=uuid4())
    assert answer.status == 404 and "there is no record of investigation" in answer.message
    assert (await administrator.get(path, uid="none")).status == 400


async def test_a_namespace_that_was_made_anew_knows_nothing_of_its_predecessor(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    run = await site.accepted(namespace, namespace_uid="uid-of-the-predecessor")
    path = f"/namespaces/{namespace}/investigations/alert-1"
    for query in ({}, {"uid": run.id}):
        assert (await administrator.get(path, **query)).status == 404
        assert (await administrator.get(f"{path}/timeline", **query)).status == 404
        assert (await administrator.get(f"{path}/trace", **query)).status == 404
    assert (await administrator.get("/investigations", namespace=namespace)).body["items"] == []


async def test_who_may_not_read_learns_nothing_of_what_there_is(site: Site, namespace: str) -> None:
    await site.accepted(namespace)
    nobody = await site.visitor(namespace, "nobody")
    answers = [await nobody.get(f"/namespaces/{namespace}/investigations/{name}") for name in ("alert-1", "missing")]
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].body == answers[1].body
