"""Publishes the quotas of namespaces, reads what counts against them, and decides about runs that they leave no room.

Decision: the ledger is kept by triggers (migration 39), in the transaction that records a call. So it holds whatever
code writes the record, costs no statement, and cannot be ahead of the record or behind it. A worker that dies leaves
its reservations; they are settled when its call is recorded as interrupted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from uuid import UUID

import asyncpg
import orjson

from tarsy.record.quota import QUOTA_EXCEEDED, QuotaLimits, QuotaRefusal, QuotaUsage
from tarsy.record.run import Failure, RunOutcome, State
from tarsy.store.database import call
from tarsy.store.queries import load
from tarsy.store.runs.closing import close_run
from tarsy.store.runs.wakeups import CLAIMABLE, QUEUE_CHANNEL, NotifyFunction, silent

REFUSED_STATE = "TQ001"
"""SQLSTATE of a model call that does not fit."""

HOLD_SECONDS = 20.0
"""Seconds after which a run that a quota holds is looked at again: reservations may have been settled meanwhile."""

_COUNT_LOCK = 7_261_979_002  # of claims, which count runs


def refusal_of(error: asyncpg.PostgresError) -> QuotaRefusal | None:
    """Reads the refusal of a model call; None: the error is another."""
    if error.sqlstate != REFUSED_STATE:
        return None
    return QuotaRefusal.of(orjson.loads(error.detail))


async def note_refusal(pool: asyncpg.Pool, refusal: QuotaRefusal) -> None:
    """Notes a model call that did not fit, so that no run is started while there is no room for as much."""
    tokens, dollars = refusal.limit == "tokens", refusal.limit == "dollars"
    need = refusal.need if tokens or dollars else None
    values = {"uid": refusal.uid, "starts_at": refusal.starts_at, "share": refusal.share, "what": refusal.limit}

    async def write(connection: asyncpg.Connection) -> None:
        await connection.execute(*load("quotas")["refused"](**values, need=need))

    await call(pool, f"note that a call does not fit into quota {refusal.name}", write)


class Quotas:
    """Publishes quotas and reads their usage; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
        notify: sends a wake-up when runs may start that were held.
    """

    def __init__(self, pool: asyncpg.Pool, notify: NotifyFunction = silent) -> None:
        self._pool = pool
        self._notify = notify
        self._sql = load("quotas")

    async def publish(self, uid: str, namespace: str, name: str, generation: int, limits: QuotaLimits) -> bool:
        """Publishes the limits of a quota unless a newer generation, or this one, is published; returns whether it did.

        A quota that is new, or has another period than before, counts what the record has of its current period.
        """
        values = {
            "uid": uid,
            "namespace": namespace,
            "name": name,
            "generation": generation,
            "period": limits.period,
            "cost_usd": limits.cost_usd,
            "tokens": limits.tokens,
            "investigations": limits.investigations,
            "on_exceeded": limits.on_exceeded,
            "shares": dict(limits.shares or {}),
        }

        async def write(connection: asyncpg.Connection) -> bool:
            async with connection.transaction():
                await connection.execute(*load("claims")["lock"](key=_COUNT_LOCK))
                await connection.execute(*self._sql["lock"](uid=uid))
                row = await connection.fetchrow(*self._sql["publish"](**values))
                if row is not None and row["anew"]:
                    await connection.execute(*self._sql["forget_usage"](uid=uid))
                    await connection.execute(*self._sql["count_anew"](uid=uid))
                    await connection.execute(*self._sql["reserve_open"](uid=uid))
                return row is not None

        published = await call(self._pool, f"write the limits of InvestigationQuota {namespace}/{name}", write)
        if published:
            await self.settle_ended()  # calls that ended in the meantime did not see the quota
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
        return published

    async def settle_ended(self) -> None:
        """Settles calls that have ended and still reserve their worst case; there are none but after a publication."""

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["settle_ended"]())

        await call(self._pool, "settle model calls that have ended", write)

    async def interrupt_judges(self) -> None:
        """Ends calls of judges whose process died: their lease is over, and what they reserved is spent."""

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*load("judge_spending")["interrupt"]())

        await call(self._pool, "end calls of judges that were interrupted", write)

    async def delete(self, uid: str) -> None:
        """Deletes a quota with what was counted; runs that it held may start."""

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["delete"](uid=uid))

        await call(self._pool, f"delete quota {uid}", write)
        self._notify(QUEUE_CHANNEL, CLAIMABLE)

    async def published(self) -> dict[str, tuple[str, str]]:
        """Returns namespace and name of all quotas that are published, by uid."""

        async def read(connection: asyncpg.Connection) -> dict[str, tuple[str, str]]:
            rows = await connection.fetch(*self._sql["published"]())
            return {row["uid"]: (row["namespace"], row["name"]) for row in rows}

        return await call(self._pool, "list quotas", read)

    async def usage(self, uids: Sequence[str], share: str = "all") -> dict[str, QuotaUsage]:
        """Returns the usage in the current period by uid.

        Args:
            uids: of published quotas; others are left out.
            share: the kind of work; `all` is the whole.
        """

        async def read(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            rows: Sequence[asyncpg.Record] = await connection.fetch(*self._sql["usage"](uids=list(uids), share=share))
            return rows

        rows = await call(self._pool, "read the usage of quotas", read)
        return {row["uid"]: QuotaUsage(**{name: row[name] for name in QuotaUsage.__slots__}) for row in rows}


class Waiting(Protocol):
    """A run that waits for a worker, with what the quotas of its namespace leave."""

    @property
    def id(self) -> UUID:
        """The investigation or answer."""
        ...

    @property
    def room(self) -> Mapping[str, Any] | None:
        """Parses the result of the function `quota_room` of migration 39; None: no limits."""
        ...


_T = TypeVar("_T", bound=Waiting)


@dataclass(slots=True)
class Withheld:
    """Runs that a claim finds to have no room in a quota, by what becomes of them."""

    held: dict[UUID, QuotaRefusal] = field(default_factory=dict)
    ended: dict[UUID, QuotaRefusal] = field(default_factory=dict)
    triaged: dict[UUID, QuotaRefusal] = field(default_factory=dict)

    def admitted(self, waiting: Iterable[_T], *, questions: bool = False) -> list[_T]:
        """Returns the runs that may be claimed, those to be triaged among them.

        Args:
            waiting: candidates of a claim.
            questions: whether they are questions, which have nothing to triage.
        """
        return [one for one in waiting if self._admits(one, questions)]

    def _admits(self, candidate: Waiting, question: bool) -> bool:
        if candidate.room is None or candidate.room["over"] is None:
            return True
        run, refusal = candidate.id, QuotaRefusal.of(candidate.room["over"])
        if refusal.on_exceeded == "Queue":
            self.held[run] = refusal
        elif refusal.on_exceeded == "TriageOnly" and not question:
            self.triaged[run] = refusal
            return True
        else:
            self.ended[run] = refusal
        return False

    async def write(self, connection: asyncpg.Connection) -> list[UUID]:
        """Writes what becomes of the runs, in the transaction of a claim; returns those that changed."""
        sql, closing = load("quotas"), load("runs")["close"]
        if self.held:
            values = {
                "ids": list(self.held),
                "sentences": [f"{one.cause} {one.remedy}" for one in self.held.values()],
                "ends": [one.ends_at for one in self.held.values()],
                "seconds": HOLD_SECONDS,
            }
            await connection.execute(*sql["hold"](**values))
        for run, refusal in self.ended.items():
            failure = Failure(QUOTA_EXCEEDED, f"{refusal.cause} {refusal.remedy}")
            await close_run(connection, closing, run, RunOutcome(State.FAILED, failure=failure, cut=True))
        return [*self.held, *self.ended]

    async def mark_triaged(self, connection: asyncpg.Connection, runs: Sequence[UUID]) -> None:
        """Notes on those of `runs` that are to be triaged why they ask no model."""
        chosen = [run for run in runs if run in self.triaged]
        if chosen:
            sentences = [f"{self.triaged[run].cause} {self.triaged[run].remedy}" for run in chosen]
            await connection.execute(*load("quotas")["triage"](ids=chosen, sentences=sentences))
