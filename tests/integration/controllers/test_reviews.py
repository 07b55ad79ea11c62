"""Tests that Reviews become entries of the log, whoever deletes what, and only those of people who may review."""

from typing import Any
from uuid import UUID

import pytest

import rights
from integration.controllers.desk import Desk, eventually
from tarsy.record.review import ReviewState, summarize_reviews

ANNA = {"username": "anna", "groups": ["reviewers"]}
BEN = {"username": "ben", "groups": ["reviewers"]}
CAUSE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.review.UNREVIEWABLE_SECONDS", 0.3)


async def let_review(desk: Desk) -> None:
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]}
    bound = rights.binding("review", desk.namespace, "Role", "review", rights.group("reviewers"))
    await rights.put_rights(desk.kube, (rights.role("review", desk.namespace, rule), bound))


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
