"""Sums of what runs used, and the state of the queue."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

UsageBy = Literal["model", "provider", "chain", "alertType", "namespace", "day"]
"""What usage is summed by."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Unfinished runs: waiting, in progress, and without a living worker."""

    pending: int
    running: int
    orphaned: int


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What model calls used, summed under a name.

    `cost_usd` is the sum of what is known, None when nothing is. `interrupted` calls were lost with their worker: they
    are billed, and among those of unknown usage and cost.
    """

    name: str
    investigations: int
    calls: int
    interrupted: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    calls_of_unknown_usage: int
    cost_usd: Decimal | None
    calls_of_unknown_cost: int
