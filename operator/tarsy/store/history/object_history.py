"""Writes and reads the history of objects.

Heads are locked while a batch is decided, so that two recorders, which there are for seconds, write one version of one
change. Reading takes the kinds that the reader may read; of others nothing is returned, not even a number.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.reading.object_history import (
    HistoryStep,
    ObjectHead,
    ObjectIdentity,
    ObjectVersion,
    PatchStep,
    Unwatched,
    VersionAction,
    WatchState,
)
from tarsy.store.database import call, fetch_rows
from tarsy.store.queries import load
from tarsy.store.text import dump_json

VERSION_OVERHEAD = 400
"""Bytes that a version takes beside its patch and its whole form: columns, row header, indexes."""

MAX_CHANGES = 5_000
"""Maximum versions that one query returns, the latest."""

STALE_SECONDS = 300.0
"""After this time without news of a watch, its kind counts as not watched."""

_TRIES = 3
_MAX_WINDOWS = 500

Decide = Callable[[Mapping[str, ObjectHead]], Awaitable[Sequence[HistoryStep]]]
"""Decides what is written, from the heads of the objects of a batch by uid; it may be called again."""

_REASONS = {
    WatchState.FORBIDDEN: "TARSy may not list and watch this kind here",
    WatchState.NOT_SERVED: "the cluster does not serve this kind",
    WatchState.UNAVAILABLE: "the Kubernetes API did not answer",
    WatchState.STOPPED: "the namespace has no history any more",
    WatchState.WATCHING: "TARSy did not run",
}


@dataclass(frozen=True, slots=True)
class KnownObject:
    """An object that the history has a head of."""

    uid: str
    name: str
    digest: bytes
    key_id: bytes


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """From when, and until when, a kind was watched in a namespace."""

    since: datetime
    until: datetime
    state: WatchState


class ObjectHistory:
    """Writes and reads versions of objects; every method raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("object_history")

    async def known(self, namespace_uid: str, kind: str) -> list[KnownObject]:
        """Returns the objects of a kind in a namespace that the history has heads of."""
        rows = await self._fetch("known", namespace_uid=namespace_uid, kind=kind)
        return [KnownObject(**row) for row in rows]

    async def record(self, uids: Collection[str], decide: Decide) -> Sequence[HistoryStep]:
        """Writes what `decide` decides for the objects of a batch, in one transaction, and returns it.

        Args:
            uids: of the objects.
            decide: decides it from their heads.
        """
        for _ in range(_TRIES - 1):
            try:
                return await call(self._pool, "record changes of objects", lambda c: self._write(c, uids, decide))
            except _OtherRecorder:
                continue
        return await call(self._pool, "record changes of objects", lambda c: self._write(c, uids, decide))

    async def _write(
        self, connection: asyncpg.Connection, uids: Collection[str], decide: Decide
    ) -> Sequence[HistoryStep]:
        async with connection.transaction():
            rows = await connection.fetch(*self._sql["heads"](uids=list(uids)))
            heads = {row["uid"]: _head(row) for row in rows}
            unknown = [uid for uid in uids if uid not in heads]
            ended = {row["uid"] for row in await connection.fetch(*self._sql["ended"](uids=unknown))}
            steps = [step for step in await decide(heads) if step.uid not in ended]
            new = [step for step in steps if step.head is not None and step.uid not in heads]
            try:
                await self._many(connection, "put_new_head", [_head_columns(step) for step in new])
            except asyncpg.UniqueViolationError as error:
                raise _OtherRecorder from error
            changed = [step for step in steps if step.head is not None and step.uid in heads]
            names = set(self._sql["put_head"].parameters)
            columns = [{k: v for k, v in _head_columns(step).items() if k in names} for step in changed]
            await self._many(connection, "put_head", columns)
            if gone := [step.uid for step in steps if step.head is None]:
                await connection.execute(*self._sql["drop_heads"](uids=gone))
            versions = [step for step in steps if step.version is not None and not step.adds]
            rows_of = [_version_columns(step, heads.get(step.uid)) for step in versions]
            await self._many(connection, "put_version", rows_of)
            await self._many(connection, "add_to_version", [_added(step) for step in steps if step.adds])
            await self._many(connection, "add_size", _sizes(rows_of))
        return steps

    async def watched(self, namespace_uid: str, kind: str) -> WatchedKind | None:
        """Returns until when a kind was watched in a namespace; None: it never was."""
        rows = await self._fetch("watch", namespace_uid=namespace_uid, kind=kind)
        return WatchedKind(rows[0]["since"], rows[0]["until"], WatchState(rows[0]["state"])) if rows else None

    async def note_watches(self, watches: Sequence[tuple[str, str, str, datetime, WatchState]]) -> None:
        """Notes until when kinds were watched: uid and name of the namespace, kind, time, state."""
        rows = [
            {"namespace_uid": uid, "namespace": namespace, "kind": kind, "until": until, "state": state.value}
            for uid, namespace, kind, until, state in watches
        ]

        async def write(connection: asyncpg.Connection) -> None:
            await self._many(connection, "put_watch", rows)

        await call(self._pool, "note which objects are watched", write)

    async def note_unwatched(self, namespace_uid: str, namespace: str, window: Unwatched) -> None:
        """Notes a window that has a start and an end in which a kind was not watched."""
        values = {"kind": window.kind, "since": window.since, "until": window.until, "reason": window.reason}
        await self._fetch("put_unwatched", namespace_uid=namespace_uid, namespace=namespace, **values)

    async def namespace_of_run(self, run: UUID) -> str | None:
        """Returns the uid of the namespace of a run; None where its objects have no history."""
        rows = await self._fetch("namespace_of_run", run=run)
        return str(rows[0]["namespace_uid"]) if rows else None

    async def has_watches(self, namespace_uid: str) -> bool:
        """Returns whether objects of a namespace are, or were, watched."""
        return bool(await self._fetch("has_watches", namespace_uid=namespace_uid))

    async def changes(
        self,
        namespace_uid: str,
        kinds: Collection[str],
        since: datetime,
        until: datetime,
        *,
        limit: int = MAX_CHANGES,
    ) -> list[ObjectVersion]:
        """Returns the latest versions of a namespace in a window, the latest first.

        Args:
            namespace_uid: uid of the namespace: one that was made anew under an old name has a history of its own.
            kinds: the kinds that the reader may read (`get`).
            since: start of the window.
            until: its end.
            limit: maximum versions.
        """
        rows = await self._fetch(
            "changes", namespace_uid=namespace_uid, kinds=list(kinds), since=since, until=until, limit=limit
        )
        return [_version(row) for row in rows]

    async def unwatched(
        self, namespace_uid: str, kinds: Collection[str], since: datetime, until: datetime
    ) -> list[Unwatched]:
        """Returns the windows in which kinds were not watched, or not all changes were recorded.

        Args:
            namespace_uid: as for `changes`.
            kinds: as for `changes`.
            since: start of the window that is asked about.
            until: its end.
        """
        arguments = {"namespace_uid": namespace_uid, "kinds": list(kinds)}
        noted = await self._fetch("unwatched", **arguments, since=since, until=until, limit=_MAX_WINDOWS)
        found = [Unwatched(**row) for row in noted]
        watches = {row["kind"]: row for row in await self._fetch("watches", **arguments)}
        for kind, row in watches.items():
            state = WatchState(row["state"])
            if state is WatchState.NOT_SERVED:
                continue
            if row["since"] > since:
                found.append(Unwatched(kind, None, row["since"], "the history of this kind begins then"))
            stale = (until - row["until"]).total_seconds() > STALE_SECONDS
            if state is not WatchState.WATCHING or stale:
                found.append(Unwatched(kind, row["until"], None, _REASONS[state]))
        missing = sorted(set(kinds) - watches.keys()) if watches else []
        return [*found, *(Unwatched(kind, None, None, "the history has no objects of this kind") for kind in missing)]

    async def chain(
        self, namespace_uid: str, kinds: Collection[str], uid: str, seq: int
    ) -> list[tuple[int, bytes | None, Sequence[PatchStep]]]:
        """Returns what a version is made of: a whole form (compressed) or the creation, then each patch up to `seq`.

        Args:
            namespace_uid: as for `changes`.
            kinds: as for `changes`.
            uid: of the object.
            seq: number of the version.
        """
        rows = await self._fetch("chain", namespace_uid=namespace_uid, kinds=list(kinds), uid=uid, seq=seq)
        return [(row["seq"], row["snapshot"], row["patch"]) for row in rows]

    async def _fetch(self, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, "read or note the history of objects", self._sql[statement](**values))

    async def _many(self, connection: asyncpg.Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            found = self._sql[statement]
            await connection.executemany(found.sql, [found(**row)[1:] for row in rows])


class _OtherRecorder(Exception):
    """Another recorder wrote the first state of an object of the batch."""


def _head(row: asyncpg.Record) -> ObjectHead:
    return ObjectHead(
        object=_identity(row),
        seq=row["seq"],
        digest=row["digest"],
        key_id=row["key_id"],
        resource_version=row["resource_version"],
        form=row["form"],
        changed_at=row["changed_at"],
        noise=row["noise"] if row["noise_count"] is not None else "",  # the version may have been deleted since
        noise_since=row["noise_since"],
        noise_patch=tuple(row["noise_patch"] or ()),
        seen_at=row["seen_at"],
    )


def _identity(row: asyncpg.Record) -> ObjectIdentity:
    return ObjectIdentity(row["namespace_uid"], row["namespace"], row["kind"], row["name"], row["uid"])


def _head_columns(step: HistoryStep) -> dict[str, Any]:
    head = step.head
    if head is None:
        raise ValueError(f"{step.uid} has no head")
    names = ("seq", "digest", "key_id", "resource_version", "form", "changed_at", "noise", "noise_since", "seen_at")
    return {**_identity_columns(head.object), **{name: getattr(head, name) for name in names}}


def _identity_columns(found: ObjectIdentity) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("namespace_uid", "namespace", "kind", "name", "uid")}


def _version_columns(step: HistoryStep, before: ObjectHead | None) -> dict[str, Any]:
    version = step.version
    if version is None:
        raise ValueError(f"{step.uid} has no version")
    seen_at = step.head.seen_at if step.head is not None else None
    patch = list(version.patch)
    size = len(dump_json(patch)) + len(step.snapshot or b"") + VERSION_OVERHEAD
    names = ("seq", "changed_at", "not_before", "last_at", "manager")
    return {
        **_identity_columns(before.object if before is not None else version.object),
        **{name: getattr(version, name) for name in names},
        "seen_at": seen_at or version.last_at,
        "action": version.action.value,
        "type": str(version.type),
        "fields": list(version.fields),
        "patch": patch,
        "snapshot": step.snapshot,
        "bytes": size,
    }


def _added(step: HistoryStep) -> dict[str, Any]:
    version, head = step.version, step.head
    if version is None or head is None:
        raise ValueError(f"{step.uid} has no version to add to")
    return {
        "uid": step.uid,
        "seq": version.seq,
        "seen_at": head.seen_at,
        "last_at": version.last_at,
        "fields": list(version.fields),
        "patch": list(version.patch),
        "snapshot": step.snapshot,
    }


def _sizes(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the bytes to add by namespace and day, in the order of their keys: two recorders lock alike."""
    found: dict[tuple[str, Any], dict[str, Any]] = {}
    for row in rows:
        day = row["seen_at"].astimezone(UTC).date()
        one = found.setdefault(
            (row["namespace_uid"], day),
            {"namespace_uid": row["namespace_uid"], "day": day, "namespace": row["namespace"], "bytes": 0},
        )
        one["bytes"] += row["bytes"]
    return [found[key] for key in sorted(found)]


def _version(row: asyncpg.Record) -> ObjectVersion:
    return ObjectVersion(
        object=_identity(row),
        seq=row["seq"],
        action=VersionAction(row["action"]),
        type=row["type"],
        changed_at=row["changed_at"],
        not_before=row["not_before"],
        last_at=row["last_at"],
        count=row["count"],
        manager=row["manager"],
        fields=tuple(row["fields"]),
        patch=tuple(row["patch"]),
    )
