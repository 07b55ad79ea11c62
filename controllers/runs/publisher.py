"""Publishes records: the progress of a run becomes the status of its object, and Events.

Watches: the record, by its revisions. Decides: what is worth a write: a change that people wait for (a stage, the
phase, a condition) at most once a second, the end at once. Every ten seconds: mere counters, a stage that ended before
the next one began, and the executive summary, which is one call. Writes: the status of accepted Investigations and
ChatMessages, and Events. What cannot be published is left for later and holds nobody up; what was looked at is not read
again for a second, unless it has finished: steps follow each other faster.

What a round has published is noted in the record together. Until then it counts as not published: a controller that
dies before finds the status as it is to be, writes nothing, and notes it.

Others may write the same object all the time: a status that was refused because its object had changed is made anew at
once, a few times, and one that somebody else wrote over is put right, at most once a second. Events tell what is new
since the status that this controller wrote last, not since what it finds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import AtRest, KubernetesPorts, StorePorts
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.machinery.status import merge_patch, write_status
from tarsy.controllers.runs.chat_projection import news_of_answer, project_answer
from tarsy.controllers.runs.projection import news, project
from tarsy.controllers.runs.rest import note_published, status_digest
from tarsy.kube.client import ApiError
from tarsy.record.run import InvestigationRecord, StageKind, State
from tarsy.resources.v1alpha1 import Alert, ChatMessage, ChatMessageStatus, Investigation, InvestigationStatus
from tarsy.resources.v1alpha1.alert import Severity
from tarsy.store.errors import StoreError
from tarsy.store.reading.reads import Publication

_log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
"""The record is looked at this often without a wake-up, and a status is patched at most this often."""

PAUSE_SECONDS = 0.1
"""From a wake-up to a round: steps that follow each other at once, such as accepted and claimed, are one write, and a
busy installation does not read the record with every step of every run."""

COUNTERS_SECONDS = 10.0
_AFTER_ERROR_SECONDS = 10.0
_LIMIT = 1000

TRIES = 5
"""How often a status is made anew in one round because its object has changed."""

NOTED_TOGETHER = 50
"""Published records that are noted at once; a reconcile of their objects waits until they are."""


@dataclass(frozen=True, slots=True)
class _Unnoted:
    """A published record that is not noted as such, and its final status as the API keeps it."""

    record: InvestigationRecord
    digest: bytes | None = None
    answer: Mapping[str, Any] | None = None


class Publisher:
    """Updates statuses from the record.

    Args:
        kubernetes: the Kubernetes API.
        store: the record.
        cache: the objects.
        active: set while this replica may write.
        learned: set when the configuration was listed: a run whose chain is not known yet would be published without
            the notifications that the chain declares.
        note: takes what runs have come to, for people who want to be told, before that counts as published.
        at_rest: takes the runs that nothing is left to do for once they are published.
    """

    def __init__(
        self,
        kubernetes: KubernetesPorts,
        store: StorePorts,
        cache: Cache,
        active: asyncio.Event,
        learned: asyncio.Event,
        *,
        note: Callable[[InvestigationRecord, Investigation], Awaitable[None]] | None = None,
        at_rest: AtRest | None = None,
    ) -> None:
        self._note = note
        self._at_rest = {} if at_rest is None else at_rest
        self._client = kubernetes.client
        self._cache = cache
        self._reads = store.reads
        self._events = kubernetes.events
        self._active = active
        self._changed = store.changed
        self._learned = learned
        self._written: dict[UUID, float] = {}
        self._looked: dict[UUID, float] = {}
        self._held: dict[UUID, float] = {}
        self._again: set[UUID] = set()
        self._told: dict[UUID, _Told] = {}
        self._not_kept: dict[UUID, int] = {}
        self._unnoted: dict[UUID, _Unnoted] = {}

    def again(self, record: InvestigationRecord) -> None:
        """Queues the status of a published run that another client has changed.

        Not where the API itself changed it, such as one whose CRDs are older than this controller.
        """
        if self._not_kept.get(record.id) != record.revision:
            self._again.add(record.id)
            self._changed.set()

    async def run(self) -> None:
        """Publishes until cancelled."""
        await self._learned.wait()
        while True:
            await self._active.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            self._changed.clear()
            wait = _POLL_SECONDS
            try:
                wait = await self.round()
            except (ApiError, StoreError) as error:
                _log.warning("statuses could not be published; retrying: %s", error)
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def round(self) -> float:
        """Publishes every record that is due; returns the seconds until more is due without a wake-up.

        Raises:
            ApiError: the Kubernetes API is away.
            StoreError: Postgres is away.
        """
        now, soonest = time.monotonic(), _POLL_SECONDS
        await self._note_published()  # of a round that did not end
        self._written = {k: v for k, v in self._written.items() if now - v < COUNTERS_SECONDS}
        self._held = {k: v for k, v in self._held.items() if v > now}
        self._looked = {k: v for k, v in self._looked.items() if now - v < _POLL_SECONDS}
        if self._looked:
            soonest = min(soonest, min(self._looked.values()) + _POLL_SECONDS - now)
        due = {record.id: record for record in await self._reads.unpublished(_LIMIT, self._looked)}
        for identity in self._again - due.keys():
            found = await self._reads.record(identity)
            if found is None:
                self._again.discard(identity)
            else:
                due[identity] = found
        with ExitStack() as writing:
            for record in due.values():
                if record.id in self._held or not self._active.is_set():
                    continue
                left = self._written.get(record.id, 0.0) + _POLL_SECONDS - now
                if left > 0 and (record.id in self._again or not record.state.finished):
                    soonest = min(soonest, left)
                    continue
                # Until all is noted: a finished object is then found at rest, with the digest of its status.
                writing.enter_context(self._cache.writing(_key(record)))
                await self._try(record)
                if len(self._unnoted) >= NOTED_TOGETHER:
                    await self._note_published()
                    writing.close()
            await self._note_published()
        return soonest

    async def _try(self, record: InvestigationRecord) -> None:
        """Publishes a record; what cannot be published is left for later, but for an API or a record that is away."""
        wrong = record.id in self._again
        self._again.discard(record.id)
        try:
            await self._publish_despite_conflicts(record)
            self._looked[record.id] = time.monotonic()
        except StoreError:
            raise
        except ApiError as error:
            if wrong:
                self._again.add(record.id)
            if error.transient:
                raise
            if error.reason != "Conflict":
                self._hold(record)
            _log.info("the status of %s/%s could not be written; retrying: %s", record.namespace, record.name, error)
        except Exception:
            self._hold(record)
            _log.exception("the status of %s/%s could not be computed; retrying", record.namespace, record.name)

    async def _note_published(self) -> None:
        """Notes in the record what was published; finished runs are at rest then.

        A run that is being changed waits for the next round.
        """
        noted = list(self._unnoted.values())
        busy = await self._reads.mark_all_published(
            [Publication(one.record.id, one.record.revision, one.digest) for one in noted]
        )
        for one in noted:
            if one.record.id in busy:
                continue
            if self._unnoted.get(one.record.id) is one:
                del self._unnoted[one.record.id]
            if one.answer is not None and one.digest is not None and one.record.finished_at is not None:
                note_published(one.answer, one.record.finished_at, self._at_rest)

    async def _publish_despite_conflicts(self, record: InvestigationRecord) -> None:
        for left in reversed(range(TRIES)):
            try:
                return await self._publish(record)
            except ApiError as error:
                if error.reason != "Conflict" or not left:
                    raise  # the object has changed once more, or this is no conflict

    def _hold(self, record: InvestigationRecord) -> None:
        self._held[record.id] = time.monotonic() + _AFTER_ERROR_SECONDS

    async def _publish(self, record: InvestigationRecord) -> None:
        kind: type[Investigation] | type[ChatMessage] = Investigation if record.parent is None else ChatMessage
        obj: Investigation | ChatMessage | None = self._cache.get(kind, record.namespace, record.name)
        if obj is None or obj.metadata.uid != str(record.id):
            raw = await self._client.find(kind.KIND, record.namespace, record.name)
            if raw is None or raw["metadata"]["uid"] != str(record.id):
                self._told.pop(record.id, None)
                self._unnoted[record.id] = _Unnoted(record)
                return
            found = self._cache.find(self._cache.put(raw))
            if not isinstance(found, Investigation | ChatMessage):
                self._hold(record)
                return
            obj = found
        if (obj.status.record_revision or 0) > record.revision:  # another controller was faster
            latest = await self._reads.record(record.id)
            if latest is None:
                return
            record = latest
        status = await self._status(record, obj)
        if _can_wait(record, obj.status, status) and record.id in self._written:
            return
        digest: bytes | None = None
        # What was told last stays noted until its successor is: the answer to a write may be lost on its way.
        told = self._told.setdefault(record.id, obj.status)
        if answer := await write_status(self._client, self._cache, obj, status):
            self._written[record.id] = time.monotonic()
            if not _is_kept(answer, status):
                self._not_kept[record.id] = record.revision
            elif record.state.finished:
                digest = status_digest(answer["status"])
        if record.revision > record.published_revision:
            if self._note is not None and isinstance(obj, Investigation):
                await self._note(record, obj)
            for weight, reason, message in _news(record, told):
                await self._events.tell(obj, reason, message, kind=weight)
        if record.state.finished:
            del self._told[record.id]
        else:
            self._told[record.id] = status
        self._unnoted[record.id] = _Unnoted(record, digest, answer)

    async def _status(self, record: InvestigationRecord, obj: Investigation | ChatMessage) -> "_Told":
        now = datetime.now(UTC)
        if isinstance(obj, ChatMessage):
            return project_answer(record, obj, now)
        return project(record, obj, now, await self._severity(obj))

    async def _severity(self, investigation: Investigation) -> Severity | None:
        """Returns the severity of the alert in question; None where it has none, or is gone."""
        spec, namespace = investigation.spec, investigation.metadata.namespace
        if spec.alert is not None:
            return spec.alert.severity
        if (ref := spec.alert_ref) is None:
            return None
        if investigation.status.severity is None:
            alert = await look_up(Alert, namespace, ref.name, self._cache, self._client, uid=ref.uid)
        else:  # what was told before stays, so the API is asked once
            alert = self._cache.get(Alert, namespace, ref.name)
        return alert.spec.severity if alert is not None and ref.uid in (None, alert.metadata.uid) else None


_Told = InvestigationStatus | ChatMessageStatus


def _key(record: InvestigationRecord) -> Key:
    kind = Investigation.KIND if record.parent is None else ChatMessage.KIND
    return Key(kind, record.namespace, record.name)


def _is_kept(answer: Mapping[str, Any], status: _Told) -> bool:
    """Checks whether the API keeps a status as it was written; a field that is empty need not be there."""
    kept = answer.get("status") or {}
    try:
        return not merge_patch(kept, status.to_dict()) or type(status).model_validate(kept) == status
    except ValueError:  # it has a form that this version does not know
        return False


def _news(record: InvestigationRecord, told: _Told) -> Iterable[tuple[Literal["Normal", "Warning"], str, str]]:
    return news_of_answer(record, told) if isinstance(told, ChatMessageStatus) else news(record, told)


def _can_wait(record: InvestigationRecord, old: _Told, new: _Told) -> bool:
    """Checks whether only values differ that grow with every step, or that the next news brings in a moment.

    Args:
        record: that `new` is projected from.
        old: the status that the object has.
        new: the status that it is to have.
    """
    same: dict[str, object] = {"usage": old.usage, "record_revision": old.record_revision}
    if old.record is not None:
        same["record"] = old.record
    running = [stage.kind for stage in record.stages if stage.state is State.RUNNING]
    if isinstance(old, InvestigationStatus) and running in ([], [StageKind.EXECUTIVE_SUMMARY]):
        same |= {"progress": old.progress, "current_stage": old.current_stage, "stages": old.stages}
    return new.finished_at is None and new.model_copy(update=same) == old
