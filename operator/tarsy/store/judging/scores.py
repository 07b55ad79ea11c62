"""Stores scores of investigations, and keeps the budget of a day.

Every call is on record before it is made, and the most that it can use is reserved in the same transaction: two
controllers cannot exceed a budget. A call that has not ended when its lease is over was interrupted. It stays paid for,
as its usage is not known, and is made once more.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import SCORE_POINTS, SCORES, SCORING_TOKENS
from tarsy.observe.metrics import Metrics
from tarsy.record.finding import Finding
from tarsy.record.judging.score import (
    ChainScores,
    Score,
    ScoreState,
    ScoringTotals,
    StoredScore,
)
from tarsy.record.usage import Usage
from tarsy.store.database import call, fetch_rows
from tarsy.store.judging.judge_spending import JudgeSpending, begin_spending, end_spending
from tarsy.store.judging.score_rows import read_score_row, scores_of_chain, stored_score
from tarsy.store.queries import load

WAIT_DAYS: Final = 7
"""Days that an investigation waits for its score."""

MAX_INTERRUPTIONS: Final = 1
"""Interrupted calls after which another one is made."""

REPORT_DAYS: Final = 30
MOST_REPORTED: Final = 10_000
MAX_PICKED: Final = 200
MAX_REQUESTED: Final = 1_000
MAX_SCORES_OF_RUN: Final = 50


@dataclass(frozen=True, slots=True)
class ScoreItem:
    """A scoring that is to be made: its investigation and round, its calls so far, and those of them that failed.

    A call that its provider refused before a model read it is no failure.
    """

    investigation: UUID
    round: int
    attempts: int
    failures: int


@dataclass(frozen=True, slots=True)
class ScoredCallRow:
    """A tool call of a run that is scored."""

    tool: str
    arguments: str
    result: str
    failed: bool


@dataclass(frozen=True, slots=True)
class ScoreSubject:
    """A run that is scored; `plan` as it is stored, `calls_made` the number of all its calls."""

    name: str
    alert_type: str
    alert: str
    finding: Finding
    plan: str
    offered: Sequence[str]
    calls: Sequence[ScoredCallRow]
    calls_made: int


@dataclass(frozen=True, slots=True)
class ScoreReservation:
    """The most that a call can use; `cost_usd` is None without rates."""

    tokens: int
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class EndedScore:
    """The end of a call: the score, or the problem. Usage is None where the provider did not tell it."""

    score: Score | None = None
    problem: str | None = None
    tokens: int | None = None
    cost_usd: Decimal | None = None
    usage: Usage | None = None


Begun = int | Literal["spent"] | None
"""The number of the call; `spent`: the budget of the day does not allow it; None: another one makes it."""


class Scores:
    """Stores scores; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: a migrated database.
        metrics: counts scores; None: nothing does.
    """

    def __init__(self, pool: asyncpg.Pool, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._sql = load("scores")

    async def enroll(self, suite: UUID, namespace_uid: str, name: str, judge: str) -> None:
        """Notes that a suite scores from now on, with a judge; an earlier beginning stays."""
        values = {"suite": suite, "namespace_uid": namespace_uid, "name": name, "judge": judge}
        await self._write(f"enroll suite {name}", "enroll", **values)

    async def withdraw(self, suite: UUID) -> None:
        """Notes that a suite scores no more; its scores stay."""

        async def write(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(*self._sql["withdraw"](suite=suite))
                await connection.execute(*self._sql["drop_waiting"](suite=suite))

        await call(self._pool, f"withdraw suite {suite} from scoring", write)

    async def pick(self, suite: UUID, chains: Sequence[str], percent: int) -> None:
        """Chooses investigations that ended since the suite scores, and ends what waited or failed too long.

        Args:
            suite: uid of the suite.
            chains: names of Chains.
            percent: share of the investigations, from 1 to 100.
        """
        ended = await self._fetch(
            "end what waits too long",
            "expire",
            suite=suite,
            days=WAIT_DAYS,
            interruptions=MAX_INTERRUPTIONS,
            interrupted="The call of the judge was interrupted twice.",
            expired=f"It waited for more than {WAIT_DAYS} days.",
        )
        for row in ended:
            self._count(row["state"])
        picked = {"chains": list(chains), "percent": percent, "days": WAIT_DAYS, "limit": MAX_PICKED}
        await self._write("choose investigations to score", "pick", suite=suite, **picked)

    async def next(self, suite: UUID) -> ScoreItem | None:
        """Returns the scoring to make next: one that a person asked for, or the newest; None: none waits."""
        for row in await self._fetch("read the next scoring", "next", suite=suite):
            return ScoreItem(row["investigation"], row["round"], row["attempts"], row["failures"])
        return None

    async def subject(self, investigation: UUID, limit: int) -> ScoreSubject | None:
        """Reads the run that is to be scored; None: it is gone.

        Args:
            investigation: uid of the run.
            limit: maximum number of tool calls.
        """

        async def read(connection: asyncpg.Connection) -> ScoreSubject | None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                row = await connection.fetchrow(*self._sql["subject"](investigation=investigation))
                if row is None:
                    return None
                calls = await connection.fetch(*self._sql["calls"](investigation=investigation, limit=limit))
                offered = await connection.fetch(*self._sql["offered"](investigation=investigation))
            return ScoreSubject(
                row["name"],
                row["alert_type"],
                row["alert_data"],
                Finding.model_validate(row["finding"]),
                row["plan"],
                [one["name"] for one in offered],
                [ScoredCallRow(one["tool"], one["arguments"], one["result"], one["failed"]) for one in calls],
                calls[0]["made"] if calls else 0,
            )

        return await call(self._pool, f"read investigation {investigation} for its score", read)

    async def begin(
        self,
        suite: UUID,
        item: ScoreItem,
        judge: str,
        most: ScoreReservation,
        budget: ScoreReservation,
        lease_seconds: float,
        spending: JudgeSpending | None = None,
    ) -> Begun:
        """Reserves what a call can use, and notes that it begins.

        Args:
            suite: uid of the suite.
            item: the scoring.
            judge: digest of the judge.
            most: the most that the call can use.
            budget: of a day; its cost is None where there is no limit.
            lease_seconds: after them the call counts as interrupted.
            spending: what quotas count of it; None: nothing.

        Raises:
            QuotaRefused: a quota of the namespace has no room; nothing is on record then.
        """

        async def write(connection: asyncpg.Connection) -> Begun:
            amount = {"suite": suite, "tokens": most.tokens, "cost_usd": most.cost_usd or Decimal(0)}
            transaction = connection.transaction()
            await transaction.start()
            begun: Begun = "spent"
            try:
                limits = {"most_tokens": budget.tokens, "most_usd": budget.cost_usd}
                day = await connection.fetchval(*self._sql["reserve"](**amount, **limits))
                if day is not None:
                    begun = await connection.fetchval(
                        *self._sql["begin"](
                            **amount,
                            investigation=item.investigation,
                            round=item.round,
                            attempts=item.attempts,
                            judge=judge,
                            day=day,
                            lease_seconds=lease_seconds,
                        )
                    )
                if isinstance(begun, int) and spending is not None:
                    await begin_spending(connection, spending, investigation=item.investigation)
            except BaseException:
                await transaction.rollback()
                raise
            if isinstance(begun, int):
                await transaction.commit()
            else:
                await transaction.rollback()
            return begun

        return await call(self._pool, f"begin the scoring of {item.investigation}", write)

    async def end(
        self,
        suite: UUID,
        item: ScoreItem,
        attempt: int,
        ended: EndedScore,
        *,
        again_seconds: float | None,
        rates: bool,
        spending: UUID | None = None,
    ) -> None:
        """Notes the end of a call and gives back what it did not use, unless another call has been made since.

        Args:
            suite: uid of the suite.
            item: the scoring.
            attempt: the number of the call.
            ended: its end.
            again_seconds: after a failure, seconds until the next call; None: there is none.
            rates: whether the rates of the provider are known.
            spending: id of what quotas count; None: nothing.
        """
        state = (
            ScoreState.COMPLETED if ended.score else ScoreState.FAILED if again_seconds is None else ScoreState.WAITING
        )

        async def write(connection: asyncpg.Connection) -> int | None:
            score = ended.score
            async with connection.transaction():
                if spending is not None:
                    await end_spending(connection, spending, ended.usage, ended.cost_usd, failed=score is None)
                row = await connection.fetchrow(
                    *self._sql["end"](
                        investigation=item.investigation,
                        suite=suite,
                        round=item.round,
                        attempts=attempt,
                        state=state.value,
                        pause_seconds=again_seconds or 0.0,
                        tokens=ended.tokens,
                        cost_usd=ended.cost_usd,
                        known_rates=rates,
                        counted=ended.score is None and ended.tokens != 0,
                        points=None if score is None else score.points,
                        answer=None if score is None else stored_score(score),
                        problem=ended.problem,
                    )
                )
                if row is None:
                    return None
                used = row["reserved_tokens"] if ended.tokens is None else ended.tokens
                spent = row["reserved_usd"] if ended.cost_usd is None else ended.cost_usd
                tokens, cost_usd = used - row["reserved_tokens"], spent - row["reserved_usd"]
                settle = self._sql["settle"](suite=suite, day=row["day"], tokens=tokens, cost_usd=cost_usd)
                await connection.execute(*settle)
            return int(used)

        used = await call(self._pool, f"end the scoring of {item.investigation}", write)
        if used is not None:
            self._measure(used, ended, state)

    def _measure(self, used: int, ended: EndedScore, state: ScoreState) -> None:
        if self._metrics is None:
            return
        self._metrics.add(SCORING_TOKENS, used)
        if ended.score is not None:
            self._metrics.observe(SCORE_POINTS, ended.score.points)
        if state is not ScoreState.WAITING:
            self._count(state.value)

    async def refuse(self, suite: UUID, item: ScoreItem, state: ScoreState, problem: str) -> None:
        """Ends a scoring without a call: the judge may not read the run, or no budget allows it."""
        values = {"investigation": item.investigation, "suite": suite, "round": item.round}
        await self._write("refuse a scoring", "refuse", **values, state=state.value, problem=problem)
        self._count(state.value)

    async def request(self, suite: UUID, investigation: UUID, request: str) -> None:
        """Asks for another score of an investigation, once for each request.

        Args:
            suite: uid of a suite that scores.
            investigation: uid of the run.
            request: tells it from other requests.
        """
        values = {"suite": suite, "investigation": investigation, "request": request}
        await self._write("ask for a score", "request", **values)

    async def request_days(
        self, suite: UUID, chains: Sequence[str], asked_at: datetime, days: int, request: str
    ) -> None:
        """Asks for another score of the newest investigations of some days, once for each request.

        Args:
            suite: uid of a suite that scores.
            chains: names of Chains.
            asked_at: time of the request.
            days: number of days before it.
            request: tells it from other requests.
        """
        values = {"suite": suite, "chains": list(chains), "asked_at": asked_at, "days": days, "request": request}
        await self._write("ask for scores", "request_days", **values, limit=MAX_REQUESTED)

    async def of_run(self, investigation: UUID) -> list[StoredScore]:
        """Returns the scorings of an investigation; of each suite the one to show comes first."""
        values = {"investigation": investigation, "limit": MAX_SCORES_OF_RUN}
        return [read_score_row(row) for row in await self._fetch("read scores", "of_run", **values)]

    async def totals(self, suite: UUID) -> ScoringTotals:
        """Returns what a suite has scored, and what it used today."""
        (row,) = await self._fetch("read what a suite has scored", "summary", suite=suite)
        return ScoringTotals(**dict(row))

    async def report(self, suite: UUID) -> list[ChainScores]:
        """Returns the scores of the last 30 days by the present judge of a suite, by chain."""
        values = {"suite": suite, "days": REPORT_DAYS, "limit": MOST_REPORTED}
        rows = await self._fetch("read the scores of a suite", "newest", **values)
        by_chain: defaultdict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in rows:
            by_chain[row["chain"]].append(row)
        return [scores_of_chain(chain, by_chain[chain]) for chain in sorted(by_chain)]

    async def purge(self) -> None:
        """Deletes what was used on days long ago."""
        await self._write("delete old days of scoring", "purge_days")

    def _count(self, state: str) -> None:
        if self._metrics is not None:
            self._metrics.add(SCORES, result=state.lower())

    async def _write(self, what: str, query: str, **values: Any) -> None:
        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql[query](**values))

        await call(self._pool, what, write)

    async def _fetch(self, what: str, query: str, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, what, self._sql[query](**values))
