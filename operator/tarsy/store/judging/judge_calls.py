"""Stores the calls of judges of suites in EvalRuns.

Every call is on record before it is made, and afterwards with its usage. A call whose controller died stays without an
answer: it counts as interrupted, its usage is not known, and the next controller makes another attempt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg

from tarsy.record.usage import Usage
from tarsy.store.database import call, fetch_rows
from tarsy.store.judging.judge_spending import JudgeSpending, begin_spending, end_spending
from tarsy.store.queries import load

INTERRUPTED: Final = "The call was interrupted."


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """A finding that a judge is asked about: a labelled one of a case, or that of a sample, by its number."""

    case_name: str
    about: Literal["label", "sample"]
    number: int


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """The newest call about an item. `answers` only when completed; `seconds_ago` since it ended, 0 before."""

    item: JudgeItem
    attempt: int
    owner: UUID
    state: Literal["started", "completed", "failed", "interrupted"]
    answers: Sequence[Mapping[str, str]] | None
    problem: str | None
    seconds_ago: float


@dataclass(frozen=True, slots=True)
class EndedJudgeCall:
    """The end of a call: its answers, or the problem. `cost_usd` is None where it is not known, and so is `usage`."""

    answers: Sequence[Mapping[str, str]] | None = None
    problem: str | None = None
    tokens: int = 0
    cost_usd: Decimal | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class JudgeUsage:
    """Usage of the calls of a run that have ended; `cost_usd` is None when no cost is known."""

    calls: int = 0
    failed: int = 0
    tokens: int = 0
    cost_usd: Decimal | None = None
    cost_complete: bool = True


class JudgeCalls:
    """Stores calls of judges; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: a migrated database.
        owner: identity of this controller.
    """

    def __init__(self, pool: asyncpg.Pool, owner: UUID) -> None:
        self._pool = pool
        self.owner = owner
        self._sql = load("judge_calls")

    async def begin(self, run: UUID, item: JudgeItem, spending: JudgeSpending | None = None) -> int | None:
        """Begins the next attempt about an item.

        Args:
            run: uid of the EvalRun.
            item: what it is about.
            spending: what quotas count of it; None: nothing.

        Returns:
            The number of the attempt; None: one is under way or has an answer.

        Raises:
            QuotaRefused: a quota of the namespace has no room; nothing is on record then.
        """

        async def write(connection: asyncpg.Connection) -> int | None:
            where = _key(run, item)
            async with connection.transaction():
                await connection.execute(*self._sql["interrupt"](**where, owner=self.owner, problem=INTERRUPTED))
                begun: int | None = await connection.fetchval(*self._sql["begin"](**where, owner=self.owner))
                if begun is not None and spending is not None:
                    await begin_spending(connection, spending, eval_run=run)
                return begun

        return await call(self._pool, f"begin a call of the judge about case {item.case_name}", write)

    async def refuse(self, run: UUID, item: JudgeItem, problem: str) -> None:
        """Notes an attempt that no quota allows; nothing was asked."""
        attempt = await self.begin(run, item)
        if attempt is not None:
            await self.end(run, item, attempt, EndedJudgeCall(problem=problem, cost_usd=Decimal(0)))

    async def end(
        self, run: UUID, item: JudgeItem, attempt: int, ended: EndedJudgeCall, spending: UUID | None = None
    ) -> None:
        """Notes the end of a call; the first end stays.

        Args:
            run: uid of the EvalRun.
            item: what it is about.
            attempt: its number.
            ended: its end.
            spending: id of what quotas count; None: nothing.
        """

        async def write(connection: asyncpg.Connection) -> None:
            noted = self._sql["end"](
                **_key(run, item),
                attempt=attempt,
                state="failed" if ended.answers is None else "completed",
                answers=None if ended.answers is None else [dict(one) for one in ended.answers],
                problem=ended.problem,
                tokens=ended.tokens,
                cost_usd=ended.cost_usd,
                cost_complete=ended.cost_usd is not None,
            )
            async with connection.transaction():
                await connection.execute(*noted)
                if spending is not None:
                    failed = ended.answers is None
                    await end_spending(connection, spending, ended.usage, ended.cost_usd, failed=failed)

        await call(self._pool, f"end a call of the judge about case {item.case_name}", write)

    async def newest(self, run: UUID) -> dict[JudgeItem, JudgeCall]:
        """Returns the newest call about each item of a run that has one."""
        found: dict[JudgeItem, JudgeCall] = {}
        for row in await self._fetch("newest", f"the calls of the judge of {run}", run=run):
            item = JudgeItem(row["case_name"], row["about"], row["number"])
            found[item] = JudgeCall(
                item,
                row["attempt"],
                row["owner"],
                row["state"],
                row["answers"],
                row["problem"],
                row["seconds_ago"],
            )
        return found

    async def usage(self, run: UUID) -> JudgeUsage:
        """Returns the usage of the calls of a run."""
        return (await self.usages([run])).get(run, JudgeUsage())

    async def usages(self, runs: Sequence[UUID]) -> dict[UUID, JudgeUsage]:
        """Returns the usage of the calls of runs, by run; a run without a call is not in it."""
        found = await self._fetch("usage", "the usage of judges", runs=list(runs))
        return {row["run"]: JudgeUsage(**{name: row[name] for name in JudgeUsage.__slots__}) for row in found}

    async def agree(self, run: UUID, agreement: Mapping[str, Any]) -> None:
        """Notes what the answers of the judge are worth in a run; the first note stays."""

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["agree"](run=run, agreement=dict(agreement)))

        await call(self._pool, f"note the agreement of the judge of {run}", write)

    async def _fetch(self, query: str, what: str, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))


def _key(run: UUID, item: JudgeItem) -> dict[str, Any]:
    return {"run": run, "case_name": item.case_name, "about": item.about, "number": item.number}
