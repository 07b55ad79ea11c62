"""What a run has used and done so far: what an attempt must know of the whole run before it goes on.

An execution finds its own place in its conversation; budgets and the loop guard span all agents and all attempts of a
run. Times are ages (seconds before the moment of reading, by the clock of the record), because two processes share no
other clock.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class BudgetLimit(StrEnum):
    """The limits of a budget; the values are reasons of the condition `BudgetExceeded`."""

    TOKENS = "Tokens"
    COST = "Cost"
    TOOL_CALLS = "ToolCalls"
    MINUTES = "Minutes"


@dataclass(frozen=True, slots=True)
class BudgetExceeded:
    """The limit that a run reached first, with a sentence that has the figures."""

    limit: BudgetLimit
    message: str


@dataclass(frozen=True, slots=True)
class PastCall:
    """A tool call that has an answer.

    `usable`: it was made, its tool only reads, it did not fail, and no call that may have changed something began
    or ended since it began. `age_seconds` counts from its end.
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


@dataclass(frozen=True, slots=True)
class RunHistory:
    """A run so far.

    `tokens` and `cost_usd` hold an estimate for each call whose usage is unknown; `estimated` says that there is one.
    `tool_calls` counts every call made, or perhaps made. `seconds` have passed since the run first started; its
    longest model call took `model_seconds`, its longest tool call `tool_seconds`. `stages` are those that have begun.
    """

    seconds: float = 0.0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    tool_calls: int = 0
    estimated: bool = False
    model_seconds: float = 0.0
    tool_seconds: float = 0.0
    exceeded: BudgetExceeded | None = None
    stages: frozenset[UUID] = frozenset()
    calls: tuple[PastCall, ...] = field(default=())
