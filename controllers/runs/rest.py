"""Recognizes finished objects that nothing is left to do for, without parsing them.

Watches: nothing of its own. Decides: whether a finished Alert, Investigation or ChatMessage rests. Writes: nothing.

A finished run rests when its record has been published, and when the status of its object has the digest that the
publisher noted in the record: so nobody has changed it since, even while no operator ran. The records of all objects
that wait to be looked at are asked for in one query. A finished Alert rests when its status is what its Investigation's
status makes it. All others are reconciled. The digest contains the version of this program: after an upgrade each
object is projected once more.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any
from uuid import UUID

import orjson

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import AtRest, ReconcileContext
from tarsy.controllers.runs.alert_rest import alert_rests
from tarsy.controllers.runs.restored import ACCEPTED_UID, labels_name_alert
from tarsy.controllers.runs.run_secret import RUN_SECRET
from tarsy.record.run import InvestigationRecord
from tarsy.resources.v1alpha1 import Alert, ChatMessage, Investigation
from tarsy.resources.v1alpha1.common import WEEK_SECONDS
from tarsy.resources.v1alpha1.scoring import SCORE_REQUEST
from tarsy.store.reading.reads import Published, Reads

AT_ONCE = 1000
"""Maximum records of one query."""

_RELEASE = version("tarsy-operator").encode()[:64]


@dataclass(frozen=True, slots=True)
class Resting:
    """Holds the seconds until an object that rests is looked at again; None: when it changes."""

    seconds: float | None


def status_digest(status: Mapping[str, Any]) -> bytes:
    """Computes the digest of a status as the API returns it, for this version of the program."""
    return hashlib.blake2b(orjson.dumps(status, option=orjson.OPT_SORT_KEYS), digest_size=16, key=_RELEASE).digest()


def rest_until(moment: datetime | None, now: datetime) -> Resting | None:
    """Returns the rest of an object until it expires at `moment` (None: never); one that has expired does not rest."""
    if moment is None:
        return Resting(None)
    left = (moment - now).total_seconds()
    return Resting(left + 1) if left > 0 else None


async def note_rest(
    run: Investigation | ChatMessage, record: InvestigationRecord, until: datetime | None, context: ReconcileContext
) -> None:
    """Notes that nothing is left to do for a run, here and in its record.

    Args:
        run: the object, with the status that its record makes.
        record: of the run, published.
        until: when the object is deleted; None: it goes with another object.
        context: of the reconcile.

    Raises:
        StoreError: the record could not be written.
    """
    meta = run.metadata
    context.at_rest[meta.uid] = meta.resource_version, until
    document = context.cache.finished(Key(run.KIND, meta.namespace, meta.name))
    raw = orjson.loads(document) if document is not None else {"metadata": {}}
    if raw["metadata"].get("resourceVersion") == meta.resource_version:
        digest = status_digest(raw["status"])
        if digest != record.published_digest:
            await context.store.reads.mark_published(record.id, record.revision, digest)


def note_published(raw: Mapping[str, Any], finished: datetime, at_rest: AtRest) -> None:
    """Notes that a run rests whose final status was written, and noted in its record, by this program just now.

    Args:
        raw: the object as the API returned it.
        finished: when the run ended.
        at_rest: takes the note.
    """
    if _is_as_accepted(raw):
        meta = raw["metadata"]
        until = None if raw["kind"] == ChatMessage.KIND else _expiry(raw, finished)
        at_rest[meta["uid"]] = meta["resourceVersion"], until


class Rest:
    """Finds out which objects rest.

    Args:
        cache: the cached objects.
        reads: the records.
        at_rest: the runs that were found at rest, here or by a reconcile.
        next_keys: lists the keys whose turn is next, at most a number of them.
    """

    def __init__(self, cache: Cache, reads: Reads, at_rest: AtRest, next_keys: Callable[[int], Sequence[Key]]) -> None:
        self._cache = cache
        self._reads = reads
        self._at_rest = at_rest
        self._next_keys = next_keys
        self._published: dict[UUID, Published | None] = {}
        self._asking = asyncio.Lock()

    async def of(self, key: Key) -> Resting | None:
        """Returns when an object that rests is looked at again; None: it must be reconciled.

        Raises:
            StoreError: the records could not be read.
        """
        if (document := self._cache.finished(key)) is None:
            return None
        if key.kind == Alert.KIND:
            return self._of_alert(key, orjson.loads(document))
        version = self._cache.version(key)
        assert version is not None  # it is cached
        state, until = self._at_rest.get(version.uid, ("", None))
        if not state or state != version.resource_version:
            raw = orjson.loads(document)
            if not _is_as_accepted(raw):
                return None
            published = await self._of_record(UUID(version.uid))
            if published is None or published.digest != status_digest(raw["status"]):
                return None
            until = None if key.kind == ChatMessage.KIND else _expiry(raw, published.finished_at)
            self._at_rest[version.uid] = version.resource_version, until
        return rest_until(until, datetime.now(UTC))

    def _of_alert(self, key: Key, raw: Mapping[str, Any]) -> Resting | None:
        reference = raw["status"].get("investigationRef") or {}
        investigation = Key(Investigation.KIND, key.namespace, reference.get("name", ""))
        version, document = self._cache.version(investigation), self._cache.finished(investigation)
        there = version is not None and version.uid == reference.get("uid")
        if there and document is None:
            return None  # it has not finished
        ended = alert_rests(raw, orjson.loads(document) if there and document is not None else None)
        return None if ended is None else rest_until(_expiry(raw, ended), datetime.now(UTC))

    async def _of_record(self, run: UUID) -> Published | None:
        """Returns what a run was published with; reads that of the runs whose turn is next, too.

        What was read stays until its turn: several workers ask, and each has a key that the others no longer see.
        """
        async with self._asking:
            if run not in self._published:
                next_keys = self._next_keys(AT_ONCE - 1)
                if not next_keys:
                    self._published.clear()  # objects that went before their turn
                ids = {run} | {UUID(uid) for key in next_keys if (uid := self._unknown(key)) is not None}
                self._published |= dict.fromkeys(ids) | await self._reads.published(ids)
            return self._published.pop(run)

    def _unknown(self, key: Key) -> str | None:
        """Returns the uid of a run whose record has not been asked for."""
        version = None if key.kind == Alert.KIND else self._cache.version(key)
        if version is None or version.uid in self._at_rest or UUID(version.uid) in self._published:
            return None
        return version.uid


def _is_as_accepted(raw: Mapping[str, Any]) -> bool:
    """Checks what the digest of the status does not cover: annotations, generation, and questions to be cancelled."""
    meta, marks = raw["metadata"], raw["metadata"].get("annotations") or {}
    return (
        (marks[ACCEPTED_UID] == meta["uid"] if ACCEPTED_UID in marks else _made_for_alert(raw))
        and RUN_SECRET not in marks
        and SCORE_REQUEST not in marks
        and raw["status"].get("observedGeneration") == meta.get("generation")
        and (raw["kind"] != Investigation.KIND or raw["spec"].get("desiredState") != "Cancelled")
    )


def _made_for_alert(raw: Mapping[str, Any]) -> bool:
    """Checks whether this operator created an Investigation for an Alert: such an object has no mark."""
    return labels_name_alert(raw["metadata"].get("labels") or {}, (raw["spec"].get("alertRef") or {}).get("uid"))


def _expiry(raw: Mapping[str, Any], finished: datetime) -> datetime:
    return finished + timedelta(seconds=raw["spec"].get("ttlSecondsAfterFinished", WEEK_SECONDS))
