"""The active controller: watch, cache, queue and reconciles, the publisher, the sweep; where the Lease is held.

Every replica watches, so that one that becomes active knows the cluster already; only the active one decides and
writes. Two may be active for seconds: all effects are idempotent (DESIGN section 4).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from tarsy.controllers import alert, alert_route, chat_message, configuration, investigation, mcp_server
from tarsy.controllers.configuration import PublishLimits, SecretReader
from tarsy.controllers.incidents.publisher import ROUND_SECONDS, Incidents
from tarsy.controllers.machinery.cache import Cache, Key, UnreadableObject
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.invalid_objects import mark_invalid
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.machinery.relist import learn, relist
from tarsy.controllers.machinery.watch import Watch
from tarsy.controllers.notifications.delivery import ROUND_SECONDS as NOTICE_SECONDS
from tarsy.controllers.notifications.delivery import Notifications, Outbox
from tarsy.controllers.readiness.metrics import count_ready
from tarsy.controllers.readiness.provider_checks import ProviderChecks
from tarsy.controllers.readiness.server_checks import ServerChecks
from tarsy.controllers.readiness.serving import ROUND_SECONDS as SERVING_SECONDS
from tarsy.controllers.readiness.serving import CallReader, ServedCalls
from tarsy.controllers.runs.inputs import no_text
from tarsy.controllers.runs.publisher import Publisher
from tarsy.controllers.runs.runbooks import Runbooks, token_reader
from tarsy.controllers.tool_workloads.per_run import ROUND_SECONDS as WORKLOADS_SECONDS
from tarsy.controllers.tool_workloads.per_run import Running, RunWorkloads
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.masking import Maskers
from tarsy.observe.metric_table import ACTIVE, OBJECTS
from tarsy.observe.metrics import Metrics
from tarsy.resources.v1alpha1 import Alert, AlertRoute, ChatMessage, Investigation, MCPServer
from tarsy.runbook.fetch import Fetcher
from tarsy.store.errors import StoreError
from tarsy.store.intake import Intake
from tarsy.store.questions import Questions
from tarsy.store.reads import Reads
from tarsy.store.runs import Runs

_log = logging.getLogger(__name__)

RELIST_SECONDS = 300.0
MISSED_SECONDS = 0.5
"""From the watch listing one kind anew to a relist: others follow, they lost the same connection."""

_RETRY_SECONDS = 5.0
SWEEP_SECONDS = 10.0
SWEEP_GRACE_SECONDS = 60.0
PURGE_SECONDS = 600.0
_WORKERS = 8
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
        outbox: how people are told of runs; nobody is told when not given.
        calls: the record of model calls, for `Serving` of LLMProviders, which have no such condition when not given.
    """

    def __init__(
        self,
        client: KubeClient,
        runs: Runs,
        reads: Reads,
        questions: Questions,
        read_secret: SecretReader,
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
        probes: ProviderChecks | None = None,
        checks: ServerChecks | None = None,
        purge: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        publish_limits: PublishLimits | None = None,
        metrics: Metrics | None = None,
        require_author: bool = False,
        intake: Intake | None = None,
        operator_namespace: str | None = None,
        running: Running | None = None,
        outbox: Outbox | None = None,
        calls: CallReader | None = None,
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
        metrics.pull(OBJECTS, lambda: count_ready(self._cache))
        self._queue: KeyedQueue[Key] = KeyedQueue()
        self._informer = Informer(self._cache, self._queue, library_namespace)
        self._watch = Watch(client, self._informer.event, namespaces=namespaces)
        self._served = ServedCalls(calls, self._queue.add) if calls is not None else None
        self._learned = asyncio.Event()
        self._notifications: Notifications | None = None
        if outbox is not None:
            self._notifications = Notifications(self._cache, outbox, reads, events, metrics=metrics)
        note = self._notifications.note if self._notifications else None
        self._publisher = Publisher(
            client, self._cache, reads, events, active=election.active, changed=changed, note=note
        )
        self._intake = intake
        self._operator_namespace = operator_namespace
        self._workloads = RunWorkloads(client, self._cache, running, library_namespace) if running is not None else None
        self._incidents = Incidents(client, self._cache, intake, self._queue.add) if intake is not None else None
        again = self._publisher.again
        self._runbooks = Runbooks(runbooks or Fetcher(token_reader(read_secret)), runbook_hosts, self._queue.add)
        self._desk = investigation.ReconcileContext(
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

    def why_not_ready(self) -> str | None:
        """Why this replica does not see the whole cluster; None: it does."""
        return self._watch.why_not()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch.run())
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
            if self._served is not None:
                group.create_task(self._while_active(SERVING_SECONDS, self._served.round))
            if self._checks is not None:
                group.create_task(self._checks.run(self._queue.add))
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _become_active(self) -> None:
        """Looks at everything each time this replica becomes active."""
        while True:
            await self._election.active.wait()
            self._informer.look_at_all()
            self._changed.set()
            await self._election.passive.wait()

    async def _learn(self) -> None:
        """Once, before anything is decided: what the watch may not have told yet."""
        while not self._learned.is_set():
            await self._election.active.wait()
            try:
                await learn(self._client, self._cache, self._namespaces, seen=self._informer.seen)
                self._learned.set()
            except ApiError as error:
                _log.warning("the configuration could not be listed, again in %g s: %s", _RETRY_SECONDS, error)
                await asyncio.sleep(_RETRY_SECONDS)

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
                _log.log(level, "%s could not be reconciled, again in %.1f s: %s", key, delay, error)
            except Exception:
                delay = self._queue.failed(key)
                _log.exception("%s could not be reconciled, again in %.1f s", key, delay)
            else:
                self._queue.done(key)
                if again is not None:
                    self._queue.add_after(key, again)

    async def _reconcile(self, key: Key) -> float | None:
        for uid in self._informer.deleted(key):
            if key.kind in _RUNS:
                await investigation.deleted(uid, key.namespace, self._desk)
            self._informer.ended(key, uid)
        match self._cache.find(key):
            case None:
                return None
            case UnreadableObject() as broken:
                await mark_invalid(broken, self._client, self._cache)
                return None
            case Alert() as obj:
                required = self._desk.require_author
                return await alert.reconcile(
                    obj,
                    self._cache,
                    self._client,
                    self._library_namespace,
                    require_author=required,
                    intake=self._intake,
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
                    self._served,
                )

    async def _while_active(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Does `work` on becoming active, and from then on again and again."""
        while True:
            await self._election.active.wait()
            pause = seconds
            try:
                await work()
            except (ApiError, StoreError) as error:
                pause = min(seconds, _RETRY_SECONDS)
                _log.warning("%s, again in %g s: %s", getattr(work, "__name__", "").strip("_"), pause, error)
            try:
                async with asyncio.timeout(pause):
                    await self._election.passive.wait()
            except TimeoutError:
                continue

    async def _relist_what_was_missed(self) -> None:
        """After the watch had to list anew (410, as after a compaction of etcd): what it missed is found now."""
        while True:
            await self._informer.missed.wait()
            await self._election.active.wait()
            await asyncio.sleep(MISSED_SECONDS)
            self._informer.missed.clear()
            try:
                await self._relist()
            except (ApiError, StoreError) as error:
                _log.warning("relist, again in %g s: %s", _RETRY_SECONDS, error)
                self._informer.missed.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _relist(self) -> None:
        """Finds what the watch missed, and looks at everything again."""
        news = self._informer
        await relist(
            self._client, self._cache, self._reads, self._runs, self._namespaces, seen=news.seen, gone=news.gone
        )
        news.look_at_all()

    async def _sweep(self) -> None:
        for identity in await self._runs.expire_overdue(SWEEP_GRACE_SECONDS):
            _log.warning("investigation %s had no worker and would have had none: ended", identity)

    async def _purge(self) -> None:
        deleted = await self._purge_records() if self._purge_records is not None else {}
        if deleted:
            _log.info("records of %d investigations were kept long enough: deleted", sum(deleted.values()))
