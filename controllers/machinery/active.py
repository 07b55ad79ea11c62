"""Runs the active controller: watch, cache, queue and reconciles, the publisher and the periodic work.

Every replica watches, so that a replica that becomes active knows the cluster already; only the holder of the Lease
reconciles and writes. Two replicas may be active for seconds: all effects are idempotent.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from uuid import UUID

from tarsy.controllers.approvals.requests import ASKING_SECONDS, ApprovalRequests
from tarsy.controllers.evals.git_cases import GitCases
from tarsy.controllers.evals.judge_queue import JudgeQueue
from tarsy.controllers.evals.scoring import ROUND_SECONDS as SCORING_SECONDS
from tarsy.controllers.evals.scoring import Scoring
from tarsy.controllers.history.recorder import HistoryRecorder
from tarsy.controllers.incidents.outcomes import ROUND_SECONDS as OUTCOME_SECONDS
from tarsy.controllers.incidents.outcomes import OutcomeRounds
from tarsy.controllers.incidents.publisher import ROUND_SECONDS, Incidents
from tarsy.controllers.investigation_quota import GONE_SECONDS, lift_deleted
from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import (
    AtRest,
    ControllerSettings,
    KubernetesPorts,
    OutboundPorts,
    ReconcileContext,
    StorePorts,
)
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.machinery.reconciler import Reconciler
from tarsy.controllers.machinery.relist import learn, relist, relist_while_watch_lists, until_listed
from tarsy.controllers.machinery.watch import Watch
from tarsy.controllers.machinery.workers import RETRY_SECONDS, ReconcileWorkers
from tarsy.controllers.notifications.delivery import ROUND_SECONDS as NOTICE_SECONDS
from tarsy.controllers.notifications.delivery import Notifications, Outbox
from tarsy.controllers.promotion.missing import forget_missing
from tarsy.controllers.readiness.metrics import count_quotas, count_ready
from tarsy.controllers.readiness.serving import ROUND_SECONDS as SERVING_SECONDS
from tarsy.controllers.readiness.serving import CallReader, ServedCalls
from tarsy.controllers.readiness.transitions import TransitionRecorder
from tarsy.controllers.runs.parked import PARKED_SECONDS, ParkedRuns
from tarsy.controllers.runs.publisher import Publisher
from tarsy.controllers.runs.rest import Rest
from tarsy.controllers.runs.runbooks import Runbooks, token_reader
from tarsy.controllers.slack.conversation import SlackConversation
from tarsy.controllers.tool_workloads.per_run import ROUND_SECONDS as WORKLOADS_SECONDS
from tarsy.controllers.tool_workloads.per_run import Running, RunWorkloads
from tarsy.kube.client import ApiError
from tarsy.kube.lease import LeaderElection
from tarsy.masking import Maskers, default_masker
from tarsy.observe.metric_table import ACTIVE, DEFAULTED, OBJECTS, QUOTAS, SCHEDULE_TIMES
from tarsy.observe.metrics import Metrics
from tarsy.resources.v1alpha1 import EvalRun, EvalSuite
from tarsy.runbook.fetch import Fetcher
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

SWEEP_SECONDS = 10.0
SWEEP_GRACE_SECONDS = 60.0
PURGE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class PeriodicWork:
    """Configures the work that the active controller does at intervals; a field that is None is not done."""

    purge: Callable[[], Awaitable[Mapping[str, int]]] | None = None
    """Deletes records whose retention is over; returns their number by namespace."""

    running: Running | None = None
    """Reads the runs under way that need tool servers of their own."""

    calls: CallReader | None = None
    """Reads the last model calls, for the condition `Serving` of LLMProviders."""

    outbox: Outbox | None = None
    """Sends the notifications of runs."""

    history: HistoryRecorder | None = None
    """Records what changes in the namespaces that have a history."""

    slack: SlackConversation | None = None
    """Answers questions that people ask in Slack."""

    transitions: TransitionRecorder | None = None
    """Records changes of conditions of configuration objects."""


class ActiveController:
    """Reconciles all objects while this replica holds the Lease.

    Args:
        kubernetes: the Kubernetes API.
        store: the record in Postgres.
        settings: of all reconciles.
        election: whether this replica is active.
        outbound: what objects name outside of the cluster.
        periodic: the work that is done at intervals.
        metrics: the metrics of the process.
    """

    def __init__(
        self,
        kubernetes: KubernetesPorts,
        store: StorePorts,
        settings: ControllerSettings,
        election: LeaderElection,
        outbound: OutboundPorts | None = None,
        periodic: PeriodicWork | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._kubernetes = kubernetes
        self._store = store
        self._settings = settings
        self._election = election
        self._outbound = outbound or OutboundPorts()
        self._periodic = periodic or PeriodicWork()
        self._metrics = metrics = metrics or Metrics()
        self._cache = Cache()
        self._queue: KeyedQueue[Key] = KeyedQueue()
        self._informer = Informer(self._cache, self._queue, settings.library_namespace)
        self._watch = Watch(kubernetes.client, self._informer.event, namespaces=settings.namespaces)
        self._watch_began = -math.inf
        self._at_rest: AtRest = {}
        self._notifications = self._new_notifications()
        note = self._notifications.note if self._notifications else None
        self._learned = asyncio.Event()
        self._publisher = Publisher(
            kubernetes, store, self._cache, election.active, self._learned, note=note, at_rest=self._at_rest
        )
        fetcher = self._outbound.fetcher or Fetcher(token_reader(kubernetes.read_secret))
        self._runbooks = Runbooks(fetcher, settings.runbook_hosts, self._queue.add)
        self._git_cases = GitCases(self._outbound.read_git, settings.git_hosts, self._queue.add)
        calls = self._periodic.calls
        self._served = ServedCalls(calls, self._queue.add) if calls is not None else None
        self._mask_answer = metrics.watched(default_masker().mask, "model_output")
        self._judges = self._new_judges()
        self._scoring = self._new_scoring()
        self._workers = self._new_workers()
        metrics.pull(ACTIVE, lambda: {(): election.active.is_set()})
        metrics.pull(OBJECTS, lambda: count_ready(self._cache))
        metrics.pull(QUOTAS, lambda: count_quotas(self._cache))

    def _new_notifications(self) -> Notifications | None:
        if (outbox := self._periodic.outbox) is None:
            return None
        return Notifications(self._cache, outbox, self._store.reads, self._kubernetes, metrics=self._metrics)

    def _new_judges(self) -> JudgeQueue:
        models = self._outbound.models
        calls = self._store.judge_calls if models is not None else None
        return JudgeQueue(models, calls, self._election.active, self._queue.add, self._mask_answer)

    def _new_scoring(self) -> Scoring | None:
        scores, models = self._store.scores, self._outbound.models
        if scores is None or models is None:
            return None
        client, required = self._kubernetes.client, self._settings.require_author
        return Scoring(client, self._cache, scores, models, self._mask_answer, self._queue.add, require_author=required)

    def _new_workers(self) -> ReconcileWorkers:
        metrics, maskers = self._metrics, Maskers()
        context = ReconcileContext(
            cache=self._cache,
            kubernetes=self._kubernetes,
            store=self._store,
            settings=self._settings,
            runbooks=self._runbooks,
            git_cases=self._git_cases,
            judges=self._judges,
            scoring=self._scoring,
            publish_again=self._publisher.again,
            mask=metrics.watched(default_masker().mask, "alert_data"),
            mask_of=lambda setting: metrics.watched(maskers.of(setting), "alert_data"),
            checks=self._outbound.checks,
            served=self._served,
            at_rest=self._at_rest,
            note_firing=lambda result: metrics.add(SCHEDULE_TIMES, result=result.value),
            note_default=partial(metrics.add, DEFAULTED),
        )
        client, namespaces = self._kubernetes.client, self._settings.namespaces
        listed = partial(learn, client, self._cache, namespaces, seen=self._informer.seen)
        rest = Rest(self._cache, self._store.reads, self._at_rest, self._queue.next_when_idle)
        reconciler = Reconciler(context, self._informer, rest, self._periodic.transitions)
        return ReconcileWorkers(self._queue, self._election, listed, self._learned, reconciler.reconcile)

    def _rounds(self) -> Iterator[tuple[float, Callable[[], Awaitable[None]]]]:
        """Yields the work that is done while this replica is active, each with its interval in seconds."""
        client, store, queue = self._kubernetes.client, self._store, self._queue
        yield self._settings.relist_seconds, self._relist_at_intervals
        yield SWEEP_SECONDS, self._sweep
        yield PURGE_SECONDS, self._purge
        if self._scoring is not None:
            yield SCORING_SECONDS, self._scoring.round
        if store.intake is not None:
            yield ROUND_SECONDS, Incidents(client, self._cache, store.intake, queue.add).round
        if store.outcomes is not None:
            yield OUTCOME_SECONDS, OutcomeRounds(store.outcomes, store.reads, self._publisher.again).round
        running, pods = self._periodic.running, self._settings.pods
        if running is not None and pods is not None:
            library = self._settings.library_namespace
            workloads = RunWorkloads(client, self._cache, running, library, pods)
            yield WORKLOADS_SECONDS, self._once_learned(workloads.round)
        if store.approvals is not None:
            requests = ApprovalRequests(client, self._cache, store.approvals, store.runs.wake, queue.add)
            yield ASKING_SECONDS, requests.round
        yield PARKED_SECONDS, ParkedRuns(client, self._cache, store.runs).round
        if store.quotas is not None:
            yield GONE_SECONDS, partial(lift_deleted, store.quotas, self._cache, client)
            yield SWEEP_SECONDS, store.quotas.interrupt_judges
        if self._notifications is not None:
            yield NOTICE_SECONDS, self._notifications.round
        if self._served is not None:
            yield SERVING_SECONDS, self._served.round

    def _once_learned(self, work: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Returns work that begins when the configuration was listed, because it ends what no object asks for."""

        @wraps(work)
        async def waiting() -> None:
            await self._learned.wait()
            await work()

        return waiting

    def why_not_ready(self) -> str | None:
        """Why this replica does not see the whole cluster; None: it does."""
        return self._watch.why_not()

    async def run(self) -> None:
        """Runs until cancelled."""
        self._watch_began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch.run())
            group.create_task(self._election.run())
            group.create_task(self._become_active())
            group.create_task(self._workers.run())
            group.create_task(self._relist_what_was_missed())
            group.create_task(self._publisher.run())
            group.create_task(self._runbooks.run())
            group.create_task(self._git_cases.run())
            group.create_task(self._judges.run())
            for seconds, work in self._rounds():
                group.create_task(self._while_active(seconds, work))
            if self._periodic.history is not None:
                group.create_task(self._periodic.history.run(self._election))
            if self._periodic.slack is not None:
                group.create_task(self._periodic.slack.run(self._election))
            if self._periodic.transitions is not None:
                group.create_task(self._periodic.transitions.run(self._election))
            if (servers := self._outbound.checks.servers) is not None:
                group.create_task(servers.run(self._queue.add))

    async def _become_active(self) -> None:
        """Reconciles every object each time this replica becomes active."""
        while True:
            await self._election.active.wait()
            self._informer.look_at_all()
            self._store.changed.set()
            await self._election.passive.wait()

    async def _while_active(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Does `work` when this replica becomes active, then every `seconds`."""
        while True:
            await self._election.active.wait()
            pause = seconds
            try:
                await work()
            except (ApiError, StoreError) as error:
                pause = min(seconds, RETRY_SECONDS)
                name = getattr(work, "__qualname__", "periodic work").replace("._", ".")
                _log.warning("%s failed; retrying in %g s: %s", name, pause, error)
            try:
                async with asyncio.timeout(pause):
                    await self._election.passive.wait()
            except TimeoutError:
                continue

    async def _relist_what_was_missed(self) -> None:
        """Relists after the watch had to list anew (410, as after a compaction of etcd), and so missed deletions."""
        news = self._informer
        while True:
            await news.missed.wait()
            await self._election.active.wait()
            await until_listed(news.missed)
            everything, news.missed_all = news.missed_all, False
            try:
                await self._relist(relist if everything else relist_while_watch_lists)
            except (ApiError, StoreError) as error:
                _log.warning("the relist failed; retrying in %g s: %s", RETRY_SECONDS, error)
                news.missed_all = news.missed_all or everything
                news.missed.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def _relist_at_intervals(self) -> None:
        """Relists; soon after the start without what the watch lists meanwhile."""
        began, self._watch_began = self._watch_began, -math.inf
        young = asyncio.get_running_loop().time() - began < self._settings.relist_seconds
        await self._relist(relist_while_watch_lists if young else relist)

    async def _relist(self, listing: Callable[..., Awaitable[None]] = relist) -> None:
        """Finds what the watch missed, and reconciles every object."""
        store, news = self._store, self._informer
        await listing(
            self._kubernetes.client,
            self._cache,
            store.reads,
            store.runs,
            self._settings.namespaces,
            seen=news.seen,
            gone=news.gone,
        )
        await self._end_missing_evals()
        if store.revisions is not None:
            await forget_missing(self._kubernetes.client, self._cache, store.revisions, self._settings.namespaces)
        news.look_at_all()

    async def _end_missing_evals(self) -> None:
        """Ends evaluations whose objects were deleted while no controller watched; the cache was just listed."""
        if self._store.evals is None:
            return
        keys = (key for kind in (EvalSuite.KIND, EvalRun.KIND) for key in self._cache.keys_of(kind))
        living = [UUID(version.uid) for key in keys if (version := self._cache.version(key)) is not None]
        await self._store.evals.end_missing(living, self._settings.namespaces)

    async def _sweep(self) -> None:
        for identity in await self._store.runs.expire_overdue(SWEEP_GRACE_SECONDS):
            _log.warning("run %s was ended: no live worker held it", identity)

    async def _purge(self) -> None:
        deleted = await self._periodic.purge() if self._periodic.purge is not None else {}
        if deleted:
            _log.info("deleted the records of %d investigations whose retention has expired", sum(deleted.values()))
