"""Defines the score of an investigation: a judge's advice on its quality.

All texts of a score are written by a model that read untrusted text.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

MAX_MISSING_TOOLS: Final = 5
"""Tools that one score may say were missing."""


class FailureTag(StrEnum):
    """Lists failures of investigations: a closed list, so that scores can be counted."""

    WRONG_TOOL = "WrongTool"
    MISSED_EVIDENCE = "MissedEvidence"
    UNSUPPORTED_CLAIM = "UnsupportedClaim"
    OVERCONFIDENT = "Overconfident"
    WRONG_CONCLUSION = "WrongConclusion"
    STOPPED_EARLY = "StoppedEarly"
    LOOP = "Loop"
    ADDRESSES_JUDGE = "AddressesJudge"


class ScoreState(StrEnum):
    """State of the scoring of an investigation.

    Refused: the judge may not read it. Expired: it waited too long, so nothing was paid for.
    """

    WAITING = "Waiting"
    STARTED = "Started"
    COMPLETED = "Completed"
    FAILED = "Failed"
    REFUSED = "Refused"
    EXPIRED = "Expired"


@dataclass(frozen=True, slots=True)
class MissingTool:
    """A tool that would have helped, as the judge says: one line each."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Score:
    """An answer of a judge: 0 to 100 points, its reason, quotes from results of tool calls, tags, missing tools."""

    points: int
    reason: str
    evidence: tuple[str, ...] = ()
    tags: tuple[FailureTag, ...] = ()
    missing_tools: tuple[MissingTool, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredScore:
    """One scoring of one investigation by a suite.

    Attributes:
        suite: uid of the EvalSuite.
        suite_name: its name.
        round: 1 for the first scoring by this suite, one more for each that somebody asked for.
        state: of this scoring.
        current: whether the judge of the suite is still the one that answered.
        judge: digest of the judge that was asked; None before.
        score: None unless completed.
        problem: why there is no score yet, or none at all.
        request: tells it from other requests (a time); None: it was chosen by `spec.scoring`.
        attempts: calls of the judge, those that failed included.
        tokens: used by all calls; those of a call that did not tell are counted as the most it can have used.
        cost_usd: of all calls; None where rates are unknown.
        cost_complete: whether each call told what it used.
        created_at: when it began to wait.
        finished_at: None before its end.
    """

    suite: UUID
    suite_name: str
    round: int
    state: ScoreState
    current: bool
    judge: str | None
    score: Score | None
    problem: str | None
    request: str | None
    attempts: int
    tokens: int
    cost_usd: Decimal | None
    cost_complete: bool
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReportedTool:
    """A missing tool over the scores of a chain: its name, how many scores name it, and the newest reason."""

    name: str
    scores: int
    why: str


@dataclass(frozen=True, slots=True)
class ChainScores:
    """The newest scores of a chain by the present judge of a suite: number, mean, tags, missing tools."""

    chain: str
    scores: int
    mean: float
    lowest: int
    tags: dict[FailureTag, int] = field(default_factory=dict)
    missing_tools: tuple[ReportedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringTotals:
    """Number of scorings of a suite by their state, what was used today, and its judge; None: it never scored."""

    scored: int = 0
    waiting: int = 0
    failed: int = 0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    judge: str | None = None
