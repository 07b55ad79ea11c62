"""Decides the outcome of a finding from what its alert did afterwards, without a model.

Decision: an outcome says only what was observed. An alert that settles does not prove that the finding was right, so an
outcome is a weaker label than a Review, and is never counted as one. All times are those of Postgres: clocks of senders
may be wrong, and notifications may arrive in any order (migration 41 keeps what is left of their order).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

SETTLE_SECONDS: Final = 24 * 3600.0
"""Time after a finding within which its alert must be resolved to count as settled."""

RECURRENCE_SECONDS: Final = 24 * 3600.0
"""Time after the resolve within which a firing counts as the same incident again."""


class IncidentOutcome(StrEnum):
    """Lists the outcomes of the alert of a finding."""

    SETTLED = "Settled"
    RECURRED = "Recurred"
    CHANGED_AND_SETTLED = "ChangedAndSettled"


_SENTENCES = {
    IncidentOutcome.SETTLED: "Outcome: Settled (the alert was resolved and did not fire again)",
    IncidentOutcome.RECURRED: "Outcome: Recurred (the alert fired again)",
    IncidentOutcome.CHANGED_AND_SETTLED: "Outcome: ChangedAndSettled (what the finding blames was changed, and the "
    "alert did not fire again)",
}


def outcome_sentence(outcome: IncidentOutcome) -> str:
    """Returns an outcome with its meaning, for people."""
    return _SENTENCES[outcome]


@dataclass(frozen=True, slots=True)
class IncidentCourse:
    """Holds the course of an incident after a finding.

    Attributes:
        id: the incident.
        settled_at: when it was first reported as resolved; None: it was not.
        fired_again_at: the first firing after that; of an incident that was not resolved, the first new one of its
            alerts after the finding. None: there was none.
    """

    id: UUID
    settled_at: datetime | None = None
    fired_again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutcomePeriods:
    """Holds the periods for which incidents are followed.

    Attributes:
        settle: time after the finding within which an alert must be resolved.
        recurrence: time after the resolve within which a firing is a recurrence.
    """

    settle: timedelta = timedelta(seconds=SETTLE_SECONDS)
    recurrence: timedelta = timedelta(seconds=RECURRENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class OutcomeDecision:
    """Holds the decision about the outcome of a run.

    Attributes:
        outcome: of the run, but for changes; None: not known, or not yet.
        look_at: when to look next if nothing happens before; None: nothing can change any more.
        incidents: the outcomes of its incidents that are known.
    """

    outcome: IncidentOutcome | None
    look_at: datetime | None
    incidents: Mapping[UUID, IncidentOutcome] = field(default_factory=dict)


def decide_outcome(
    courses: Sequence[IncidentCourse], found_at: datetime, now: datetime, periods: OutcomePeriods
) -> OutcomeDecision:
    """Decides the outcome of a run: of the incident of its alert, and of those that were folded into it.

    One that recurred decides at once. Else all must have settled.

    Args:
        courses: its incidents.
        found_at: when the run ended with its finding.
        now: the time of Postgres.
        periods: how long incidents are followed.
    """
    looks = [(course.id, _decide_one(course, found_at, now, periods)) for course in courses]
    known = {incident: one for incident, one in looks if isinstance(one, IncidentOutcome)}
    if IncidentOutcome.RECURRED in known.values():
        return OutcomeDecision(IncidentOutcome.RECURRED, None, known)
    if courses and len(known) == len(courses):
        return OutcomeDecision(IncidentOutcome.SETTLED, None, known)
    # All must have settled, and a recurrence wakes the look: so the last period counts.
    return OutcomeDecision(None, max((one for _, one in looks if isinstance(one, datetime)), default=None), known)


def _decide_one(
    course: IncidentCourse, found_at: datetime, now: datetime, periods: OutcomePeriods
) -> IncidentOutcome | datetime | None:
    """Returns the outcome of an incident, else when to look next; None: it has none."""
    resolved = found_at if course.settled_at is None else max(course.settled_at, found_at)
    if resolved > found_at + periods.settle:
        return None
    over = resolved + periods.recurrence
    if course.fired_again_at is not None and course.fired_again_at <= over:
        return IncidentOutcome.RECURRED
    if course.settled_at is not None:
        return IncidentOutcome.SETTLED if now >= over else over
    last = found_at + max(periods.settle, periods.recurrence)
    return last if now < last else None
