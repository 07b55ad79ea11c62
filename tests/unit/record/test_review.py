"""Tests what a log of reviews amounts to."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.record.judging.review import (
    ReviewableRun,
    ReviewAction,
    ReviewActivity,
    ReviewState,
    ReviewVerdict,
    summarize_reviews,
    why_unreviewable,
)

RIGHT, PARTLY, WRONG = ReviewVerdict
CLAIM, COMPLETE, REOPEN, RELEASE = ReviewAction


def entry(author: str, action: ReviewAction, verdict: ReviewVerdict | None = None, **rest: Any) -> ReviewActivity:
    """An entry of the Review of a person that is named as they are."""
    return ReviewActivity(rest.pop("review", f"of-{author}"), author, action, verdict, **rest)


def test_without_an_entry_an_investigation_needs_review() -> None:
    summary = summarize_reviews([])
    assert (summary.state, summary.verdict, summary.claimed_by) == (ReviewState.NEEDS_REVIEW, None, ())


def test_a_claim_is_in_progress_until_its_author_completes_it() -> None:
    claimed = summarize_reviews([entry("anna", CLAIM)])
    assert claimed.state is ReviewState.IN_PROGRESS and claimed.claimed_by == ("anna",)
    done = summarize_reviews([entry("anna", CLAIM), entry("anna", COMPLETE, RIGHT)])
    assert done.state is ReviewState.REVIEWED and done.claimed_by == () and done.verdict is RIGHT


def test_a_deleted_claim_is_released_and_that_of_another_person_stays() -> None:
    log = [entry("anna", CLAIM), entry("ben", CLAIM), entry("anna", RELEASE)]
    assert summarize_reviews(log).claimed_by == ("ben",)
    assert summarize_reviews([*log, entry("ben", RELEASE)]).state is ReviewState.NEEDS_REVIEW


def test_a_released_review_releases_no_claim_by_another_review_of_the_person() -> None:
    log = [entry("anna", CLAIM, review="one"), entry("anna", CLAIM, review="two"), entry("anna", RELEASE, review="one")]
    assert summarize_reviews(log).claimed_by == ("anna",)


def test_a_person_counts_once_by_the_newest_verdict() -> None:
    log = [entry("anna", COMPLETE, WRONG), entry("anna", COMPLETE, RIGHT, review="second")]
    summary = summarize_reviews(log)
    assert summary.verdict is RIGHT and [one.review for one in summary.counted] == ["second"]


def test_the_least_favourable_verdict_is_that_of_the_investigation() -> None:
    log = [entry("anna", COMPLETE, RIGHT), entry("ben", COMPLETE, PARTLY)]
    assert summarize_reviews(log).verdict is PARTLY
    assert summarize_reviews([*log, entry("eve", COMPLETE, WRONG)]).verdict is WRONG
    assert summarize_reviews([*log, entry("ben", COMPLETE, RIGHT)]).verdict is RIGHT


def test_a_verdict_that_is_taken_back_does_not_count() -> None:
    summary = summarize_reviews([entry("anna", COMPLETE, RIGHT), entry("anna", CLAIM)])
    assert summary.state is ReviewState.IN_PROGRESS and summary.verdict is None


def test_after_a_reopening_only_later_verdicts_count() -> None:
    log = [entry("anna", COMPLETE, RIGHT), entry("ben", CLAIM), entry("eve", REOPEN)]
    reopened = summarize_reviews(log)
    assert reopened.state is ReviewState.NEEDS_REVIEW and reopened.counted == () and reopened.claimed_by == ()
    assert summarize_reviews([*log, entry("ben", COMPLETE, WRONG)]).verdict is WRONG


def test_the_root_cause_is_that_of_the_newest_counted_verdict_which_names_one() -> None:
    first, second = {"kind": "Deployment", "name": "a"}, {"kind": "Deployment", "name": "b"}
    log = [
        entry("anna", COMPLETE, RIGHT, root_cause=first),
        entry("ben", COMPLETE, RIGHT, root_cause=second),
        entry("eve", COMPLETE, RIGHT),
    ]
    assert summarize_reviews(log).root_cause == second
    assert summarize_reviews([*log, entry("anna", COMPLETE, RIGHT, root_cause=first)]).root_cause == first


_STEPS = st.lists(
    st.one_of(
        st.builds(entry, st.sampled_from("abc"), st.sampled_from([CLAIM, REOPEN, RELEASE])),
        st.builds(entry, st.sampled_from("abc"), st.just(COMPLETE), st.sampled_from(list(ReviewVerdict))),
    ),
    max_size=20,
)


@given(_STEPS)
def test_nobody_counts_twice_and_no_verdict_is_better_than_one_that_counts(log: list[ReviewActivity]) -> None:
    summary = summarize_reviews(log)
    authors = [one.author for one in summary.counted]
    assert len(authors) == len(set(authors))
    assert (summary.state is ReviewState.REVIEWED) == bool(summary.counted)
    assert all(one.verdict is not None and summary.verdict is not None for one in summary.counted)
    assert all(one.verdict.severity <= summary.verdict.severity for one in summary.counted if one.verdict)
    since = max((place for place, one in enumerate(log) if one.action is REOPEN), default=-1)
    assert all(any(one is late for late in log[since + 1 :]) for one in summary.counted)
    for one in summary.counted:  # nothing newer of the same person counts
        later = log[max(place for place, found in enumerate(log) if found is one) + 1 :]
        assert all(not (found.author == one.author and found.action is COMPLETE) for found in later)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (None, "InvestigationMissing"),
        ((True, True, True), "IsReplay"),
        ((False, False, False), "StillRunning"),
        ((True, False, False), "NoFinding"),
        ((True, True, False), None),
    ],
)
def test_only_findings_of_finished_runs_are_reviewed(run: tuple[bool, bool, bool] | None, reason: str | None) -> None:
    found = None if run is None else ReviewableRun(uuid4(), *run)
    told = why_unreviewable(found, "Investigation shop/a")
    assert (told[0] if told else None) == reason
    assert told is None or "shop/a" in told[1]
