"""Stores changes of the status of conditions of configuration objects.

A change is identified by uid of the object, type, time and status: a controller that starts again, or a second one,
writes what is known already without effect. Each condition keeps its latest changes, and retention deletes old ones.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import asyncpg

from tarsy.record.reading.condition_transition import ConditionHead, ConditionTransition
from tarsy.record.reading.object_history import ObjectIdentity
from tarsy.record.text import clean
from tarsy.store.database import call
from tarsy.store.queries import load
from tarsy.store.text import clean_or_none

KEPT: Final = 100
"""Changes of one condition that are kept, the latest ones."""

TRANSITION_LOCK: Final = 7_261_979_005
"""Advisory lock of writing changes."""

_ROWS_AT_ONCE = 5_000


class ConditionTransitions:
    """Writes, reads and deletes changes; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("condition_transitions")

    async def heads(self, uids: Collection[str]) -> Mapping[str, tuple[str, dict[str, ConditionHead]]]:
        """Returns the last change of each condition by type, with the uid of the namespace, by uid of the object."""
        found: dict[str, tuple[str, dict[str, ConditionHead]]] = {}
        for row in await self._fetch("read the last changes of conditions", "heads", uids=list(uids)):
            _, heads = found.setdefault(row["uid"], (row["namespace_uid"], {}))
            heads[row["type"]] = ConditionHead(row["status"], row["at"])
        return found

    async def write(self, changes: Sequence[ConditionTransition]) -> int:
        """Stores changes that are not stored yet, and returns their number.

        Args:
            changes: with masked messages, in the order in which they happened.
        """
        values = _arrays(changes)

        async def write(connection: asyncpg.Connection) -> int:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=TRANSITION_LOCK))
                new = await connection.fetch(*self._sql["write"](**values))
                if new:
                    touched = sorted({row["uid"] for row in new})
                    await connection.execute(*self._sql["trim"](uids=touched, kept=KEPT))
            return len(new)

        return await call(self._pool, "write changes of conditions", write)

    async def page(
        self,
        kinds: Sequence[str],
        limit: int,
        *,
        namespace_uids: Sequence[str] | None = None,
        name: str | None = None,
        before: tuple[datetime, int] | None = None,
    ) -> list[ConditionTransition]:
        """Returns changes, the latest first.

        Args:
            kinds: of the objects.
            limit: maximum number.
            namespace_uids: uids of the namespaces of the objects; None: all.
            name: of the objects; None: any.
            before: time and id of the last change of the page before.
        """
        moment, identity = before or (None, None)
        values = {"kinds": list(kinds), "limit": limit, "namespace_uids": namespace_uids, "name": name}
        rows = await self._fetch("read changes of conditions", "page", **values, before=moment, before_id=identity)
        return [_transition(row) for row in rows]

    async def of_objects(self, uids: Collection[str], since: datetime) -> Mapping[str, Sequence[ConditionTransition]]:
        """Returns the changes of objects since a time and the last one before it of each condition, the oldest first.

        Args:
            uids: of the objects.
            since: begin of the period.
        """
        found: defaultdict[str, list[ConditionTransition]] = defaultdict(list)
        for row in await self._fetch("read changes of conditions", "of_objects", uids=list(uids), since=since):
            found[row["uid"]].append(_transition(row))
        return found

    async def survey(self, seconds: float, namespaces: Sequence[str] = ()) -> Mapping[str, int]:
        """Returns the number of changes by namespace that `purge` with the same arguments would delete."""
        values = {"seconds": seconds, "namespaces": list(namespaces)}
        rows = await self._fetch("look for old changes of conditions", "survey", **values)
        return {row["namespace"]: row["transitions"] for row in rows}

    async def purge(self, seconds: float, namespaces: Sequence[str] = ()) -> Mapping[str, int]:
        """Deletes changes that are older than `seconds`; returns their number by namespace.

        Args:
            seconds: maximum age.
            namespaces: only these; empty: all.
        """
        deleted: Counter[str] = Counter()
        values = {"seconds": seconds, "namespaces": list(namespaces), "rows": _ROWS_AT_ONCE}
        while gone := await self._fetch("delete old changes of conditions", "purge", **values):
            deleted.update({row["namespace"]: row["transitions"] for row in gone})
        return deleted

    async def _fetch(self, what: str, query: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql[query](**values))
            return found

        return await call(self._pool, what, fetch)


def _arrays(changes: Sequence[ConditionTransition]) -> dict[str, list[Any]]:
    return {
        "uids": [one.object.uid for one in changes],
        "namespace_uids": [one.object.namespace_uid for one in changes],
        "namespaces": [one.object.namespace for one in changes],
        "kinds": [one.object.kind for one in changes],
        "names": [one.object.name for one in changes],
        "types": [one.type for one in changes],
        "ats": [one.at for one in changes],
        "statuses": [one.status for one in changes],
        "befores": [one.was for one in changes],
        "reasons": [clean(one.reason) for one in changes],
        "messages": [clean(one.message) for one in changes],
        "addresses": [clean_or_none(one.address) for one in changes],
        "omitted": [one.omitted for one in changes],
    }


def _transition(row: asyncpg.Record) -> ConditionTransition:
    named = ("namespace_uid", "namespace", "kind", "name", "uid")
    others = {key: value for key, value in row.items() if key not in named}
    return ConditionTransition(object=ObjectIdentity(**{key: row[key] for key in named}), **others)
