"""Runs a worker process, which claims and executes investigations; workers scale horizontally.

A worker writes nothing to the Kubernetes API and watches nothing there: it only reads the Secrets that plans name. It
finds accepted investigations in Postgres. A pod with several cores runs several such processes under a supervisor.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

from tarsy.app.lifecycle import Shutdown, until_stopped
from tarsy.app.process import ProcessContext, ServeReports, connected, pass_on
from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.app.worker_shares import Share
from tarsy.masking import default_masker
from tarsy.observe.metric_table import PROCESSES
from tarsy.record.waiting import WaitingLimits
from tarsy.runtime.approvals import RunApprovals
from tarsy.runtime.approving.examination import CallExaminer
from tarsy.runtime.approving.reading import read_nothing
from tarsy.runtime.object_reader import ClusterObjects
from tarsy.runtime.rate_limiter import RateLimiters
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker, WorkerWakeups
from tarsy.store.approvals import ApprovalStore
from tarsy.store.runs.claims import ClaimedRun, Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.parking import ParkingLimits
from tarsy.store.runs.rate_limit_slots import ProviderSlots
from tarsy.store.runs.wakeups import FOLLOW_CHANNEL, QUEUE_CHANNEL, TURN_CHANNEL, NotifyFunction
from tarsy.stream.deltas import Deltas
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

WORKER_CHANNELS = (QUEUE_CHANNEL, TURN_CHANNEL, FOLLOW_CHANNEL)
"""Channels that a process with a worker listens to."""


async def work(settings: WorkerProcessSettings, share: Share, serve: ServeReports | None = None) -> None:
    """Runs a worker until SIGTERM or SIGINT, then returns its investigations to the queue.

    Args:
        settings: the settings of the pod.
        share: what this process of the pod may use.
        serve: serves metrics and readiness to the supervisor; None: this process is the only one, and serves its ports.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
    """

    async def main(shutdown: Shutdown) -> None:
        most = share.run_connections
        connecting = connected(settings, shutdown, "tarsy worker", connections=most, serve=serve)
        async with connecting as connections:
            pool = connections.pool
            connections.metrics.pull(PROCESSES, lambda: {(): 1})
            notifier, wake = Notifier(pool), WorkerWakeups()
            listener = Listener(settings.database.listen_url or settings.database.url, WORKER_CHANNELS)
            turnstiles = RateLimiters(ProviderSlots(pool, notifier.notify), listener.subscribe, connections.metrics)
            deltas = Deltas(pool, listener.hear)
            worker = new_worker(
                _settings(settings, share, alone=serve is None),
                connections,
                notifier.notify,
                wake,
                turnstiles,
                deltas,
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(notifier.run())
                group.create_task(listener.run())
                group.create_task(pass_on_to_worker(listener, wake))
                group.create_task(turnstiles.run())
                group.create_task(deltas.run())
                group.create_task(worker.run())
                shutdown.drain = worker.drain
                connections.readiness.start()

    await until_stopped(main)


async def pass_on_to_worker(listener: Listener, wake: WorkerWakeups) -> None:
    """Wakes a worker at each notification about the queue.

    It polls for claims. A heartbeat follows only what may have changed a desired state: it comes soon by itself.

    Args:
        listener: listens to Postgres.
        wake: of the worker.
    """
    with listener.subscribe(QUEUE_CHANNEL, "") as changes:
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(listener, QUEUE_CHANNEL, wake.claim))
            while True:
                if await changes.wait():
                    wake.beat.set()


def _settings(settings: WorkerProcessSettings, share: Share, *, alone: bool) -> WorkerSettings:
    host = socket.gethostname()
    name = host if alone else f"{host}/{share.number}"
    whole = settings.execution.worker() or WorkerSettings()
    return replace(whole, places=share.places, questions=share.questions, name=name)


def new_worker(
    settings: WorkerSettings,
    connections: ProcessContext,
    notify: NotifyFunction,
    wake: WorkerWakeups,
    turnstiles: RateLimiters,
    deltas: Deltas,
) -> Worker:
    """Returns a worker.

    Args:
        settings: the limits and the lease.
        connections: of the process.
        notify: sends a notification of Postgres.
        wake: wakes it.
        turnstiles: the rate limiters of LLMProviders.
        deltas: stores and publishes streamed text.
    """
    pool, metrics = connections.pool, connections.metrics
    runner = Runner(
        pool,
        Runs(pool, notify),
        connections.models,
        connections.toolboxes,
        notify,
        RunnerOptions(
            grace_seconds=settings.finish_grace_seconds,
            rate_limiters=turnstiles,
            deltas=deltas,
            metrics=metrics,
            tracing=connections.tracing,
            objects=connections.objects,
            approvals=_approvals(ApprovalStore(pool), connections.objects),
            waiting=WaitingLimits(
                settings.max_wait_seconds, settings.approval_requests, settings.park_provider_seconds
            ),
            parking=ParkingLimits(settings.max_parked, settings.max_parked_of_namespace, settings.max_wait_seconds),
        ),
    )
    return Worker(Claims(pool, notify, metrics=metrics), runner, settings, wake, metrics)


def _approvals(store: ApprovalStore, objects: ClusterObjects | None) -> Callable[[ClaimedRun], RunApprovals]:
    def of_run(run: ClaimedRun) -> RunApprovals:
        if objects is None:
            return RunApprovals(store, CallExaminer(read_nothing, lambda _: default_masker().mask), run)
        return RunApprovals(store, objects.examiner_of_run(run.id, run.namespace), run)

    return of_run
