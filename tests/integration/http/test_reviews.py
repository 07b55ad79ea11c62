"""Tests the queue of reviews over HTTP, what was said about one finding, and verdicts with the caller's own token."""

from uuid import uuid4

import pytest
import yaml

from integration.http.site import Site, Visitor
from integration.store.build import worker
from tarsy.cli.reports.calibration import list_calibration
from tarsy.cli.reports.reviews import SaidReview, list_reviewable, show_reviews, write_reviews
from tarsy.cli.runs.why import explain_finding
from tarsy.client.direct import DirectClient
from tarsy.client.errors import ApiUseError
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.review import ReviewAction, ReviewActivity, ReviewVerdict
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.run import RunOutcome, State
from tarsy.store.judging.reviews import Reviews
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

REVIEWER = [{"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]}]
READER = [
    {"apiGroups": ["record.tarsy.dev"], "resources": ["calibration", "reviews"], "verbs": ["list"]},
    {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/review"], "verbs": ["get"]},
]


async def ended(site: Site, namespace: str, name: str, **spec: object) -> None:
    """A finished investigation, on record and as an object."""
    made = await site.put("Investigation", namespace, name, {"alert": {"alertType": "PodCrash", "data": "x"}, **spec})
    pool = site.services.pool
    run = await site.accepted(namespace, name, id=made["metadata"]["uid"])
    await Claims(pool).claim(await worker(pool), 10, 1000)
    finding = Finding(summary="The image is gone.", confidence=Confidence.HIGH)
    await Runs(pool).finish(run.id, 1, RunOutcome(State.COMPLETED, finding=finding))


async def test_findings_are_listed_by_state_and_read_with_what_was_said(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    for name in ("first", "second"):
        await ended(site, namespace, name)
    listed = await administrator.get("/reviews", namespace=namespace, limit=1)
    assert [one["name"] for one in listed.body["items"]] == ["second"]
    rest = await administrator.get("/reviews", namespace=namespace, limit=1, **{"continue": listed.body["continue"]})
    assert [one["name"] for one in rest.body["items"]] == ["first"] and rest.body["continue"] is None
    assert (await administrator.get("/reviews", **{"continue": listed.body["continue"]})).status == 400
    reviews = Reviews(site.services.pool)
    run = (await administrator.get(f"/namespaces/{namespace}/investigations/first/review")).body
    assert (run["state"], run["reviewable"], run["activity"]) == ("NeedsReview", True, [])
    cause = {"kind": "Deployment", "name": "checkout"}
    said = ReviewActivity("annas", "anna", ReviewAction.COMPLETED, ReviewVerdict.PARTLY, cause, "Half of it.")
    await reviews.note(run["uid"], uuid4(), said)
    found = (await administrator.get(f"/namespaces/{namespace}/investigations/first/review")).body
    assert (found["state"], found["verdict"], found["rootCause"]["name"]) == ("Reviewed", "Partly", "checkout")
    (entry,) = found["activity"]
    assert entry["author"] == "anna" and entry["note"] == "Half of it." and entry["counted"] is True
    done = await administrator.get(f"/namespaces/{namespace}/reviews", state="Reviewed")
    assert [(one["name"], one["reviewedBy"]) for one in done.body["items"]] == [("first", ["anna"])]


async def test_high_is_shown_with_its_count_once_people_found_it_wrong_too_often(
    site: Site, administrator: Visitor, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, path = site.services.pool, f"/namespaces/{namespace}/investigations/run-0"
    chain = f"chain-of-{namespace}"
    for number in range(21):
        await ended(site, namespace, f"run-{number}")
    await pool.execute("UPDATE tarsy.investigation SET chain = $1 WHERE namespace = $2", chain, namespace)
    assert (await administrator.get("/calibration", namespace=namespace)).body["items"] == []
    first = (await administrator.get(path)).body["uid"]

    async def judge(numbers: range, verdict: ReviewVerdict) -> None:
        for number in numbers:
            run = (await administrator.get(f"/namespaces/{namespace}/investigations/run-{number}")).body["uid"]
            said = ReviewActivity(f"r-{number}", "anna", ReviewAction.COMPLETED, verdict)
            await Reviews(pool).note(run, uuid4(), said)

    async def shown() -> tuple[str, str, str]:
        """As the investigation, its timeline and the command show it; so do the list and a comparison."""
        whole, told = await administrator.get(path), await administrator.get(f"{path}/timeline")
        async with DirectClient(site.base, token_of(administrator), namespace) as client:
            capsys.readouterr()
            await explain_finding(client, namespace, "run-0", "text")
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Confidence: ")]
        word = line.removeprefix("Confidence: ").strip()
        (listed,) = (await administrator.get("/investigations", namespace=namespace, limit=1, sort="oldest")).body[
            "items"
        ]
        assert listed["finding"]["shownConfidence"] == word
        compared = (await administrator.get(f"{path}/trace/comparison", other="run-0")).body
        assert [compared[side]["shownConfidence"] for side in ("first", "second")] == [word] * 2
        finding = told.body["investigation"]["finding"]
        assert whole.body["finding"]["confidence"] == finding["confidence"] == "High"
        return whole.body["finding"]["shownConfidence"], finding["shownConfidence"], word

    await judge(range(12), ReviewVerdict.RIGHT)
    await judge(range(12, 19), ReviewVerdict.PARTLY)
    assert await shown() == ("High",) * 3, "19 verdicts are too few"
    await judge(range(19, 20), ReviewVerdict.WRONG)
    assert await shown() == ("High (12 of 20 right)",) * 3
    (listed, *_) = (await administrator.get("/reviews", namespace=namespace, state="Reviewed")).body["items"]
    assert (listed["confidence"], listed["shownConfidence"]) == ("High", "High (12 of 20 right)")
    reader = await site.visitor(namespace, "eve", here=READER)
    assert (await reader.get("/calibration")).status == 403
    (told,) = (await reader.get(f"/namespaces/{namespace}/calibration")).body["items"]
    assert (told["chain"], told["calibrated"], told["reason"]) == (chain, False, "HighUnreliable")
    assert "right in 12 of 20 reviews" in told["message"]
    assert told["classes"] == [
        {
            "confidence": "High",
            **{"right": 12, "total": 20, "low": 0.3866, "high": 0.7812, "drifted": False},
            **{"recent": {"right": 12, "total": 20}, "before": {"right": 0, "total": 0}},
        }
    ]
    async with DirectClient(site.base, token_of(reader), namespace) as client:
        capsys.readouterr()
        assert await list_calibration(client, namespace, "text") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{chain} High 12 of 20 60% 39 to 78% 12 of 20 - False" in text and "Do not rely on High" in text
    record = await site.services.reads.record(first)
    assert record is not None and record.high_verdicts == HighVerdicts(12, 20)
    unknown = await Reads(pool).record(first)
    assert unknown is not None and unknown.high_verdicts is None, "without a floor nothing is told"
    await pool.execute("UPDATE tarsy.investigation SET chain = 'another' WHERE id = $1", first)
    assert await shown() == ("High",) * 3, "verdicts on another Chain count for that"


async def test_several_are_reviewed_at_once_and_each_refusal_is_told(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await ended(site, namespace, "one")
    await ended(site, namespace, "two")
    reviewer = await site.visitor(namespace, "anna", here=REVIEWER)
    body = {"action": "Complete", "verdict": "Wrong", "investigations": ["one", "none", "two", "one"]}
    answer = await reviewer.post(f"/namespaces/{namespace}/reviews", body)
    assert [(one["investigation"], one["error"] is None) for one in answer.body["items"]] == [
        ("one", True),
        ("none", False),
        ("two", True),
    ]
    assert "there is no record of Investigation" in answer.body["items"][1]["error"]
    made = await site.services.kube.list("Review", namespace)
    investigation = await site.services.kube.get("Investigation", namespace, "one")
    (of_one,) = [one for one in made if one["spec"]["investigationRef"]["name"] == "one"]
    assert of_one["spec"]["verdict"] == "Wrong"
    assert of_one["spec"]["investigationRef"]["uid"] == investigation["metadata"]["uid"]
    assert of_one["metadata"]["ownerReferences"][0]["uid"] == investigation["metadata"]["uid"]
    wrong_ones: tuple[dict[str, object], ...] = (
        {"action": "Complete"},
        {"action": "Claim", "verdict": "Right"},
        {"action": "Claim", "note": 1},
        {"action": "Claim", "investigations": [f"i-{n}" for n in range(51)]},
    )
    for wrong in wrong_ones:
        refused = await reviewer.post(f"/namespaces/{namespace}/reviews", {"investigations": ["one"]} | wrong)
        assert refused.status == 400, wrong
    viewer = await site.visitor(namespace, "eve", here=READER)
    assert (await viewer.get(f"/namespaces/{namespace}/reviews")).status == 200
    assert (await viewer.post(f"/namespaces/{namespace}/reviews", body)).status == 403


async def test_commands_review_findings_and_make_cases_of_them(
    site: Site, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await ended(site, namespace, "shop.one")
    reviewer = await site.visitor(namespace, "anna", here=[*REVIEWER, *READER])
    async with DirectClient(site.base, token_of(reviewer), namespace) as client:
        assert await list_reviewable(client, namespace, "NeedsReview", 50, "text") == 0
        assert "shop.one" in capsys.readouterr().out
        said = SaidReview("Complete", "Right", "Deployment/checkout", "As it said.")
        assert await write_reviews(client, namespace, ["shop.one"], said, "text") == 0
        assert await write_reviews(client, namespace, ["none"], said, "text") == 1
        with pytest.raises(ApiUseError, match="write KIND/NAME"):
            await write_reviews(client, namespace, ["shop.one"], SaidReview("Complete", "Right", "checkout"), "text")
        with pytest.raises(ApiUseError, match="no verdict that counts names the root cause"):
            await show_reviews(client, namespace, ["shop.one"], "text", as_case=True)
        run = await Reviews(site.services.pool).reviewable(namespace, await site.uid_of(namespace), "shop.one")
        assert run is not None
        cause = {"kind": "Deployment", "name": "checkout"}
        entry = ReviewActivity("annas", "anna", ReviewAction.COMPLETED, ReviewVerdict.RIGHT, cause, "As it said.")
        await Reviews(site.services.pool).note(run.id, uuid4(), entry)
        capsys.readouterr()
        assert await show_reviews(client, namespace, ["shop.one"], "text", as_case=True) == 0
        case = capsys.readouterr().out
        assert case.startswith(f"# {namespace}/shop.one: Right by anna. Outcome: not known\n- name: shop-one\n")
        await site.services.pool.execute("UPDATE tarsy.investigation SET incident_outcome = 'Recurred'")
        assert await show_reviews(client, namespace, ["shop.one"], "text", as_case=True) == 0
        case = capsys.readouterr().out
        assert "Right by anna. Outcome: Recurred (the alert fired again)\n" in case
        assert [one["name"] for one in yaml.safe_load(case)] == ["shop-one"]
        assert "name: shop-one" in case and "- Deployment/checkout" in case and f"uid: {run.id}" in case
        assert await show_reviews(client, namespace, ["shop.one"], "text", as_case=False) == 0
        shown = capsys.readouterr().out
        assert (
            "Reviewed Right Recurred" in " ".join(shown.split())
            and "anna completed: Right, root cause Deployment/checkout" in shown
        )


def token_of(visitor: Visitor) -> str:
    return str(visitor.session.headers["Authorization"]).removeprefix("Bearer ")
