"""Stores reviews of findings: an append-only log, and its summary for lists.

Decision: an entry is stored only when a Review says something else than its last entry. So a relist, a second
controller and an object that was restored from a backup add nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import FINDING_VERDICTS
from tarsy.observe.metrics import Metrics
from tarsy.record.judging.review import (
    MAX_REVIEW_ACTIVITIES,
    QueuedReview,
    ReviewableRun,
    ReviewAction,
    ReviewActivity,
    ReviewState,
    ReviewSummary,
    ReviewVerdict,
    summarize_reviews,
)
from tarsy.store import rows
from tarsy.store.database import call, fetch_rows
from tarsy.store.queries import load

REVIEW_LOCK = 726_197_933
"""First key of the advisory lock of an investigation's reviews."""


class ReviewLogFull(Exception):
    """The log of an investigation holds no more entries."""


class Reviews:
    """Reads and writes reviews; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
        metrics: counts verdicts; None: nothing does.
    """

    def __init__(self, pool: asyncpg.Pool, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._sql = load("reviews")

    async def reviewable(
        self, namespace: str, namespace_uid: str, name: str, uid: UUID | None = None
    ) -> ReviewableRun | None:
        """Returns the investigation of a name; None without a record.

        Args:
            namespace: of the investigation.
            namespace_uid: uid of the namespace, which tells it from a deleted one of this name.
            name: of the investigation.
            uid: of an older one of this name; None: the latest.
        """
        where = {"namespace": namespace, "namespace_uid": namespace_uid}
        found = await self._fetch("find an investigation", "reviewable", **where, name=name, uid=uid)
        if not found:
            return None
        return ReviewableRun(**{**found[0], "outcome": rows.incident_outcome(found[0]["outcome"])})

    async def log(self, investigation: UUID) -> list[ReviewActivity]:
        """Returns everything that was said about an investigation, in order."""
        return [_entry(row) for row in await self._fetch("read reviews", "log", investigation=investigation)]

    async def note(self, investigation: UUID, object_uid: UUID, said: ReviewActivity) -> ReviewSummary | None:
        """Stores what a Review says, if its last entry says something else; returns the summary of all reviews.

        Args:
            investigation: the investigation.
            object_uid: uid of the Review.
            said: the entry.

        Returns:
            The summary; None: the investigation has no record any more.

        Raises:
            ReviewLogFull: the log holds no more entries.
        """

        counted: list[str | None] = []

        async def write(connection: asyncpg.Connection) -> ReviewSummary | None:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=REVIEW_LOCK, investigation=investigation))
                log = [_entry(row) for row in await connection.fetch(*self._sql["log"](investigation=investigation))]
                of_review = [one for one in log if (one.review, one.author) == (said.review, said.author)]
                if said.says(of_review[-1] if of_review else None):
                    return summarize_reviews(log)
                if len(log) >= MAX_REVIEW_ACTIVITIES:
                    raise ReviewLogFull(f"the reviews of an investigation have at most {MAX_REVIEW_ACTIVITIES} entries")
                appended = await connection.fetchrow(*self._append(investigation, object_uid, said))
                if appended is None:
                    return None
                counted.append(appended["confidence"])
                return await self._summarize(connection, investigation, [*log, said])

        summary = await call(self._pool, "store a review", write)
        if counted and said.verdict is not None and self._metrics is not None:
            self._metrics.add(FINDING_VERDICTS, confidence=counted[-1] or "none", verdict=said.verdict.value)
        return summary

    async def release(self, object_uid: UUID) -> UUID | None:
        """Ends the claim of a deleted Review; returns its investigation, None when it claimed nothing."""

        async def write(connection: asyncpg.Connection) -> UUID | None:
            found = await connection.fetchrow(*self._sql["claim_of"](object_uid=object_uid))
            if found is None:
                return None
            run: UUID = found["investigation"]
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=REVIEW_LOCK, investigation=run))
                still = await connection.fetchrow(*self._sql["claim_of"](object_uid=object_uid))
                if still is None:
                    return None
                entry = ReviewActivity(still["review"], still["author"], ReviewAction.RELEASED)
                await connection.execute(*self._append(run, object_uid, entry))
                log = [_entry(row) for row in await connection.fetch(*self._sql["log"](investigation=run))]
                await self._summarize(connection, run, log)
            return run

        return await call(self._pool, "release a claimed review", write)

    async def queue(
        self,
        state: ReviewState,
        namespace_uids: Sequence[str] | None,
        limit: int,
        after: tuple[datetime, UUID] | None = None,
    ) -> list[QueuedReview]:
        """Returns a page of the queue, the last to end first.

        Args:
            state: of the reviews.
            namespace_uids: of the investigations; None: all.
            limit: maximum number.
            after: end and id of the last one of the page before; None: the first page.
        """
        found = await self._fetch(
            "list reviews",
            "queue",
            state=state.value,
            namespace_uids=None if namespace_uids is None else list(namespace_uids),
            limit=limit,
            after_time=after[0] if after else None,
            after_id=after[1] if after else None,
        )
        return [_queued(row) for row in found]

    def _append(self, investigation: UUID, object_uid: UUID, said: ReviewActivity) -> tuple[Any, ...]:
        return self._sql["append"](
            investigation=investigation,
            object_uid=object_uid,
            review=said.review,
            author=said.author,
            action=said.action.value,
            verdict=said.verdict,
            root_cause=said.root_cause,
            note=said.note,
        )

    async def _summarize(
        self, connection: asyncpg.Connection, investigation: UUID, log: Sequence[ReviewActivity]
    ) -> ReviewSummary:
        summary = summarize_reviews(log)
        stored = self._sql["summarize"](
            investigation=investigation,
            state=summary.state.value,
            verdict=summary.verdict,
            claimed_by=list(summary.claimed_by),
            reviewed_by=[one.author for one in summary.counted],
        )
        await connection.execute(*stored)
        return summary

    async def _fetch(self, what: str, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, what, self._sql[statement](**values))


def _entry(row: asyncpg.Record) -> ReviewActivity:
    return ReviewActivity(
        review=row["review"],
        author=row["author"],
        action=ReviewAction(row["action"]),
        verdict=None if row["verdict"] is None else ReviewVerdict(row["verdict"]),
        root_cause=row["root_cause"],
        note=row["note"],
        at=row["at"],
    )


def _queued(row: asyncpg.Record) -> QueuedReview:
    values = dict(row)
    values["state"] = ReviewState(row["state"])
    values["verdict"] = None if row["verdict"] is None else ReviewVerdict(row["verdict"])
    values["outcome"] = rows.incident_outcome(row["outcome"])
    values["summary"] = row["summary"] or ""
    values["confidence"] = row["confidence"] or ""
    values["claimed_by"] = tuple(row["claimed_by"] or ())
    values["reviewed_by"] = tuple(row["reviewed_by"] or ())
    return QueuedReview(**values)
