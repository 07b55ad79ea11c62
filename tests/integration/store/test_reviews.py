"""Tests the stored reviews: a log that only grows, and the queue that is made of it."""

import asyncio
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import new_run
from tarsy.observe.metric_table import FINDING_VERDICTS
from tarsy.observe.metrics import Metrics
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.review import ReviewAction, ReviewActivity, ReviewState, ReviewVerdict
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.store.judging.calibration import Verdicts
from tarsy.store.judging.reviews import ReviewLogFull, Reviews
from tarsy.store.runs.lifecycle import Runs

NEEDS, PROGRESS, REVIEWED = ReviewState
CAUSE = {"kind": "Deployment", "name": "checkout"}


def claim(author: str) -> ReviewActivity:
    return ReviewActivity(f"of-{author}", author, ReviewAction.CLAIMED)


def verdict(author: str, found: ReviewVerdict = ReviewVerdict.RIGHT) -> ReviewActivity:
    return ReviewActivity(f"of-{author}", author, ReviewAction.COMPLETED, found, CAUSE, "It said so.")


async def ended(pool: asyncpg.Pool, name: str, minute: int = 0, *, finding: bool = True) -> UUID:
    """A finished run on record."""
    run = new_run(name=name)
    await Runs(pool).accept(run)
    found = Finding(summary="The image is gone.", confidence=Confidence.HIGH).model_dump(mode="json", by_alias=True)
    await pool.execute(
        "UPDATE investigation SET state = 'completed', finding = $2,"
        " finished_at = timestamptz '2026-01-01 00:00Z' + make_interval(mins => $3) WHERE id = $1",
        run.id,
        found if finding else None,
        minute,
    )
    return run.id


async def names(reviews: Reviews, state: ReviewState) -> list[str]:
    return [one.name for one in await reviews.queue(state, None, 10)]


async def test_what_is_said_again_is_stored_once(pool: asyncpg.Pool) -> None:
    reviews, run, review = Reviews(pool), await ended(pool, "a"), uuid4()
    await asyncio.gather(*(reviews.note(run, review, claim("anna")) for _ in range(4)))
    assert [one.action for one in await reviews.log(run)] == [ReviewAction.CLAIMED]
    await reviews.note(run, review, verdict("anna"))
    await reviews.note(run, uuid4(), verdict("anna"))  # from a backup, with another uid
    log = await reviews.log(run)
    assert [one.action for one in log] == [ReviewAction.CLAIMED, ReviewAction.COMPLETED]
    assert log[1].root_cause == CAUSE and log[1].note == "It said so." and log[1].at is not None


async def test_the_queue_has_each_finished_finding_in_one_state(pool: asyncpg.Pool) -> None:
    reviews = Reviews(pool)
    runs = {name: await ended(pool, name, minute) for minute, name in enumerate("abc")}
    await ended(pool, "without-finding", finding=False)
    await Runs(pool).accept(new_run(name="not-ended"))
    assert await names(reviews, NEEDS) == ["c", "b", "a"]
    await reviews.note(runs["a"], uuid4(), claim("anna"))
    await reviews.note(runs["b"], uuid4(), verdict("ben", ReviewVerdict.WRONG))
    assert (await names(reviews, NEEDS), await names(reviews, PROGRESS)) == (["c"], ["a"])
    (found,) = await reviews.queue(REVIEWED, ["uid-of-team-a"], 10)
    assert (found.name, found.verdict, found.reviewed_by) == ("b", ReviewVerdict.WRONG, ("ben",))
    assert found.confidence == "High" and found.summary == "The image is gone."
    assert await reviews.queue(REVIEWED, ["of-another-namespace"], 10) == []


async def test_the_queue_goes_on_after_a_page(pool: asyncpg.Pool) -> None:
    reviews = Reviews(pool)
    for minute, name in enumerate("abc"):
        await ended(pool, name, minute)
    first = await reviews.queue(NEEDS, None, 2)
    rest = await reviews.queue(NEEDS, None, 2, (first[-1].finished_at, first[-1].id))
    assert [one.name for one in (*first, *rest)] == ["c", "b", "a"]


async def test_a_deleted_claim_is_released_and_a_verdict_stays(pool: asyncpg.Pool) -> None:
    reviews, run = Reviews(pool), await ended(pool, "a")
    claimed, completed = uuid4(), uuid4()
    await reviews.note(run, claimed, claim("anna"))
    assert await reviews.release(claimed) == run and await reviews.release(claimed) is None
    assert await names(reviews, NEEDS) == ["a"]
    await reviews.note(run, completed, verdict("ben"))
    assert await reviews.release(completed) is None
    assert await names(reviews, REVIEWED) == ["a"]
    await reviews.note(run, claimed, claim("anna"))  # the object came back
    assert [one.action.value for one in await reviews.log(run)] == ["claimed", "released", "completed", "claimed"]


async def test_a_log_is_bounded(pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.store.judging.reviews.MAX_REVIEW_ACTIVITIES", 3)
    reviews, run = Reviews(pool), await ended(pool, "a")
    for author in ("anna", "ben", "eve"):
        await reviews.note(run, uuid4(), claim(author))
    await reviews.note(run, uuid4(), claim("eve"))  # says nothing new
    with pytest.raises(ReviewLogFull, match="at most 3 entries"):
        await reviews.note(run, uuid4(), claim("zoe"))


async def test_reviews_go_with_the_record_and_no_earlier(pool: asyncpg.Pool) -> None:
    reviews, run = Reviews(pool), await ended(pool, "a")
    await reviews.note(run, uuid4(), verdict("anna"))
    await pool.execute("UPDATE investigation SET object_deleted_at = now() WHERE id = $1", run)
    assert (await reviews.queue(REVIEWED, None, 1))[0].object_deleted_at is not None
    await pool.execute("DELETE FROM investigation WHERE id = $1", run)
    assert await reviews.log(run) == [] and await reviews.queue(REVIEWED, None, 1) == []
    assert await reviews.note(run, uuid4(), verdict("anna")) is None
    assert await reviews.reviewable("team-a", "uid-of-team-a", "a") is None


async def test_a_namespace_of_the_same_name_has_no_findings_of_the_deleted_one(pool: asyncpg.Pool) -> None:
    reviews, run = Reviews(pool), await ended(pool, "a")
    found = await reviews.reviewable("team-a", "uid-of-team-a", "a")
    assert found is not None and found.id == run
    assert await reviews.reviewable("team-a", "another-uid", "a") is None
    assert await reviews.reviewable("team-a", "another-uid", "a", run) is None


async def test_verdicts_are_counted_by_chain_and_confidence(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    reviews = Reviews(pool, metrics)
    runs = [await ended(pool, name, minute) for minute, name in enumerate("abc")]
    await reviews.note(runs[0], uuid4(), verdict("anna"))
    review = uuid4()
    for _ in range(2):
        await reviews.note(runs[1], review, verdict("anna", ReviewVerdict.WRONG))
    await reviews.note(runs[2], uuid4(), claim("anna"))
    verdicts, chain = Verdicts(pool), ("team-a", "crashloop")
    found = await verdicts.judged([chain, ("team-b", "crashloop"), ("team-a", "other"), chain])
    assert [one.verdict for one in found.pop(chain)] == [ReviewVerdict.WRONG, ReviewVerdict.RIGHT] and not found
    assert await verdicts.judged([]) == {} and len((await verdicts.judged([chain], 1))[chain]) == 1
    assert await verdicts.high([chain], 0.4) == {chain: HighVerdicts(1, 2, 0.4)}
    assert metrics.value(FINDING_VERDICTS, confidence="High", verdict="Wrong") == 1
