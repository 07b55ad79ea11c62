"""The active controller: watch, cache, queue and reconciles, the publisher, the sweep; where the Lease is held.

Every replica watches, so that one that becomes active knows the cluster already; only the active one decides and
writes. Two may be active for seconds: all effects are idempotent (DESIGN section 4).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tarsy.controllers import alert, alert_route, chat_message, configuration, investigation, mcp_server
from tarsy.controllers.cache import Cache, Key, Unreadable, Version
from tarsy.controllers.census import in_order
from tarsy.controllers.configuration import PublishLimits, ReadSecret
from tarsy.controllers.incidents import ROUND_SECONDS, Incidents
from tarsy.controllers.notification import ROUND_SECONDS as NOTICE_SECONDS
from tarsy.controllers.notification import Notifications, Sends
from tarsy.controllers.probing import Probes
from tarsy.controllers.publisher import Publisher
from tarsy.controllers.queue import KeyedQueue
from tarsy.controllers.refusal import refuse
from tarsy.controllers.relist import PASSIVE, learn, relist
from tarsy.controllers.runbooks import Runbooks, token_reader
from tarsy.controllers.server_checks import ServerChecks
from tarsy.controllers.texts import no_text
from tarsy.controllers.tool_workload_runs import ROUND_SECONDS as WORKLOADS_SECONDS
from tarsy.controllers.tool_workload_runs import Running, RunWorkloads
from tarsy.controllers.watch import Watch
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.masking import Maskers
from tarsy.observe.metric_table import ACTIVE, OBJECTS
from tarsy.observe.metrics import Metrics
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Alert, AlertRoute, ChatMessage, Investigation, MCPServer
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.runbook.fetch import Fetcher
from tarsy.store.errors import StoreError
from tarsy.store.intake import Intake
from tarsy.store.notices import Notices
from tarsy.store.questions import Questions
from tarsy.store.reads import Reads
from tarsy.store.runs import Runs

log = logging.getLogger(__name__)

RELIST_SECONDS = 300.0
MISSED_SECONDS = 0.5
"""From the watch listing one kind anew to a relist: others follow, they lost the same connection."""

RETRY_SECONDS = 5.0
SWEEP_SECONDS = 10.0
SWEEP_GRACE_SECONDS = 60.0
PURGE_SECONDS = 600.0
WORKERS = 8
_RUNS = (Investigation.KIND, ChatMessage.KIND)


class ActiveController:
    """Reconciles everything.

    Args:
        changed: set by whoever hears that a run's record changed.
        relist_seconds: pause between two comparisons of what the watch told with what is there.
        runbook_hosts: hosts of runbooks that the administrator allows, beside those of each namespace's defaults.
        runbooks: fetches runbooks by URL; one of its own when not given.
        probes: asks providers whether they know their key and model; nobody is asked when not given.
        checks: looks at tool servers; none is looked at when not given.
        purge: deletes the records that were kept long enough, and returns how many of each namespace; records are kept
            for ever when not given.
        publish_limits: makes the limits of LLMProviders known to all workers.
        metrics: what is counted for people to see.
        require_author: whether what nobody stamped an author on is refused.
        intake: what came in over HTTP; nothing does when not given.
        operator_namespace: where operator and workers run, who reach what runs for MCPServers; without, nothing does.
        running: the runs under way with tool servers of their own; without, none has any.
        outbox: whom to tell of runs, and what sends it; nobody is told when not given.
    """

    def __init__(
        self,
        client: KubeClient,
        runs: Runs,
        reads: Reads,
        questions: Questions,
        read_secret: ReadSecret,
        election: LeaderElection,
        events: Events,
        *,
        library_namespace: str,
        mask: Callable[[str], str],
        namespaces: tuple[str, ...] = (),
        changed: asyncio.Event,
        relist_seconds: float = RELIST_SECONDS,
        runbook_hosts: tuple[str, ...] = (),
        runbooks: Fetcher | None = None,
        probes: Probes | None = None,
        checks: ServerChecks | None = None,
        purge: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        publish_limits: PublishLimits | None = None,
        metrics: Metrics | None = None,
        require_author: bool = False,
        intake: Intake | None = None,
        operator_namespace: str | None = None,
        running: Running | None = None,
        outbox: tuple[Notices, Sends] | None = None,
    ) -> None:
        self._client = client
        self._runs = runs
        self._reads = reads
        self._read_secret = read_secret
        self._probes = probes
        self._publish_limits = publish_limits
        self._checks = checks
        self._events = events
        self._purge_records = purge
        self._election = election
        self._library_namespace = library_namespace
        self._namespaces = namespaces
        self._changed = changed
        self._relist_seconds = relist_seconds
        self._cache = Cache()
        metrics, maskers = metrics or Metrics(), Maskers()
        metrics.pull(ACTIVE, lambda: {(): election.active.is_set()})
        metrics.pull(OBJECTS, lambda: in_order(self._cache))
        self._queue: KeyedQueue[Key] = KeyedQueue()
        self._waiting: dict[Key, None] = {}
        self._deleted: dict[Key, set[str]] = {}
        self._missed, self._learned = asyncio.Event(), asyncio.Event()
        self._notifications = Notifications(self._cache, outbox[0], reads, outbox[1], events) if outbox else None
        note = self._notifications.note if self._notifications else None
        self._publisher = Publisher(
            client, self._cache, reads, events, active=election.active, changed=changed, note=note
        )
        self._intake = intake
        self._operator_namespace = operator_namespace
        self._workloads = RunWorkloads(client, self._cache, running) if running is not None else None
        self._incidents = Incidents(client, self._cache, intake, self._queue.add) if intake is not None else None
        again = self._publisher.again
        self._runbooks = Runbooks(runbooks or Fetcher(token_reader(read_secret)), runbook_hosts, self._queue.add)
        self._desk = investigation.Desk(
            self._cache,
            client,
            runs,
            reads,
            questions,
            library_namespace,
            mask,
            again,
            events,
            self._runbooks,
            require_author,
            kept_text=intake.body if intake is not None else no_text,
            mask_of=lambda setting: metrics.watched(maskers.of(setting), "alert_data"),
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Watch(self._client, self._on_event, namespaces=self._namespaces).run())
            group.create_task(self._election.run())
            group.create_task(self._become_active())
            group.create_task(self._learn())
            group.create_task(self._while_active(self._relist_seconds, self._relist))
            group.create_task(self._relist_what_was_missed())
            group.create_task(self._while_active(SWEEP_SECONDS, self._sweep))
            group.create_task(self._while_active(PURGE_SECONDS, self._purge))
            group.create_task(self._publisher.run())
            group.create_task(self._runbooks.run())
            if self._incidents is not None:
                group.create_task(self._while_active(ROUND_SECONDS, self._incidents.round))
            if self._workloads is not None:
                group.create_task(self._while_active(WORKLOADS_SECONDS, self._workloads.round))
            if self._notifications is not None:
                group.create_task(self._while_active(NOTICE_SECONDS, self._notifications.round))
            if self._checks is not None:
                group.create_task(self._checks.run(self._queue.add))
            for _ in range(WORKERS):
                group.create_task(self._work())

    def _on_event(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        meta = raw["metadata"]
        if raw.get("kind") == "Namespace":
            self._cache.set_namespace(meta["name"], None if kind == "DELETED" else meta.get("labels") or {})
            self._wake_dependents(None)
            return
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        if kind is None and self._cache.version(key) is not None:
            self._missed.set()  # a listing tells what is there, not what has gone
        if kind == "DELETED":
            self._gone(key, meta["uid"])
        else:
            self._seen(raw)

    def _seen(self, raw: Mapping[str, Any], instead_of: Version | None = None) -> None:
        """An object is there: takes it, and whoever it concerns is looked at."""
        meta = raw["metadata"]
        before = self._cache.version(Key(raw["kind"], meta.get("namespace", ""), meta["name"]))
        key = self._cache.put(raw, instead_of=instead_of)
        after = self._cache.version(key)
        if before is not None and after is not None and before.uid != after.uid:
            self._gone(key, before.uid)
        self._look_at(key)
        self._note_waiting(key)
        if key.kind == Investigation.KIND:
            self._wake_alert(raw)
            self._wake_questions(key)
        if before is None or after is None or (before.uid, before.generation) != (after.uid, after.generation):
            self._spec_changed(key)

    def _gone(self, key: Key, uid: str) -> None:
        """An object is there no more, whatever has its name now."""
        old = self._cache.find(key) if (self._cache.version(key) or Version("", 0, "")).uid == uid else None
        self._cache.drop(key, uid)
        self._note_waiting(key)
        self._deleted.setdefault(key, set()).add(uid)
        self._queue.add(key)
        if isinstance(old, Investigation) and old.spec.alert_ref is not None:
            self._queue.add(Key(Alert.KIND, key.namespace, old.spec.alert_ref.name))
        self._spec_changed(key)

    def _spec_changed(self, key: Key) -> None:
        """Not for changes of a status: nobody depends on the status of another, but alerts on their Investigation's."""
        if key.kind not in PASSIVE:
            self._wake_dependents(key)
        elif key.kind == Alert.KIND:
            for other in self._waiting:
                found = self._cache.find(other) if other.namespace == key.namespace else None
                reference = found.spec.alert_ref if isinstance(found, Investigation) else None
                if reference is not None and reference.name == key.name:
                    self._queue.add(other)

    def _wake_alert(self, raw: Mapping[str, Any]) -> None:
        reference = (raw.get("spec") or {}).get("alertRef") or {}
        if reference.get("name"):
            self._look_at(Key(Alert.KIND, raw["metadata"].get("namespace", ""), reference["name"]))

    def _look_at(self, key: Key) -> None:
        """Soon; what has ended, of which there may be tens of thousands, when nothing else is to be done."""
        found = self._cache.find(key)
        ended = isinstance(found, Alert | Investigation) and condition(found.status.conditions, ConditionType.FINISHED)
        if ended and ended.status == "True":
            self._queue.add_when_idle(key)
        else:
            self._queue.add(key)

    def _wake_questions(self, investigation: Key) -> None:
        """Those that wait for an Investigation that was not there."""
        for key in self._waiting:
            found = self._cache.find(key) if key.namespace == investigation.namespace else None
            if isinstance(found, ChatMessage) and found.spec.investigation_ref.name == investigation.name:
                self._queue.add(key)

    def _wake_dependents(self, changed: Key | None) -> None:
        """Configuration changed: whatever may have waited for it is looked at again."""
        for key in self._cache.all_keys():
            if key.kind not in PASSIVE and key != changed:
                self._queue.add(key)
        for key in self._waiting:
            self._queue.add(key)

    def _note_waiting(self, key: Key) -> None:
        """Alerts, Investigations and questions that are not accepted, nor finished: they wait for something else."""
        found = self._cache.find(key)
        self._waiting.pop(key, None)
        if isinstance(found, Alert | Investigation | ChatMessage):
            accepted = condition(found.status.conditions, ConditionType.ACCEPTED)
            ended = condition(found.status.conditions, ConditionType.FINISHED)
            if (accepted is None or accepted.status != "True") and (ended is None or ended.status != "True"):
                self._waiting[key] = None

    async def _become_active(self) -> None:
        """Looks at everything each time this replica becomes active."""
        while True:
            await self._election.active.wait()
            for key in self._cache.all_keys():
                self._look_at(key)
            self._changed.set()
            await self._election.passive.wait()

    async def _learn(self) -> None:
        """Once, before anything is decided: what the watch may not have told yet."""
        while not self._learned.is_set():
            await self._election.active.wait()
            try:
                await learn(self._client, self._cache, self._namespaces, seen=self._seen)
                self._learned.set()
            except ApiError as error:
                log.warning("the configuration could not be listed, again in %g s: %s", RETRY_SECONDS, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _work(self) -> None:
        await self._learned.wait()
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
                level = logging.INFO if isinstance(error, ApiError) and error.reason == "Conflict" else logging.WARNING
                log.log(level, "%s could not be reconciled, again in %.1f s: %s", key, delay, error)
            except Exception:
                delay = self._queue.failed(key)
                log.exception("%s could not be reconciled, again in %.1f s", key, delay)
            else:
                self._queue.done(key)
                if again is not None:
                    self._queue.add_after(key, again)

    async def _reconcile(self, key: Key) -> float | None:
        for uid in tuple(self._deleted.get(key, ())):
            if key.kind in _RUNS:
                await investigation.deleted(uid, key.namespace, self._desk)
            self._deleted[key].discard(uid)
        if not self._deleted.get(key):
            self._deleted.pop(key, None)
        match self._cache.find(key):
            case None:
                return None
            case Unreadable() as broken:
                await refuse(broken, self._client, self._cache)
                return None
            case Alert() as obj:
                required = self._desk.require_author
                return await alert.reconcile(
                    obj, self._cache, self._client, self._library_namespace, require_author=required
                )
            case Investigation() as obj:
                return await investigation.reconcile(obj, self._desk)
            case ChatMessage() as obj:
                return await chat_message.reconcile(obj, self._desk)
            case MCPServer() as obj:
                return await mcp_server.reconcile(
                    obj,
                    self._cache,
                    self._client,
                    self._read_secret,
                    self._events,
                    self._checks,
                    self._operator_namespace,
                )
            case AlertRoute() as obj if self._intake is not None:
                return await alert_route.reconcile(
                    obj, self._cache, self._client, self._read_secret, self._intake, self._library_namespace
                )
            case obj:
                return await configuration.reconcile(
                    obj,
                    self._cache,
                    self._client,
                    self._read_secret,
                    self._probes,
                    self._publish_limits,
                    self._library_namespace,
                )

    async def _while_active(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Does `work` on becoming active, and from then on again and again."""
        while True:
            await self._election.active.wait()
            pause = seconds
            try:
                await work()
            except (ApiError, StoreError) as error:
                pause = min(seconds, RETRY_SECONDS)
                log.warning("%s, again in %g s: %s", getattr(work, "__name__", "").strip("_"), pause, error)
            try:
                async with asyncio.timeout(pause):
                    await self._election.passive.wait()
            except TimeoutError:
                continue

    async def _relist_what_was_missed(self) -> None:
        """After the watch had to list anew (410, as after a compaction of etcd): what it missed is found now."""
        while True:
            await self._missed.wait()
            await self._election.active.wait()
            await asyncio.sleep(MISSED_SECONDS)
            self._missed.clear()
            try:
                await self._relist()
            except (ApiError, StoreError) as error:
                log.warning("relist, again in %g s: %s", RETRY_SECONDS, error)
                self._missed.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def _relist(self) -> None:
        """Finds what the watch missed, and looks at everything again."""
        await relist(
            self._client, self._cache, self._reads, self._runs, self._namespaces, seen=self._seen, gone=self._gone
        )
        for key in self._cache.all_keys():
            self._look_at(key)

    async def _sweep(self) -> None:
        for identity in await self._runs.expire_overdue(SWEEP_GRACE_SECONDS):
            log.warning("investigation %s had no worker and would have had none: ended", identity)

    async def _purge(self) -> None:
        deleted = await self._purge_records() if self._purge_records is not None else {}
        if deleted:
            log.info("records of %d investigations were kept long enough: deleted", sum(deleted.values()))
