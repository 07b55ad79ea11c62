"""Defines pages of investigation lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from tarsy.record.finding import Confidence, Finding
from tarsy.record.history import BudgetExceeded
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.reading.flaws import Flaw
from tarsy.record.run import DesiredState, Failure, State
from tarsy.record.usage import Usage

MOST_COUNTED: Final = 1000
"""Investigations that a count of a list counts at most."""


@dataclass(frozen=True, slots=True)
class InvestigationCount:
    """Number of investigations of a list, and of those among them that have a flaw, by flaw."""

    total: int
    flaws: Mapping[Flaw, int]


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Position of the last investigation of a page: its sort key and its id."""

    key: datetime | Decimal | int
    id: UUID


@dataclass(frozen=True, slots=True)
class InvestigationListItem:
    """One investigation in a list."""

    id: UUID
    namespace: str
    namespace_uid: str
    name: str
    alert_type: str
    chain: str
    chain_namespace: str
    state: State
    desired_state: DesiredState
    attempt: int
    revision: int
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stages_planned: int
    stages_finished: int
    current_stage: str | None
    usage: Usage
    model_calls: int
    tool_calls: int
    cost_usd: Decimal | None
    cost_complete: bool
    budget_exceeded: BudgetExceeded | None
    evidence_degraded: bool
    finding: Finding | None
    executive_summary: str | None
    failure: Failure | None
    author: str | None
    object_deleted_at: datetime | None
    replay: bool = False
    flaws: Sequence[Flaw] = ()
    severity: str | None = None
    alert_key: str | None = None
    excerpt: str | None = None
    outcome: IncidentOutcome | None = None
    high_verdicts: HighVerdicts | None = None

    @property
    def claims_high(self) -> bool:
        """Whether its finding has confidence High."""
        return self.finding is not None and self.finding.confidence is Confidence.HIGH


@dataclass(frozen=True, slots=True)
class InvestigationPage:
    """One page of a list; `next` is the position of its end, None when the list ends with it."""

    items: Sequence[InvestigationListItem] = field(default=())
    next: PagePosition | None = None
