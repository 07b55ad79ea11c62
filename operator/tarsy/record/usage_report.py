"""Defines sums of usage, and the depth of the queue."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

UsageBy = Literal["model", "provider", "chain", "alertType", "namespace", "day"]
"""Dimension by which usage is grouped."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Unfinished runs: waiting for a worker, in progress, without a living worker, and parked."""

    pending: int
    running: int
    orphaned: int
    parked: int = 0


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Usage of model calls, summed for one name.

    `cost_usd` is the sum of known costs, None when no cost is known. `interrupted` calls were lost with their worker:
    they are billed, and count among the calls of unknown usage and cost.
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
