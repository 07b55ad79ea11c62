"""Decides the outcome of notifications that arrive over HTTP, and stores the incidents that they belong to.

A notification is one row, written in the transaction that decides its fate. The same transaction opens an incident with
the manifest of the Alert that it owes; `tarsy.runtime.incidents` creates the Alert after the commit. Decision:
notifications of one route are decided one after the other under one lock, so that concurrent notifications of an
incident lead to one Alert, and storms are counted exactly.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import asyncpg

from tarsy.store._notifications import (
    AlertDraft,
    Decision,
    Fate,
    Led,
    LedgerLine,
    Occurrence,
    Owed,
    QueueFull,
    Received,
    Tally,
)
from tarsy.store.database import call, fetch_rows
from tarsy.store.queries import load

__all__ = [
    "AlertDraft",
    "Decision",
    "Fate",
    "Intake",
    "Led",
    "LedgerLine",
    "Occurrence",
    "Owed",
    "QueueFull",
    "Received",
    "Tally",
]

RESEND_SECONDS = 300.0
"""The same body from the same sender within this time is a retry: the sender did not receive the response.
Alertmanager retries for about its group_interval (default 5 minutes) and repeats after hours."""

QUIET_SECONDS = 3600.0
"""Alerts without a start time belong to a new incident when their group was silent for this long."""

QUEUE_LIMIT = 1000
"""Waiting investigations above which new incidents are rejected with a request to retry."""

NAMESPACE_QUEUE_LIMIT = 500
"""The same for one namespace. Further ones do not count in the total, so one namespace never fills the whole queue."""

_PURGED_AT_ONCE = 5_000


class Intake:
    """Decides notifications and keeps incidents; every method raises StoreError when Postgres is unavailable."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        *,
        queue_limit: int = QUEUE_LIMIT,
        namespace_queue_limit: int = NAMESPACE_QUEUE_LIMIT,
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            queue_limit: waiting investigations above which new incidents are refused; a namespace of which none waits
            may
                always open one.
            namespace_queue_limit: the same for one namespace.
        """
        self._pool = pool
        self._queue_limit = queue_limit
        self._each = min(namespace_queue_limit, queue_limit)
        self._sql = load("intake")

    async def reject(
        self, received: Received, reason: str, *, remaining: Callable[[], float] | None = None
    ) -> Decision:
        """Records a rejected notification; a retry gets the decision on the first one.

        Args:
            received: the notification.
            reason: one CamelCase word.
            remaining: returns the seconds left; see `tarsy.store.database.call`.
        """

        async def write(connection: asyncpg.Connection) -> Decision:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=received.digest))
                before = await self._before(connection, received)
                if before is None:
                    await self._write(connection, received, "rejected", reason, None)
                return before or Decision("rejected", reason)

        return await call(self._pool, "record a rejected notification", write, remaining=remaining)

    async def decide(
        self, received: Received, what: Occurrence, *, remaining: Callable[[], float] | None = None
    ) -> Decision:
        """Decides and records the fate of a notification that a route matches; a retry gets the first decision.

        Args:
            received: the notification.
            what: the state of its group.
            remaining: returns the seconds left; see `tarsy.store.database.call`.

        Raises:
            QueueFull: it would open an incident, and too many investigations wait.
        """

        async def write(connection: asyncpg.Connection) -> Decision:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=received.route))
                before = await self._before(connection, received)
                if before is not None:
                    return before
                fate, reason, incident = await self._fate(connection, received, what)
                await self._write(connection, received, fate, reason, incident)
                namespace, _, name = received.route.partition("/")
                await connection.execute(*self._sql["matched"](uid=what.route_uid, namespace=namespace, name=name))
                return Decision(fate, reason, await self._alert(connection, incident))

        return await call(self._pool, "decide on a notification", write, remaining=remaining)

    async def _fate(
        self, connection: asyncpg.Connection, received: Received, what: Occurrence
    ) -> tuple[Fate, str, UUID | None]:
        if not what.firing:
            ended = await connection.fetchval(*self._sql["ended"](group=what.group, last=what.last))
            if ended is not None:
                await connection.execute(*self._sql["resolve"](id=ended))
            await connection.execute(*self._sql["keep_early"](group=what.group, last=what.last))
            return "resolved", "Resolved" if ended is not None else "ResolvedUnknown", ended
        same = await connection.fetchval(*self._sql["same"](group=what.group, first=what.first, seconds=QUIET_SECONDS))
        if same is not None:
            await connection.execute(*self._sql["repeat"](id=same, first=what.first, last=what.last))
            return "folded", "Repeat", same
        waiting = await connection.fetchrow(*self._sql["waiting"](namespace=what.namespace, limit=self._each))
        if waiting["here"] > self._each:
            raise QueueFull(what.namespace)
        if waiting["everywhere"] > self._queue_limit and waiting["here"]:
            raise QueueFull
        incident, in_storm = uuid4(), False
        period = {"route": received.route, "seconds": what.storm_seconds}
        if await connection.fetchval(*self._sql["recent"](**period)) >= what.storm_alerts:
            storm = await connection.fetchval(*self._sql["storm"](**period))
            if storm is not None:
                await connection.execute(
                    *self._sql["fold"](
                        id=incident,
                        storm=storm,
                        route=received.route,
                        group=what.group,
                        first=what.first,
                        last=what.last,
                    )
                )
                await self._resolve_early(connection, incident, what)
                return "folded", "Storm", incident
            in_storm = True
        draft = what.draft(what.first or await connection.fetchval(*self._sql["now"]()), in_storm)
        if draft.body is not None:
            digest, content = draft.body
            await connection.execute(*self._sql["keep_body"](namespace=draft.namespace, digest=digest, content=content))
        await connection.execute(
            *self._sql["open"](
                id=incident,
                route=received.route,
                group=what.group,
                namespace=draft.namespace,
                alert=draft.name,
                manifest=dict(draft.manifest),
                storm=in_storm,
                first=what.first,
                last=what.last,
                incident_key=draft.incident_key,
            )
        )
        await self._resolve_early(connection, incident, what)
        return "investigated", "StormBegins" if in_storm else "NewIncident", incident

    async def _resolve_early(self, connection: asyncpg.Connection, incident: UUID, what: Occurrence) -> None:
        """Ends an incident whose resolved notification came before its first one."""
        early = self._sql["early"](group=what.group, first=what.first, seconds=QUIET_SECONDS)
        if await connection.fetchval(*early) is not None:
            await connection.execute(*self._sql["resolve"](id=incident))

    async def _before(self, connection: asyncpg.Connection, received: Received) -> Decision | None:
        row = await connection.fetchrow(
            *self._sql["resend"](
                digest=received.digest, route=received.route, sender=received.sender, seconds=RESEND_SECONDS
            )
        )
        if row is None:
            return None
        return Decision(row["fate"], row["reason"], await self._alert(connection, row["incident"]))

    async def _alert(self, connection: asyncpg.Connection, incident: UUID | None) -> Owed | None:
        row = await connection.fetchrow(*self._sql["alert"](id=incident)) if incident is not None else None
        return Owed(row["id"], row["namespace"], row["alert"], row["manifest"]) if row is not None else None

    async def _write(
        self, connection: asyncpg.Connection, received: Received, fate: Fate, reason: str, incident: UUID | None
    ) -> None:
        await connection.execute(
            *self._sql["write"](
                source=received.source,
                route=received.route,
                sender=received.sender,
                digest=received.digest,
                size=received.size,
                fate=fate,
                reason=reason,
                incident=incident,
            )
        )

    async def made(self, incident: UUID, alert_uid: str) -> None:
        """Notes that the Alert of an incident was created."""
        await self._execute("note that an Alert was created", "made", id=incident, alert_uid=alert_uid)

    async def refused(self, incident: UUID, reason: str) -> None:
        """Rejects the notifications of an incident whose Alert can never be created."""
        await self._execute("note that an Alert was refused", "refuse", id=incident, reason=reason)

    async def lead(self, namespace: str, key: str, alert: str, uid: str, *, instead_of: UUID | None = None) -> Led:
        """Returns the leading Alert of the incident of a key: the first that asks, or the one that replaces it.

        Args:
            namespace: of the Alert.
            key: its incidentKey.
            alert: its name.
            uid: its metadata.uid.
            instead_of: an incident that is over; the Alert leads a new one, unless another Alert opened one meanwhile.
        """

        async def write(connection: asyncpg.Connection) -> Led:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=f"{namespace}\n{key}"))
                row = await connection.fetchrow(*self._sql["followed"](id=_place(uid)))
                if row is None or row["id"] == instead_of:
                    row = await connection.fetchrow(
                        *self._sql["leader"](namespace=namespace, incident_key=key, seconds=QUIET_SECONDS)
                    )
                if row is None or row["id"] == instead_of:
                    incident, group = uuid4(), hashlib.sha256(f"incidentKey\n{namespace}\n{key}".encode()).hexdigest()
                    await connection.execute(
                        *self._sql["lead"](
                            id=incident,
                            group=group,
                            namespace=namespace,
                            alert=alert,
                            alert_uid=uid,
                            incident_key=key,
                        )
                    )
                    return Led(incident, alert, uid, own=True)
                own = row["alert"] == alert and row["alert_uid"] in (None, uid)
                return Led(row["id"], row["alert"], row["alert_uid"], own, row["recent"], row["resolved"])

        return await call(self._pool, "read the leading Alert of an incident", write)

    async def follow(self, incident: UUID, namespace: str, alert: str, uid: str) -> None:
        """Counts an Alert that is folded into an incident, once.

        Args:
            incident: the incident.
            namespace: of the Alert.
            alert: its name.
            uid: its metadata.uid.
        """
        await self._execute(
            "fold an Alert", "follow", incident=incident, id=_place(uid), namespace=namespace, alert=alert
        )

    async def owed(self, *, older_seconds: float, limit: int = 100) -> list[Owed]:
        """Returns up to `limit` Alerts that are owed for longer than `older_seconds`, oldest first."""
        rows = await self._fetch("read owed Alerts", "owed", seconds=older_seconds, limit=limit)
        return [Owed(row["id"], row["namespace"], row["alert"], row["manifest"]) for row in rows]

    async def keep(self, namespace: str, digest: str, text: str) -> None:
        """Stores a text that an Alert of the namespace refers to by its SHA-256 (`digest`)."""
        await self._execute("keep the text of an alert", "keep_body", namespace=namespace, digest=digest, content=text)

    async def body(self, namespace: str, digest: str) -> str | None:
        """Returns a text by its SHA-256; None when it is not stored, or not any more."""
        rows = await self._fetch("read the text of an alert", "body", namespace=namespace, digest=digest)
        return str(rows[0]["content"]) if rows else None

    async def unpublished(self, limit: int = 500) -> list[Tally]:
        """Returns counters of incidents that are not in the status of their Alerts yet."""
        rows = await self._fetch("read unpublished counters of incidents", "unpublished", limit=limit)
        return [Tally(**row) for row in rows]

    async def published(self, tally: Tally) -> None:
        """Notes that the counters were published."""
        await self._execute("note published counters of an incident", "published", id=tally.id, revision=tally.revision)

    async def changed_routes(self, limit: int = 1000) -> list[tuple[str, str, str]]:
        """Returns uid, namespace and name of routes whose published count is out of date."""
        rows = await self._fetch("read changed counts of routes", "changed_routes", limit=limit)
        return [(row["uid"], row["namespace"], row["name"]) for row in rows]

    async def route(self, uid: str) -> tuple[int, datetime] | None:
        """Returns the number of notifications that a route matched, and the time of the last one."""
        rows = await self._fetch("read the count of a route", "route", uid=uid)
        return (rows[0]["matched"], rows[0]["last_matched"]) if rows else None

    async def route_published(self, uid: str, matched: int) -> None:
        """Notes that the count was published."""
        await self._execute("note the published count of a route", "route_published", uid=uid, matched=matched)

    async def ledger(self, seconds: float | None = None) -> tuple[list[LedgerLine], int]:
        """Returns fates of notifications of the last `seconds` (None: all), and the number of duplicate incidents."""

        async def read(connection: asyncpg.Connection) -> tuple[list[LedgerLine], int]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                rows = await connection.fetch(*self._sql["ledger"](seconds=seconds))
                twice: int = await connection.fetchval(*self._sql["twice"](seconds=seconds))
                return [LedgerLine(**row) for row in rows], twice

        return await call(self._pool, "read the ledger of notifications", read)

    async def purge(self, seconds: float) -> int:
        """Deletes data older than `seconds` but no incident that owes an Alert; returns the number of notifications."""
        deleted = 0
        for statement in ("purge_notifications", "purge_incidents", "purge_early", "purge_bodies"):
            while True:
                gone = await self._execute(
                    "delete old notifications", statement, seconds=seconds, limit=_PURGED_AT_ONCE
                )
                deleted += gone if statement == "purge_notifications" else 0
                if not gone:  # those that stood for others go in a round of their own
                    break
        return deleted

    async def _execute(self, what: str, statement: str, /, **values: Any) -> int:
        async def run(connection: asyncpg.Connection) -> int:
            return int((await connection.execute(*self._sql[statement](**values))).rpartition(" ")[2])

        return await call(self._pool, what, run)

    async def _fetch(self, what: str, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, what, self._sql[statement](**values))


def _place(uid: str) -> UUID:
    """Returns the id of the row of a folded Alert."""
    return uuid5(NAMESPACE_OID, uid)
