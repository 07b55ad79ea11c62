"""Reads the record for the projector, the HTTP API, the CLI and the metrics.

Readers hold no lock and no transaction: an investigation and its stages are two statements. A change in between has a
newer revision, so it is read again.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.messages import Message
from tarsy.record.reading.usage_report import QueueDepth, UsageBy, UsageSum
from tarsy.record.run import InvestigationRecord, ProviderChange, StageProgress
from tarsy.record.timeline import TimelineEvent
from tarsy.store import rows
from tarsy.store.database import call, fetch_rows
from tarsy.store.judging.calibration import MAX_JUDGED
from tarsy.store.queries import load


@dataclass(frozen=True, slots=True)
class Published:
    """The status that a finished run was published with, as a digest, and when the run ended."""

    digest: bytes
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Publication:
    """A revision of an investigation or answer that its object shows.

    `digest` is that of the status, where the run has finished and the API keeps the status as written.
    """

    run: UUID
    revision: int
    digest: bytes | None = None


class Reads:
    """Reads the record; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: from `open_pool`.
        calibration_floor: below which High is not relied on; None: not known, so records tell no verdicts of others.
    """

    def __init__(self, pool: asyncpg.Pool, calibration_floor: float | None = None) -> None:
        self._pool = pool
        self.calibration_floor = calibration_floor
        self._sql = load("reads")

    async def record(self, run: UUID) -> InvestigationRecord | None:
        """Returns an investigation, None without a record."""
        found = await self._records("record", id=run)
        return found[0] if found else None

    async def find(self, namespace: str, name: str, namespace_uid: str | None = None) -> InvestigationRecord | None:
        """Returns the latest investigation of a name.

        Args:
            namespace: its namespace.
            name: of the Investigation.
            namespace_uid: uid of the namespace; None: that of the latest investigation. A namespace never reads records
                of a deleted one of the same name.
        """
        found = await self._records("find", namespace=namespace, name=name, namespace_uid=namespace_uid)
        return found[0] if found else None

    async def answers(self, run: UUID) -> list[InvestigationRecord]:
        """Returns the answers to questions about an investigation, in the order of their places."""
        return await self._records("answers", parent=run)

    async def unpublished(self, limit: int, but: Collection[UUID] = ()) -> list[InvestigationRecord]:
        """Returns investigations whose objects have an outdated status, oldest first.

        Args:
            limit: maximum investigations.
            but: left out unless they have finished.
        """
        return await self._records("unpublished", limit=limit, without=list(but))

    async def published(self, ids: Iterable[UUID]) -> dict[UUID, Published]:
        """Returns those of `ids` that have finished, whose last revision was published with a known status."""
        found = await self._fetch("published", "published investigations", ids=list(ids))
        return {row["id"]: Published(row["published_digest"], row["finished_at"]) for row in found}

    async def mark_published(self, run: UUID, revision: int, digest: bytes | None = None) -> bool:
        """Notes that the status of the object has `revision`; an older one changes nothing.

        Args:
            run: the investigation or answer.
            revision: of the record.
            digest: of the status, where the run has finished and the API keeps the status as written.

        Returns:
            False if another transaction is changing the run; then nothing was noted.
        """
        return not await self.mark_all_published([Publication(run, revision, digest)])

    async def mark_all_published(self, published: Collection[Publication]) -> frozenset[UUID]:
        """Notes what objects show, as `mark_published` does; of a run at most once.

        Returns:
            The runs that another transaction is changing, of which nothing was noted.
        """
        if not published:
            return frozenset()
        ids = [one.run for one in published]
        values = {
            "ids": ids,
            "revisions": [one.revision for one in published],
            "digests": [one.digest for one in published],
        }

        async def update(connection: asyncpg.Connection) -> frozenset[UUID]:
            return frozenset(row["id"] for row in await connection.fetch(*self._sql["mark_published"](**values)))

        runs = str(ids[0]) + (f" and {len(published) - 1} others" if len(published) > 1 else "")
        return await call(self._pool, f"mark investigation {runs} as published", update)

    async def timeline(self, run: UUID, after_revision: int = 0, limit: int = 1000) -> list[TimelineEvent]:
        """Returns events changed after a revision, in order; their highest revision is the next `after_revision`.

        Args:
            run: the investigation.
            after_revision: 0 for all.
            limit: maximum events; more are returned when they changed in one transaction.
        """
        found = await self._fetch(
            "timeline", f"timeline of {run}", investigation=run, after=after_revision, limit=limit
        )
        return [rows.timeline_event(row) for row in found]

    async def sent(self, model_call: UUID) -> list[Message]:
        """Returns the messages exactly as one model call sent them, whatever was compacted later."""
        found = await self._fetch("sent", f"the messages of model call {model_call}", model_call=model_call)
        return [rows.message(row) for row in found]

    async def queue_depth(self, namespace_uids: Sequence[str] | None = None) -> QueueDepth:
        """Returns the numbers of runs that wait, run, lack a worker, and are parked.

        Args:
            namespace_uids: uids of their namespaces; None: all.
        """
        (row,) = await self._fetch("queue_depth", "queue", namespace_uids=namespace_uids)
        return QueueDepth(**row)

    async def usage(
        self, seconds: float, by: UsageBy, namespace_uids: Sequence[str] | None = None, *, replays: bool = False
    ) -> list[UsageSum]:
        """Returns sums of the usage of recent model calls, the most expensive first; days are those of UTC.

        Args:
            seconds: back from now.
            by: dimension of the sums.
            namespace_uids: only these namespaces; None: all.
            replays: whether calls of replays count.
        """
        found = await self._fetch(
            "usage", "the usage of models", seconds=seconds, by=by, namespace_uids=namespace_uids, replays=replays
        )
        return [UsageSum(**row) for row in found]

    async def unfinished(self) -> set[UUID]:
        """Returns runs that wait or are in progress."""
        return {row["id"] for row in await self._fetch("unfinished", "unfinished investigations")}

    async def known(self, ids: Iterable[UUID]) -> set[UUID]:
        """Returns those of `ids` that have a record."""
        return {row["id"] for row in await self._fetch("known", "known investigations", ids=list(ids))}

    async def _records(self, query: str, /, **values: Any) -> list[InvestigationRecord]:
        found = await self._fetch(query, "investigations", judged=MAX_JUDGED, **values)
        if not found:
            return []
        stages: defaultdict[UUID, list[StageProgress]] = defaultdict(list)
        ids = [row["id"] for row in found]
        for row in await self._fetch("stages", "stages", ids=ids):
            stages[row["investigation"]].append(rows.stage_view(row))
        changes: defaultdict[UUID, list[ProviderChange]] = defaultdict(list)
        for row in await self._fetch("provider_changes", "changes of provider", ids=ids):
            changes[row["investigation"]].append(ProviderChange(row["revision"], row["reason"], row["message"]))
        return [rows.investigation(row, stages[row["id"]], changes[row["id"]], self.calibration_floor) for row in found]

    async def _fetch(self, query: str, what: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))
