"""Counts calls of judges against the quotas of their namespaces, in the transactions that record them.

A call reserves the most that it can use when it begins. When it ends, what it used replaces that. A call whose process
died is interrupted after its lease, and then counts in full: it may have been billed.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID, uuid4

import asyncpg

from tarsy.record.quota import QuotaRefused
from tarsy.record.usage import Usage
from tarsy.store.queries import load
from tarsy.store.quotas import refusal_of

NOT_SENT = Usage()
"""Usage of a call that no model has read."""


@dataclass(frozen=True, slots=True)
class JudgeSpending:
    """A call of a judge as quotas and reports of usage count it.

    Attributes:
        namespace: whose quotas count it.
        provider: name of the LLMProvider.
        model: its model.
        worst_tokens: the most tokens that it can use.
        worst_cost_usd: their cost; None: no rates are known.
        lease_seconds: after them it counts as interrupted, if it has not ended.
        id: of the call.
    """

    namespace: str
    provider: str
    model: str
    worst_tokens: int
    worst_cost_usd: Decimal | None
    lease_seconds: float
    id: UUID = field(default_factory=uuid4)


async def begin_spending(
    connection: asyncpg.Connection,
    spending: JudgeSpending,
    *,
    eval_run: UUID | None = None,
    investigation: UUID | None = None,
) -> None:
    """Reserves what a call can use, in the transaction that records that it begins.

    Args:
        connection: in that transaction, which the caller rolls back when this raises.
        spending: the call.
        eval_run: uid of the EvalRun that it belongs to; None: it is for a score.
        investigation: uid of the investigation that is scored.

    Raises:
        QuotaRefused: a quota of the namespace has no room.
    """
    values = {name: getattr(spending, name) for name in JudgeSpending.__slots__}
    try:
        await connection.execute(
            *load("judge_spending")["begin"](**values, eval_run=eval_run, investigation=investigation)
        )
    except asyncpg.PostgresError as error:
        if (refusal := refusal_of(error)) is None:
            raise
        raise QuotaRefused(refusal) from error


async def end_spending(
    connection: asyncpg.Connection, spending: UUID, usage: Usage | None, cost_usd: Decimal | None, *, failed: bool
) -> None:
    """Replaces what a call reserved by what it used, in the transaction that records its end; the first end stays.

    Args:
        connection: in that transaction.
        spending: id of the call.
        usage: as the provider told it; None, or incomplete: what was reserved counts.
        cost_usd: of the usage; None: it is not known.
        failed: whether there is no answer.
    """
    known = usage if usage is not None and usage.complete else None
    values = {
        "id": spending,
        "state": "failed" if failed else "completed",
        "input_tokens": None if known is None else known.input_tokens,
        "output_tokens": None if known is None else known.output_tokens,
        "thinking_tokens": None if known is None else known.thinking_tokens,
        "cached_tokens": None if known is None else known.cached_tokens,
        "cost_usd": None if known is None else cost_usd,
    }
    await connection.execute(*load("judge_spending")["end"](**values))
