"""The active controller: watch, cache, queue and reconciles, the projector, the sweep; where the Lease is held.

Every replica watches, so that one that becomes active knows the cluster already; only the active one decides and
writes. Two may be active for seconds: all effects are idempotent (DESIGN section 4).
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tarsy.controllers import alert, configuration, investigation
from tarsy.controllers.cache import Cache, Key, Unreadable
from tarsy.controllers.configuration import ReadSecret
from tarsy.controllers.projection import news, project
from tarsy.controllers.queue import KeyedQueue
from tarsy.controllers.status import write_status
from tarsy.controllers.watch import Watch
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.record.run import InvestigationRecord
from tarsy.resources.meta import AnyResource, Condition, condition, set_condition
from tarsy.resources.v1alpha1 import KINDS, Alert, ChatMessage, Investigation
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.errors import StoreError
from tarsy.store.reads import Reads
from tarsy.store.runs import Runs

log = logging.getLogger(__name__)

RELIST_SECONDS = 300.0
SWEEP_SECONDS = 10.0
SWEEP_GRACE_SECONDS = 60.0
PROJECT_SECONDS = 1.0
"""The record is looked at this often without a wake-up, and a status is patched at most this often."""

WORKERS = 8
_PASSIVE = (Alert.KIND, Investigation.KIND, ChatMessage.KIND)


class ActiveController:
    """Reconciles everything.

    Args:
        changed: set by whoever hears that a run's record changed.
    """

    def __init__(
        self,
        client: KubeClient,
        runs: Runs,
        reads: Reads,
        read_secret: ReadSecret,
        election: LeaderElection,
        events: Events,
        *,
        library_namespace: str,
        namespaces: tuple[str, ...] = (),
        changed: asyncio.Event,
    ) -> None:
        self._client = client
        self._runs = runs
        self._reads = reads
        self._read_secret = read_secret
        self._election = election
        self._events = events
        self._library_namespace = library_namespace
        self._namespaces = namespaces
        self._changed = changed
        self._cache = Cache()
        self._queue: KeyedQueue[Key] = KeyedQueue()
        self._deleted: dict[Key, str] = {}
        self._patched: dict[UUID, float] = {}
        self._desk = investigation.Desk(self._cache, client, events, runs, reads, library_namespace)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Watch(self._client, self._on_event, namespaces=self._namespaces).run())
            group.create_task(self._election.run())
            group.create_task(self._become_active())
            group.create_task(self._every(RELIST_SECONDS, self._relist))
            group.create_task(self._every(SWEEP_SECONDS, self._sweep))
            group.create_task(self._project())
            for _ in range(WORKERS):
                group.create_task(self._work())

    def _on_event(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        meta = raw["metadata"]
        if raw.get("kind") == "Namespace":
            self._cache.set_namespace(meta["name"], None if kind == "DELETED" else meta.get("labels") or {})
            self._wake_dependents(None)
            return
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        if kind == "DELETED":
            self._cache.drop(key)
            self._deleted[key] = meta["uid"]
        else:
            self._cache.put(raw)
        self._queue.add(key)
        if key.kind == Investigation.KIND:
            self._wake_alert(raw)
        elif key.kind not in _PASSIVE:
            self._wake_dependents(key)
        elif key.kind == Alert.KIND and kind != "DELETED":
            self._wake_waiting(Investigation)

    def _wake_alert(self, raw: Mapping[str, Any]) -> None:
        reference = (raw.get("spec") or {}).get("alertRef") or {}
        if reference.get("name"):
            self._queue.add(Key(Alert.KIND, raw["metadata"].get("namespace", ""), reference["name"]))

    def _wake_dependents(self, changed: Key | None) -> None:
        """Configuration changed: whatever may have waited for it is looked at again."""
        for key in self._cache.all_keys():
            if key.kind not in _PASSIVE and key != changed:
                self._queue.add(key)
        self._wake_waiting(Alert)
        self._wake_waiting(Investigation)

    def _wake_waiting(self, kind: type[Alert] | type[Investigation]) -> None:
        for key in self._cache.keys_of(kind.KIND):
            found = self._cache.find(key)
            if not isinstance(found, Alert | Investigation):
                continue
            accepted = condition(found.status.conditions, ConditionType.ACCEPTED)
            ended = condition(found.status.conditions, ConditionType.FINISHED)
            if (accepted is None or accepted.status != "True") and (ended is None or ended.status != "True"):
                self._queue.add(key)

    async def _become_active(self) -> None:
        """Looks at everything each time this replica becomes active."""
        while True:
            await self._election.active.wait()
            for key in self._cache.all_keys():
                self._queue.add(key)
            self._changed.set()
            await self._election.passive.wait()

    async def _work(self) -> None:
        while True:
            await self._election.active.wait()
            key = await self._queue.get()
            if not self._election.active.is_set():
                self._queue.failed(key)
                continue
            try:
                again = await self._reconcile(key)
            except (ApiError, StoreError) as error:
                delay = self._queue.failed(key)
                log.warning("%s could not be reconciled, again in %.1f s: %s", key, delay, error)
            except Exception:
                delay = self._queue.failed(key)
                log.exception("%s could not be reconciled, again in %.1f s", key, delay)
            else:
                self._queue.done(key)
                if again is not None:
                    self._queue.add_after(key, again)

    async def _reconcile(self, key: Key) -> float | None:
        uid = self._deleted.get(key)
        if uid is not None:
            if key.kind == Investigation.KIND:
                await investigation.deleted(uid, self._runs)
            if self._deleted.get(key) == uid:
                del self._deleted[key]
        match self._cache.find(key):
            case None:
                return None
            case Unreadable() as broken:
                await self._refuse(broken)
                return None
            case Alert() as obj:
                return await alert.reconcile(obj, self._cache, self._client, self._events, self._library_namespace)
            case Investigation() as obj:
                return await investigation.reconcile(obj, self._desk)
            case ChatMessage():
                return None
            case obj:
                return await configuration.reconcile(obj, self._cache, self._client, self._read_secret)

    async def _refuse(self, broken: Unreadable) -> None:
        """An object that an API server without CEL let in: says by condition what is wrong with it."""
        raw = broken.raw
        kind = KINDS[raw["kind"]]
        status_model = kind.model_fields["status"].annotation
        if status_model is None:
            return
        old = status_model.model_validate(raw.get("status") or {})
        generation = raw["metadata"].get("generation", 0)
        what = ConditionType.ACCEPTED if raw["kind"] in _PASSIVE else ConditionType.READY
        message = "; ".join(str(error) for error in broken.error.errors)
        item = Condition(type=what, status="False", reason="Invalid", message=message, observed_generation=generation)
        conditions = set_condition(old.conditions, item, datetime.now(UTC))
        body = {
            "metadata": {"uid": raw["metadata"]["uid"]},
            "status": {
                "observedGeneration": generation,
                "conditions": [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in conditions],
            },
        }
        if body["status"] == {k: (raw.get("status") or {}).get(k) for k in body["status"]}:
            return
        namespace, name = raw["metadata"].get("namespace"), raw["metadata"]["name"]
        await self._client.patch(raw["kind"], namespace, name, body, subresource="status")

    async def _every(self, seconds: float, work: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not self._election.active.is_set():
                continue
            try:
                await work()
            except (ApiError, StoreError) as error:
                log.warning("%s: %s", work.__name__.strip("_"), error)

    async def _relist(self) -> None:
        """Finds what the watch missed: objects that changed or went, and runs whose object is gone."""
        for kind in KINDS:
            spaces = self._namespaces or (None,)
            listed = [raw for space in spaces for raw in await self._client.list(kind, space)]
            seen = {self._cache.put({**raw, "kind": kind}) for raw in listed}
            for key in self._cache.keys_of(kind):
                if key not in seen:
                    uid = self._cache.drop(key)
                    if uid:
                        self._deleted[key] = uid
                self._queue.add(key)
        living = {
            raw.metadata.uid
            for key in self._cache.keys_of(Investigation.KIND)
            if isinstance(raw := self._cache.find(key), Investigation)
        }
        for identity in await self._reads.unfinished():
            if str(identity) not in living:
                await self._runs.object_deleted(identity)

    async def _sweep(self) -> None:
        for identity in await self._runs.expire_overdue(SWEEP_GRACE_SECONDS):
            log.warning("investigation %s had no worker and no time left: ended as timed out", identity)

    async def _project(self) -> None:
        """Publishes records that are newer than their status."""
        while True:
            await self._election.active.wait()
            self._changed.clear()
            wait = PROJECT_SECONDS
            try:
                wait = await self._publish_all()
            except (ApiError, StoreError) as error:
                log.warning("status could not be published: %s", error)
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _publish_all(self) -> float:
        """One round; returns the seconds after which another is due without a wake-up."""
        now, soonest = time.monotonic(), PROJECT_SECONDS
        self._patched = {k: v for k, v in self._patched.items() if now - v < PROJECT_SECONDS}
        for record in await self._reads.unpublished(200):
            left = self._patched.get(record.id, 0.0) + PROJECT_SECONDS - now
            if left > 0 and not record.state.finished:
                soonest = min(soonest, left)
                continue
            await self._publish(record)
        return soonest

    async def _publish(self, record: InvestigationRecord) -> None:
        obj = self._cache.get(Investigation, record.namespace, record.name)
        if obj is None or obj.metadata.uid != str(record.id):
            raw = await self._client.find(Investigation.KIND, record.namespace, record.name)
            if raw is None or raw["metadata"]["uid"] != str(record.id):
                await self._reads.mark_published(record.id, record.revision)
                return
            found = self._cache.find(self._cache.put(raw))
            if not isinstance(found, Investigation):
                return
            obj = found
        status = project(record, obj, datetime.now(UTC))
        self._patched[record.id] = time.monotonic()
        if await write_status(self._client, obj, status):
            for kind, reason, message in news(record, obj.status):
                await self._events.tell(obj, reason, message, kind=kind)
            self._remember(obj, status)
        await self._reads.mark_published(record.id, record.revision)

    def _remember(self, obj: AnyResource, status: Any) -> None:
        """Keeps the written status until the watch brings it, so that the next patch is a difference to it."""
        raw = obj.model_copy(update={"status": status}).to_dict()
        self._cache.put({**raw, "kind": obj.KIND})
