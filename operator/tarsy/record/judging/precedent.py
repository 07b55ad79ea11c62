"""Defines precedents: finished investigations that a run is told about, as history and never as evidence.

Decision: a precedent is read from the record when a run is accepted, and frozen with its input, so that an attempt that
resumes and a replay are told the same. It is text of a model (class X), and how that model's finding ended is what
people and later events say of it, so both stand on one line.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from tarsy.record.finding import Confidence

MOST_PRECEDENTS = 3
"""Maximum precedents that a run is told about."""

LONGEST_PRECEDENT = 320
"""Maximum characters of the summary of a precedent."""

LONGEST_REVIEWER = 128
"""Maximum characters of the name of a reviewer."""


class PrecedentMatch(StrEnum):
    """Why a finished investigation is a precedent, the strongest reason first."""

    INCIDENT = "Incident"
    WORKLOAD = "Workload"
    CHANGED_OBJECT = "ChangedObject"
    WORDS = "Words"


class PrecedentEnding(StrEnum):
    """Lists the endings of precedents according to reviews: right, partly right, unknown, wrong."""

    CONFIRMED = "Confirmed"
    PARTLY = "Partly"
    UNKNOWN = "Unknown"
    REFUTED = "Refuted"


class Precedent(BaseModel):
    """A finished investigation that a run is told about.

    `matched` names what both have in common: the incident key, the workload, or the changed object. `reviewer` is the
    person whose review decided `ending`, `outcome` what happened to the incident; None: not known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: UUID
    namespace: str
    name: str
    finished_at: datetime
    match: PrecedentMatch
    matched: str = ""
    summary: str
    confidence: Confidence
    ending: PrecedentEnding = PrecedentEnding.UNKNOWN
    reviewer: str | None = None
    outcome: str | None = None
    score: float = 0.0


_MATCHES = {match: place for place, match in enumerate(PrecedentMatch)}
_ENDINGS = {ending: place for place, ending in enumerate(PrecedentEnding)}


def rank_precedents(found: Iterable[Precedent]) -> list[Precedent]:
    """Returns precedents in the order in which a run is told about them, each investigation once.

    A stronger match comes first; of equal ones a confirmed finding before an unknown and a refuted one, then the better
    score, then the later end.

    Args:
        found: candidates; one that matches in several ways is there several times.
    """
    best: dict[UUID, Precedent] = {}
    for one in sorted(found, key=_order):
        best.setdefault(one.id, one)
    return list(best.values())


def read_precedents(stored: Iterable[Any] | None) -> tuple[Precedent, ...]:
    """Returns stored precedents; those that only a newer version can read are left out."""
    found = []
    for one in stored or ():
        try:
            found.append(Precedent.model_validate(one))
        except ValueError:
            continue
    return tuple(found)


def stored_precedents(found: Sequence[Precedent]) -> list[dict[str, Any]] | None:
    """Returns precedents as they are stored; None: a run is told about none."""
    return [one.model_dump(mode="json", exclude={"score"}) for one in found] or None


def _order(one: Precedent) -> tuple[int, int, float, float, str]:
    return _MATCHES[one.match], _ENDINGS[one.ending], -one.score, -one.finished_at.timestamp(), str(one.id)
