"""Compares the tokens that the scripted model billed with the record, call by call.

A run makes one model call at a time, so each request belongs to the call that was last written as begun when it came
(both clocks are this machine's). A call has at most one request; one that was interrupted may never have sent its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from e2e.tenant import Tenant
from tarsy_dev.model.journal import ServedRequest


@dataclass(slots=True)
class Account:
    """Tokens, by who says so, and everything that does not match."""

    billed: int = 0
    recorded: int = 0
    interrupted: int = 0
    calls: int = 0
    interrupted_calls: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"calls {self.calls} ({self.interrupted_calls} interrupted), tokens billed {self.billed} = "
            f"recorded {self.recorded} + of interrupted calls {self.interrupted}, not matched {len(self.wrong)}"
        )


def tokens(usage: object) -> int:
    """Tokens of a usage as the wire tells it; none where nothing was billed."""
    return int(usage["total_tokens"]) if isinstance(usage, dict) else 0


async def settle(tenant: Tenant, runs: dict[str, UUID]) -> Account:
    """Compares the model's journal with the record; `runs` are ids by a word that is in their alerts only."""
    account = Account(billed=sum(tokens(request.usage) for request in tenant.model.journal.requests))
    requests: dict[str, list[ServedRequest]] = {marker: [] for marker in runs}
    for request in tenant.model.journal.requests:
        owner = next((marker for marker in runs if any(marker in str(m.get("content")) for m in request.messages)), "")
        if owner:
            requests[owner].append(request)
        else:
            account.wrong.append(f"request {request.number} is nobody's")
    for marker, identity in runs.items():
        _settle_run(account, marker, await tenant.model_calls(identity), requests[marker])
    return account


def _settle_run(
    account: Account, marker: str, calls: Sequence[asyncpg.Record], requests: Sequence[ServedRequest]
) -> None:
    ordered = sorted(calls, key=lambda call: call["started_at"])
    of: dict[UUID, list[ServedRequest]] = {call["id"]: [] for call in ordered}
    for request in requests:
        begun = [call for call in ordered if call["started_at"].timestamp() <= request.received]
        if begun:
            of[begun[-1]["id"]].append(request)
        else:
            account.wrong.append(f"{marker}: request {request.number} came before any call was written")
    account.calls += len(ordered)
    for call in ordered:
        asked = of[call["id"]]
        where = f"{marker}: call {call['number']} ({call['state']})"
        if len(asked) > 1:
            account.wrong.append(f"{where} was sent {len(asked)} times")
        billed = sum(tokens(request.usage) for request in asked)
        if call["state"] == "interrupted":
            account.interrupted_calls += 1
            account.interrupted += billed
            continue
        used = (call["input_tokens"] or 0) + (call["output_tokens"] or 0)
        account.recorded += used
        if used != billed or not asked:
            account.wrong.append(f"{where} was billed {billed} tokens and has {used} on record")
