"""Tests that Reviews become entries of the log, whoever deletes what, and only those of people who may review."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

import rights
from integration.controllers.desk import Desk, eventually
from tarsy.record.judging.review import ReviewState, summarize_reviews
from tarsy.record.judging.shown_confidence import HIGH_FLOOR
from tarsy.store.reading.reads import Reads

ANNA = {"username": "anna", "groups": ["reviewers"]}
BEN = {"username": "ben", "groups": ["reviewers"]}
JUDGED = """
WITH past AS (
    INSERT INTO investigation (id, name, namespace, namespace_uid, alert_type, chain, chain_namespace, plan_hash, state,
        stages_planned, limit_seconds, finding, finished_at, object_deleted_at)
    VALUES (gen_random_uuid(), $1, $2, 'past', 'PodCrash', 'one', $2, 'p', 'completed', 1, 1,
        '{"summary": "s", "confidence": "High"}', now(), now()) RETURNING id
)
INSERT INTO review_summary (investigation, state, verdict, claimed_by, reviewed_by)
SELECT id, 'Reviewed', $3, '{}', '{anna}' FROM past
"""
"""A finding of the Chain `one` with confidence High, and a verdict on it."""

CAUSE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.review.UNREVIEWABLE_SECONDS", 0.3)


async def let_review(desk: Desk) -> None:
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]}
    bound = rights.binding("review", desk.namespace, "Role", "review", rights.group("reviewers"))
    await rights.put_rights(desk.kube, (rights.role("review", desk.namespace, rule), bound))


async def _is(found: Callable[[], Awaitable[object]], wanted: object) -> bool:
    return await found() == wanted


async def log_of(desk: Desk, run: UUID, number: int) -> list[tuple[str, str, str | None]]:
    """Author, action and verdict of each entry, once there are so many."""

    async def look() -> list[tuple[str, str, str | None]] | None:
        log = await desk.reviews.log(run)
        return [(one.author, one.action.value, one.verdict) for one in log] if len(log) >= number else None

    found = await eventually(look)
    assert found is not None
    return found


async def test_a_review_from_claim_to_verdict_outlives_its_objects_and_is_reopened(desk: Desk) -> None:
    await desk.configure()
    await let_review(desk)
    async with desk.controller():
        made = await desk.finished("crash")
        run = UUID(made["metadata"]["uid"])
        about = {"investigationRef": {"name": "crash"}}
        await desk.put("Review", "annas", about | {"author": ANNA})
        await desk.reason("Review", "annas", "Accepted", "True", "Stored")
        assert (await desk.get("Review", "annas"))["status"]["phase"] == "InProgress"
        said = {"verdict": "Right", "rootCause": CAUSE, "note": "token: ghp_0123456789abcdefghijABCDEFGHIJ012345"}
        await desk.kube.patch("Review", desk.namespace, "annas", {"spec": said})
        expected: list[Any] = [("anna", "claimed", None), ("anna", "completed", "Right")]
        assert await log_of(desk, run, 2) == expected
        entry = (await desk.reviews.log(run))[-1]
        assert entry.root_cause == CAUSE and "ghp_0123" not in str(entry.note)

        await desk.kube.delete("Review", desk.namespace, "annas")
        await desk.kube.delete("Investigation", desk.namespace, "crash")
        await desk.put("Review", "bens", about | {"author": BEN, "reopen": True})
        expected.append(("ben", "reopened", None))
        assert await log_of(desk, run, 3) == expected
        assert summarize_reviews(await desk.reviews.log(run)).state is ReviewState.NEEDS_REVIEW
        await desk.kube.patch("Review", desk.namespace, "bens", {"spec": {"reopen": None, "verdict": "Wrong"}})
        assert await log_of(desk, run, 4) == [*expected, ("ben", "completed", "Wrong")]
        status = (await desk.get("Review", "bens"))["status"]
        assert status["investigationUid"] == str(run)


async def test_a_deleted_claim_is_released(desk: Desk) -> None:
    await desk.configure()
    await let_review(desk)
    async with desk.controller():
        run = UUID((await desk.finished("crash"))["metadata"]["uid"])
        await desk.put("Review", "annas", {"investigationRef": {"name": "crash"}, "author": ANNA})
        await log_of(desk, run, 1)
        await desk.kube.delete("Review", desk.namespace, "annas")
        assert (await log_of(desk, run, 2))[-1] == ("anna", "released", None)


async def test_only_people_who_may_review_count_and_only_findings_are_reviewed(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        run = UUID((await desk.finished("crash"))["metadata"]["uid"])
        about = {"investigationRef": {"name": "crash"}, "verdict": "Right"}
        await desk.put("Review", "forged", about | {"author": ANNA})
        message = await desk.reason("Review", "forged", "Accepted", "False", "AuthorForbidden")
        assert "anna may not create reviews.tarsy.dev" in message and "tarsy-reviewer" in message
        await desk.put("Review", "nobodys", about)
        await desk.reason("Review", "nobodys", "Accepted", "False", "AuthorUnknown")
        await desk.put("Review", "of-none", {"investigationRef": {"name": "none"}, "author": ANNA})
        await desk.reason("Review", "of-none", "Accepted", "False", "InvestigationMissing")
        assert await desk.reviews.log(run) == []
        await desk.put("Investigation", "later", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
        await desk.reason("Investigation", "later", "Accepted", "True", "Planned")
        await desk.put("Review", "early", {"investigationRef": {"name": "later"}, "author": ANNA})
        await desk.reason("Review", "early", "Accepted", "False", "StillRunning")
        await let_review(desk)
        await desk.reason("Review", "forged", "Accepted", "True", "Stored")
        await desk.finish(await desk.claim())
        await desk.reason("Review", "early", "Accepted", "True", "Stored")


@pytest.mark.once("the API takes no part in it; test_kubectl shows the column on both")
async def test_statuses_that_were_published_show_high_with_the_count_of_now(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.readiness.calibration.CALIBRATION_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.readiness.calibration.SHOWING_SECONDS", 0.1)
    monkeypatch.setattr("tarsy.controllers.readiness.calibration.SHOWN_AT_ONCE", 1)
    desk.reads = Reads(desk.pool, HIGH_FLOOR)
    await desk.configure()
    past = [(f"past-{n}", desk.namespace, "Right" if n < 12 else "Wrong") for n in range(19)]
    await desk.pool.executemany(JUDGED, past)

    async def shown() -> list[str | None]:
        found = [(await desk.get("Investigation", name))["status"]["finding"] for name in ("first", "second")]
        assert {one["confidence"] for one in found} == {"High"}, "the word of the agents stays"
        return [one.get("shownConfidence") for one in found]

    async with desk.controller():
        for name in ("first", "second"):
            await desk.finished(name)
        assert await shown() == [None, None], "19 verdicts are too few"
        await desk.pool.execute(JUDGED, "past-19", desk.namespace, "Wrong")
        await eventually(lambda: _is(shown, ["High (12 of 20 right)"] * 2))
    await desk.pool.execute("UPDATE review_summary SET verdict = 'Right'")
    async with desk.controller():  # as after a restart: what was shown is read from the statuses
        await eventually(lambda: _is(shown, [None, None]))
