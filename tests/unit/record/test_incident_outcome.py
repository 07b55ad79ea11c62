"""Tests the decision on the outcome of a finding from what its alert did afterwards."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.record.judging.incident_outcome import IncidentCourse, IncidentOutcome, OutcomePeriods, decide_outcome

FOUND = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
PERIODS = OutcomePeriods(settle=4 * HOUR, recurrence=2 * HOUR)
SETTLED, RECURRED = IncidentOutcome.SETTLED, IncidentOutcome.RECURRED


def course(settled: float | None = None, again: float | None = None, number: int = 1) -> IncidentCourse:
    """An incident by hours after the finding."""
    settled_at, fired = (None if hours is None else FOUND + hours * HOUR for hours in (settled, again))
    return IncidentCourse(UUID(int=number), settled_at, fired)


def decided(*courses: IncidentCourse, hours: float) -> IncidentOutcome | None:
    return decide_outcome(courses, FOUND, FOUND + hours * HOUR, PERIODS).outcome


@pytest.mark.parametrize(
    ("settled", "again", "hours", "outcome"),
    [
        (1, None, 2.99, None),
        (1, None, 3, SETTLED),
        (4, None, 6, SETTLED),
        (4.01, None, 100, None),
        (-3, None, 1.99, None),
        (-3, None, 2, SETTLED),
        (1, 2, 2, RECURRED),
        (1, 3, 3, RECURRED),
        (1, 3.01, 4, SETTLED),
        (4.01, 5, 5, None),
        (None, None, 100, None),
        (None, 1, 1, RECURRED),
        (None, 2.01, 3, None),
    ],
)
def test_periods_count_from_the_finding_and_from_the_resolve(
    settled: float | None, again: float | None, hours: float, outcome: IncidentOutcome | None
) -> None:
    assert decided(course(settled, again), hours=hours) is outcome


def test_without_an_incident_nothing_is_known_and_nothing_is_waited_for() -> None:
    decision = decide_outcome([], FOUND, FOUND, PERIODS)
    assert (decision.outcome, decision.look_at) == (None, None)


def test_every_folded_incident_must_settle_and_one_that_recurs_is_enough() -> None:
    first, second = course(1, number=1), course(2, number=2)
    assert decided(first, second, hours=3) is None
    assert decided(first, second, hours=4) is SETTLED
    assert decided(first, course(number=2), hours=100) is None
    decision = decide_outcome([first, course(1, 1.5, 2)], FOUND, FOUND + 1.5 * HOUR, PERIODS)
    assert decision.outcome is RECURRED and decision.incidents == {UUID(int=2): RECURRED}


_HOURS = st.none() | st.floats(-5, 30, allow_nan=False)
_COURSES = st.lists(st.tuples(_HOURS, _HOURS), max_size=5).map(
    lambda found: [
        course(settled, None if again is None or again <= (settled or 0) else again, number)
        for number, (settled, again) in enumerate(found)
    ]
)


def _seen(one: IncidentCourse, now: datetime) -> IncidentCourse:
    """What is on record of an incident at a time."""
    settled = one.settled_at if one.settled_at is not None and one.settled_at <= now else None
    fired = one.fired_again_at if one.fired_again_at is not None and one.fired_again_at <= now else None
    return replace(one, settled_at=settled, fired_again_at=fired)


@given(courses=_COURSES, data=st.data(), hours=st.floats(0, 40))
def test_the_order_of_incidents_does_not_matter(
    courses: list[IncidentCourse], data: st.DataObject, hours: float
) -> None:
    now = FOUND + hours * HOUR
    shuffled = data.draw(st.permutations(courses))
    assert decide_outcome(shuffled, FOUND, now, PERIODS) == decide_outcome(courses, FOUND, now, PERIODS)


@given(courses=_COURSES, hours=st.floats(0, 40))
def test_nothing_is_settled_before_the_period_of_recurrence_is_over(
    courses: list[IncidentCourse], hours: float
) -> None:
    now = FOUND + hours * HOUR
    if decide_outcome([_seen(one, now) for one in courses], FOUND, now, PERIODS).outcome is SETTLED:
        resolved = [max(one.settled_at, FOUND) for one in courses if one.settled_at is not None]
        assert len(resolved) == len(courses) and max(resolved) + PERIODS.recurrence <= now


@given(courses=_COURSES, looks=st.lists(st.floats(0, 40), max_size=4))
def test_a_decision_does_not_depend_on_when_it_was_looked_for(
    courses: list[IncidentCourse], looks: list[float]
) -> None:
    """Looks at any times end like a single look at the end."""
    last = FOUND + 50 * HOUR
    events = [at for one in courses for at in (one.settled_at, one.fired_again_at) if at is not None and at >= FOUND]
    due = sorted({FOUND, *events, *(FOUND + hours * HOUR for hours in looks)})
    outcome: IncidentOutcome | None = None
    while due:
        now = due.pop(0)
        decision = decide_outcome([_seen(one, now) for one in courses], FOUND, now, PERIODS)
        if decision.outcome is not None:
            outcome = decision.outcome
            break
        if decision.look_at is not None:
            assert decision.look_at > now, "a look that is asked for again at once would never end"
            due = sorted({*due, decision.look_at})
    assert outcome is decide_outcome(courses, FOUND, last, PERIODS).outcome


@given(courses=_COURSES, skew=st.floats(-72, 72))
def test_a_shift_of_all_times_changes_nothing(courses: list[IncidentCourse], skew: float) -> None:
    shift = timedelta(hours=skew)
    moved = [
        IncidentCourse(
            one.id,
            None if one.settled_at is None else one.settled_at + shift,
            None if one.fired_again_at is None else one.fired_again_at + shift,
        )
        for one in courses
    ]
    now = FOUND + 50 * HOUR
    assert (
        decide_outcome(moved, FOUND + shift, now + shift, PERIODS).incidents
        == decide_outcome(courses, FOUND, now, PERIODS).incidents
    )
