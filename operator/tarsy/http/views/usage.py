"""What models used and cost, and who works through the queue.

Decision: what is not known is told as a count of calls, beside the sum of what is; a sum is never made up.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Self
from uuid import UUID

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import dollars
from tarsy.store.reads import QueueDepth, UsageBy, UsageSum
from tarsy.store.traced import Worker


class UsageItem(View):
    """What the calls under one name used."""

    name: str
    investigations: int
    calls: int
    interrupted: int = Field(description="Lost with their worker; they are billed, nobody knows how much.")
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    calls_of_unknown_usage: int
    cost_usd: float | None = Field(alias="costUSD", description="US dollars of what is known; null: nothing is.")
    calls_of_unknown_cost: int

    @classmethod
    def of(cls, found: UsageSum) -> Self:
        """A sum of the record."""
        values = {name: getattr(found, name) for name in UsageSum.__dataclass_fields__}
        return cls(**{**values, "cost_usd": dollars(found.cost_usd)})


class UsageView(View):
    """What models used in some days."""

    by: UsageBy
    days: int
    items: tuple[UsageItem, ...] = Field(description="The dearest first; days in their order.")
    omitted: int = Field(description="How many names there are beyond those; the total has them.")
    total: UsageItem

    @classmethod
    def of(cls, by: UsageBy, days: int, sums: Sequence[UsageSum], limit: int) -> Self:
        """Sums with their total."""
        shown = sorted(sums, key=lambda one: one.name)[-limit:] if by == "day" else sums[:limit]
        return cls(
            by=by,
            days=days,
            items=tuple(UsageItem.of(one) for one in shown),
            omitted=len(sums) - len(shown),
            total=UsageItem.of(total(sums)),
        )


class WorkerView(View):
    """A worker that is alive."""

    id: UUID
    host: str
    started_at: datetime
    expires_at: datetime = Field(description="When it counts as lost, unless it says until then that it lives.")
    runs: int = Field(description="Investigations and answers that it holds.")

    @classmethod
    def of(cls, found: Worker) -> Self:
        """A worker of the record."""
        return cls(
            id=found.id, host=found.host, started_at=found.started_at, expires_at=found.expires_at, runs=found.runs
        )


class QueueView(View):
    """What waits, what runs, and who works."""

    pending: int
    running: int
    orphaned: int = Field(description="In progress without a worker that is alive: one will take them up again.")
    workers: tuple[WorkerView, ...]

    @classmethod
    def of(cls, depth: QueueDepth, workers: Sequence[Worker]) -> Self:
        """The queue of the record."""
        return cls(
            pending=depth.pending,
            running=depth.running,
            orphaned=depth.orphaned,
            workers=tuple(WorkerView.of(worker) for worker in workers),
        )


def total(sums: Sequence[UsageSum]) -> UsageSum:
    """All of them in one. An investigation that used several models counts once for each."""
    known = [one.cost_usd for one in sums if one.cost_usd is not None]
    counts = {
        name: sum(getattr(one, name) for one in sums)
        for name in UsageSum.__dataclass_fields__
        if name not in ("name", "cost_usd")
    }
    return UsageSum(name="total", cost_usd=sum(known, Decimal(0)) if known else None, **counts)
