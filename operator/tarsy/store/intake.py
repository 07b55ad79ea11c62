"""What comes in over HTTP: the fate of each notification, and the incidents that they are of.

A notification is one row, written in the transaction that decides its fate; an incident is opened in it together with
the Alert that it owes, which is made after the commit by whoever comes first (`tarsy.runtime.incidents`). Decision:
notifications of one route are decided one after the other, under one lock, so that an incident has one Alert however
many say the same at once, and the count that makes a storm is exact.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

Fate = Literal["investigated", "folded", "resolved", "rejected"]
RESEND_SECONDS = 300.0
"""The same body from the same sender within this time is not a new notification: its sender did not hear the answer.
Alertmanager tries again for about its group_interval, 5 minutes as shipped, and repeats after hours."""

QUIET_SECONDS = 3600.0
"""What comes without a time since when it fires is another incident after this long without a word."""

QUEUE_LIMIT = 1000
"""So many investigations may wait, before new incidents are sent back for later."""

NAMESPACE_QUEUE_LIMIT = 500
"""So many of one namespace may. More of them do not count in all, so that one namespace never fills the whole queue."""

_PURGED_AT_ONCE = 5_000


class QueueFull(Exception):
    """More investigations wait than may: nothing was written, and the same notification is welcome later.

    `namespace` is the one whose own limit was reached; empty: that of all.
    """

    def __init__(self, namespace: str = "") -> None:
        super().__init__(namespace)
        self.namespace = namespace


@dataclass(frozen=True, slots=True)
class Received:
    """A notification as it came. `route` is namespace/name, or empty; `digest` is the SHA-256 of its body."""

    source: str
    sender: str
    digest: str
    size: int
    route: str = ""


@dataclass(frozen=True, slots=True)
class AlertDraft:
    """An Alert to be made, and the text it names where that is too large for it: its SHA-256 and itself.

    `incident_key` is what its spec says.
    """

    namespace: str
    name: str
    manifest: Mapping[str, Any]
    body: tuple[str, str] | None = None
    incident_key: str | None = None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What a notification says of its group.

    `first` and `last` are since when the earliest and the latest of what fires does (of what ended, where nothing
    fires); None: nobody knows. `draft` makes the Alert of a new incident, given when that begins and whether it stands
    for a storm; `namespace` is where that will be.
    """

    route_uid: str
    group: str
    firing: bool
    first: datetime | None
    last: datetime | None
    storm_alerts: int
    storm_seconds: float
    draft: Callable[[datetime, bool], AlertDraft]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Owed:
    """The Alert that stands for an incident; `manifest` is None where it has been made."""

    incident: UUID
    namespace: str
    name: str
    manifest: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The fate of a notification, why, and the Alert it led to; None: it led to none."""

    fate: Fate
    reason: str
    alert: Owed | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """What is to be told on the Alert of an incident; `revision` is noted when it has been."""

    id: UUID
    namespace: str
    alert: str
    alert_uid: str
    repeats: int
    folded: int
    last_received: datetime
    resolved_at: datetime | None
    revision: int


@dataclass(frozen=True, slots=True)
class Led:
    """Who leads the incident of a key. `own`: the Alert that was asked for; `alert_uid` None: it is to be made yet.

    `recent`: it was heard of within QUIET_SECONDS; `resolved`: its sender said that it fires no more.
    """

    incident: UUID
    alert: str
    alert_uid: str | None
    own: bool
    recent: bool = True
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Notifications of one fate and reason; `owed`: their Alert has not been made yet."""

    fate: Fate
    reason: str
    owed: bool
    notifications: int
    resends: int


class Intake:
    """Decides notifications and keeps incidents; every method raises StoreError when Postgres is away."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        *,
        queue_limit: int = QUEUE_LIMIT,
        namespace_queue_limit: int = NAMESPACE_QUEUE_LIMIT,
    ) -> None:
        """Takes the pool, and how many investigations may wait, in all and of one namespace.

        Where more wait, new incidents are not taken; but one of a namespace of which none waits always is.
        """
        self._pool = pool
        self._queue_limit = queue_limit
        self._each = min(namespace_queue_limit, queue_limit)
        self._sql = load("intake")

    async def reject(
        self, received: Received, reason: str, *, remaining: Callable[[], float] | None = None
    ) -> Decision:
        """Writes down a notification that leads to nothing, and why; one that was sent again has its fate already."""

        async def write(connection: asyncpg.Connection) -> Decision:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=received.digest))
                before = await self._before(connection, received)
                if before is None:
                    await self._write(connection, received, "rejected", reason, None)
                return before or Decision("rejected", reason)

        return await call(self._pool, "write down a notification", write, remaining=remaining)

    async def decide(
        self, received: Received, what: Occurrence, *, remaining: Callable[[], float] | None = None
    ) -> Decision:
        """Decides the fate of a notification that a route takes, and writes it down; once, however often it is sent.

        Args:
            received: as it came.
            what: what it says.
            remaining: seconds left for it; see `tarsy.store.database.call`.

        Raises:
            QueueFull: it would be a new incident, and too much waits.
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

        return await call(self._pool, "decide about a notification", write, remaining=remaining)

    async def _fate(
        self, connection: asyncpg.Connection, received: Received, what: Occurrence
    ) -> tuple[Fate, str, UUID | None]:
        if not what.firing:
            ended = await connection.fetchval(*self._sql["ended"](group=what.group, last=what.last))
            if ended is not None:
                await connection.execute(*self._sql["resolve"](id=ended))
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
        return "investigated", "StormBegins" if in_storm else "NewIncident", incident

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
        """Notes that the Alert of an incident is there."""
        await self._execute("note that an Alert was made", "made", id=incident, alert_uid=alert_uid)

    async def refused(self, incident: UUID, reason: str) -> None:
        """Notes that the Alert of an incident can never be made: what led to it is rejected."""
        await self._execute("note that an Alert was refused", "refuse", id=incident, reason=reason)

    async def lead(self, namespace: str, key: str, alert: str, uid: str, *, instead_of: UUID | None = None) -> Led:
        """Who leads the incident of a key: the first Alert that asks, or the one that replaces it.

        Args:
            namespace: of the Alert.
            key: its incidentKey.
            alert: its name.
            uid: its metadata.uid.
            instead_of: an incident that is over; the Alert leads, unless another has begun one meanwhile.
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

        return await call(self._pool, "ask who leads an incident", write)

    async def follow(self, incident: UUID, namespace: str, alert: str, uid: str) -> None:
        """Counts an Alert that is folded into an incident; once."""
        await self._execute(
            "fold an Alert", "follow", incident=incident, id=_place(uid), namespace=namespace, alert=alert
        )

    async def owed(self, *, older_seconds: float, limit: int = 100) -> list[Owed]:
        """Alerts that are owed for longer than that, the oldest first."""
        rows = await self._fetch("look for Alerts that are owed", "owed", seconds=older_seconds, limit=limit)
        return [Owed(row["id"], row["namespace"], row["alert"], row["manifest"]) for row in rows]

    async def keep(self, namespace: str, digest: str, text: str) -> None:
        """Keeps a text that an Alert of the namespace is to name by its SHA-256."""
        await self._execute("keep the text of an alert", "keep_body", namespace=namespace, digest=digest, content=text)

    async def body(self, namespace: str, digest: str) -> str | None:
        """A text that an Alert of the namespace names; None when it is not kept (any more)."""
        rows = await self._fetch("read the text of an alert", "body", namespace=namespace, digest=digest)
        return str(rows[0]["content"]) if rows else None

    async def unpublished(self, limit: int = 500) -> list[Tally]:
        """What is to be told on Alerts."""
        rows = await self._fetch("read what is to be told on Alerts", "unpublished", limit=limit)
        return [Tally(**row) for row in rows]

    async def published(self, tally: Tally) -> None:
        """Notes that it was told."""
        await self._execute("note what was told on an Alert", "published", id=tally.id, revision=tally.revision)

    async def changed_routes(self, limit: int = 1000) -> list[tuple[str, str, str]]:
        """Uid, namespace and name of routes whose count has grown."""
        rows = await self._fetch("read which routes took something", "changed_routes", limit=limit)
        return [(row["uid"], row["namespace"], row["name"]) for row in rows]

    async def route(self, uid: str) -> tuple[int, datetime] | None:
        """How many notifications a route took, and when it took the last one."""
        rows = await self._fetch("read what a route took", "route", uid=uid)
        return (rows[0]["matched"], rows[0]["last_matched"]) if rows else None

    async def route_published(self, uid: str, matched: int) -> None:
        """Notes that the count was told."""
        await self._execute("note what was told on a route", "route_published", uid=uid, matched=matched)

    async def ledger(self, seconds: float | None = None) -> tuple[list[LedgerLine], int]:
        """What became of the notifications of the last `seconds` (None: of all), and how many incidents began twice."""

        async def read(connection: asyncpg.Connection) -> tuple[list[LedgerLine], int]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                rows = await connection.fetch(*self._sql["ledger"](seconds=seconds))
                twice: int = await connection.fetchval(*self._sql["twice"](seconds=seconds))
                return [LedgerLine(**row) for row in rows], twice

        return await call(self._pool, "read the ledger of notifications", read)

    async def purge(self, seconds: float) -> int:
        """Deletes what is older than that, but never what an Alert is still owed for; how many notifications."""
        deleted = 0
        for statement in ("purge_notifications", "purge_incidents", "purge_bodies"):
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
        async def run(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(*self._sql[statement](**values)))

        return await call(self._pool, what, run)


def _place(uid: str) -> UUID:
    """The row of an Alert that was folded."""
    return uuid5(NAMESPACE_OID, uid)
