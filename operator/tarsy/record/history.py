"""Defines the history of a run: usage and tool calls of all its agents and attempts, read when an attempt resumes.

Budgets and the loop guard span all agents and attempts. Times are ages (seconds before the moment of reading, by the
clock of the database), because two processes share no other clock.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class BudgetLimit(StrEnum):
    """Limits of a budget; the values are reasons of the condition `BudgetExceeded`. A quota is its namespace's."""

    TOKENS = "Tokens"
    COST = "Cost"
    TOOL_CALLS = "ToolCalls"
    MINUTES = "Minutes"
    QUOTA = "Quota"


@dataclass(frozen=True, slots=True)
class BudgetExceeded:
    """The first limit that a run reached, which may be a newer version's, with a sentence that contains the figures."""

    limit: BudgetLimit | str
    message: str


@dataclass(frozen=True, slots=True)
class PastCall:
    """A tool call that has an answer.

    `usable`: it was made, its tool only reads, it did not fail, and no call that may have changed something began
    or ended since it began. `age_seconds` counts from its end. `answered`: it was made, and did not fail. `acts`: a
    stage of kind Action made it.
    """

    id: UUID
    execution: UUID
    message_seq: int
    index: int
    server: str
    tool: str
    arguments: str
    age_seconds: float
    usable: bool
    repeated_of: UUID | None = None
    answered: bool = False
    acts: bool = False


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Usage and tool calls of a run up to now.

    `tokens` and `cost_usd` contain an estimate for each call whose usage is unknown; then `estimated` is True.
    `tool_calls` counts calls that were made or may have been made. `seconds` counts from the first start of the run,
    without the `waited_seconds` in which it was parked;
    `model_seconds` and `tool_seconds` are the durations of its longest model call and tool call. `stages` are the
    stages that have begun. `action_calls` are those of `tool_calls` that stages of kind Action made.
    """

    seconds: float = 0.0
    waited_seconds: float = 0.0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    tool_calls: int = 0
    estimated: bool = False
    model_seconds: float = 0.0
    tool_seconds: float = 0.0
    exceeded: BudgetExceeded | None = None
    stages: frozenset[UUID] = frozenset()
    calls: tuple[PastCall, ...] = field(default=())
    action_calls: int = 0
