"""Runs the operator process: the active controller, the HTTP server, the webhook and, unless disabled, a worker.

On SIGTERM the controller stops first: another replica takes its Lease while the worker here drains.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from uuid import uuid4

import asyncpg

from tarsy.app.errors import StartError
from tarsy.app.http import http_server
from tarsy.app.lifecycle import Shutdown, until_stopped
from tarsy.app.process import ProcessContext, connected, pass_on
from tarsy.app.settings.processes import OperatorSettings
from tarsy.app.settings.work_topics import ReconcileSettings
from tarsy.app.worker import WORKER_CHANNELS, new_worker, pass_on_to_worker
from tarsy.controllers.history.recorder import HistoryLimits, HistoryRecorder, HistoryWatches
from tarsy.controllers.machinery.active import ActiveController, PeriodicWork
from tarsy.controllers.machinery.context import (
    ControllerSettings,
    KubernetesPorts,
    OutboundPorts,
    ReadinessChecks,
    StorePorts,
)
from tarsy.controllers.notifications.delivery import Outbox, SlackThreads
from tarsy.controllers.notifications.wire import NotificationSender
from tarsy.controllers.readiness.provider_checks import ProviderChecks
from tarsy.controllers.readiness.server_checks import ServerChecks
from tarsy.controllers.readiness.transitions import TransitionRecorder
from tarsy.controllers.runs.runbooks import token_reader
from tarsy.controllers.slack.conversation import SlackApp, SlackConversation, SlackPorts
from tarsy.controllers.tool_workloads.pod_rules import PodSettings
from tarsy.evidence.alerted import workload_of
from tarsy.evidence.history.digests import Digests
from tarsy.http.admission.webhook import Admission
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.kube.values import Values
from tarsy.llm.probe import probe
from tarsy.masking import default_masker
from tarsy.mcp.connection import Policy
from tarsy.observe.metrics import Metrics
from tarsy.runbook.fetch import Fetcher
from tarsy.runtime.git_files import FetcherClient, fetcher_plan
from tarsy.runtime.judge_call import JUDGE_SECONDS
from tarsy.runtime.judge_models import JudgeModels
from tarsy.runtime.rate_limiter import RateLimiters, RunModels
from tarsy.runtime.service_account_tokens import cluster_of
from tarsy.runtime.worker import WorkerWakeups
from tarsy.store.approvals import ApprovalStore
from tarsy.store.git_texts import GitTextStore
from tarsy.store.history.condition_transitions import ConditionTransitions
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.history.retention import HistoryRetention
from tarsy.store.intake import Intake
from tarsy.store.judging.calibration import Verdicts
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import JudgeCalls
from tarsy.store.judging.outcomes import Outcomes
from tarsy.store.judging.replays import Replays
from tarsy.store.judging.reviews import Reviews
from tarsy.store.judging.scores import Scores
from tarsy.store.questions import Questions
from tarsy.store.quotas import Quotas
from tarsy.store.reading.gauges import Gauges
from tarsy.store.reading.precedents import PrecedentSearch
from tarsy.store.reading.reads import Reads
from tarsy.store.retention import Retention
from tarsy.store.runs.calls import Calls
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.notices import Notices
from tarsy.store.runs.rate_limit_slots import ProviderSlots
from tarsy.store.runs.revisions import Revisions
from tarsy.store.runs.wakeups import RUN_CHANNEL
from tarsy.store.runs.workloads import Workloads
from tarsy.store.slack import SlackQuestions
from tarsy.store.tool_definitions import ToolDefinitions
from tarsy.stream.deltas import Deltas
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

_log = logging.getLogger(__name__)


async def operate(settings: OperatorSettings) -> None:
    """Runs the operator until SIGTERM or SIGINT.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
    """

    async def main(shutdown: Shutdown) -> None:
        async with (
            connected(settings, shutdown, "tarsy run") as connections,
            contextlib.AsyncExitStack() as stack,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(run_product(settings, connections, shutdown))
            webhook = settings.webhook
            if not webhook.require_author:
                _log.warning(
                    "--require-author is off: objects without an author are accepted and the 'use' permission is not "
                    "checked for them"
                )
            if webhook.port is not None:
                namespace = settings.controller.operator_namespace
                admission = Admission(
                    connections.client, namespace, host=webhook.host, port=webhook.port, files=webhook.tls_directory
                )
                group.create_task(admission.run())
                await admission.settled.wait()
            server = await stack.enter_async_context(http_server(settings, connections, shutdown.asked))
            group.create_task(server.run())
            await server.serving()
            connections.readiness.start()

    await until_stopped(main)


async def run_product(
    settings: OperatorSettings, connections: ProcessContext, shutdown: Shutdown | None = None
) -> None:
    """Runs the active controller and a worker, with the wake-ups between them, until it is cancelled.

    Args:
        settings: the topics of the operator; those of models and tool servers are not read.
        connections: of the process; its readiness is lost while the controller does not watch the whole cluster.
        shutdown: gets the function that drains.
    """
    pool, metrics = connections.pool, connections.metrics
    notifier = Notifier(pool)
    metrics.read_record(Gauges(pool).read)
    runs = Runs(pool, notifier.notify, metrics)
    wake, changed = WorkerWakeups(), asyncio.Event()
    channels = (*WORKER_CHANNELS, RUN_CHANNEL)
    listener = Listener(settings.database.listen_url or settings.database.url, channels)
    deltas = Deltas(pool, listener.hear)
    turnstiles = RateLimiters(ProviderSlots(pool, notifier.notify), listener.subscribe, metrics)
    worker, execution = None, settings.execution.worker()
    if execution is not None:
        worker = new_worker(execution, connections, notifier.notify, wake, turnstiles, deltas)
    judges = JudgeModels(RunModels(connections.models, turnstiles.of_judges(JUDGE_SECONDS + 30)), metrics)
    controller = _controller(settings, connections, runs, notifier, changed, judges)
    connections.readiness.depend_on(controller.why_not_ready)
    async with asyncio.TaskGroup() as group:
        group.create_task(notifier.run())
        group.create_task(listener.run())
        group.create_task(pass_on(listener, RUN_CHANNEL, changed))
        controlling = group.create_task(controller.run())
        group.create_task(turnstiles.run())
        if worker is not None:
            group.create_task(pass_on_to_worker(listener, wake))
            group.create_task(deltas.run())
            group.create_task(worker.run())

        async def drain() -> None:
            controlling.cancel()
            if worker is not None:
                await worker.drain()

        if shutdown is not None:
            shutdown.drain = drain


def _controller(
    settings: OperatorSettings,
    connections: ProcessContext,
    runs: Runs,
    notifier: Notifier,
    changed: asyncio.Event,
    judges: JudgeModels,
) -> ActiveController:
    pool, client, secrets, metrics = connections.pool, connections.client, connections.secrets, connections.metrics
    controlled, destinations = settings.controller, settings.outbound.destinations()
    instance = f"{socket.gethostname()}-{os.getpid()}"
    intake = Intake(pool, queue_limit=settings.intake.queue_limit)
    evals, transitions = Evals(pool, metrics), ConditionTransitions(pool)
    purge = partial(_purge, Retention(pool), intake, evals, transitions, controlled)
    lent_to = settings.outbound.workload_identity_namespaces
    sender, questions = NotificationSender(secrets, destinations), SlackQuestions(pool)
    threads = SlackThreads(questions, settings.slack.api_url)
    provider_checks = ProviderChecks(partial(probe, lent_to=lent_to, destinations=destinations))
    return ActiveController(
        KubernetesPorts(client, Events(client, instance=instance), secrets),
        StorePorts(
            runs,
            Reads(pool, controlled.calibration_floor),
            Questions(pool, notifier.notify, metrics),
            intake,
            ProviderSlots(pool, notifier.notify).publish,
            Replays(pool),
            evals,
            judge_calls=JudgeCalls(pool, uuid4()),
            precedents=PrecedentSearch(pool, metrics=metrics),
            revisions=Revisions(pool),
            approvals=ApprovalStore(pool),
            definitions=ToolDefinitions(pool),
            quotas=Quotas(pool, notifier.notify),
            reviews=Reviews(pool, metrics),
            verdicts=Verdicts(pool),
            scores=Scores(pool, metrics),
            outcomes=Outcomes(pool, controlled.outcome_periods(), workload_of, metrics),
            git_texts=GitTextStore(pool),
            changed=changed,
        ),
        _controller_settings(settings),
        LeaderElection(client, controlled.operator_namespace, "tarsy-controller", instance),
        OutboundPorts(
            ReadinessChecks(provider_checks, _server_checks(settings, client, secrets)),
            Fetcher(token_reader(secrets), destinations=destinations),
            _git_reader(settings, client, secrets),
            judges,
        ),
        PeriodicWork(
            purge=purge,
            running=Workloads(pool).running,
            calls=Calls(pool),
            outbox=Outbox(Notices(pool), sender, settings.web_ui.url, threads),
            history=_history(settings, pool, client, metrics),
            slack=_slack(settings, connections, questions, sender),
            transitions=_transition_recorder(settings, transitions, client, metrics),
        ),
        metrics,
    )


def _controller_settings(settings: OperatorSettings) -> ControllerSettings:
    controlled = settings.controller
    return ControllerSettings(
        library_namespace=settings.kubernetes.library_namespace,
        namespaces=controlled.namespaces,
        pods=PodSettings(controlled.operator_namespace, controlled.pod_users, controlled.gateway_image),
        git_hosts=controlled.git_hosts,
        calibration_floor=controlled.calibration_floor,
        runbook_hosts=controlled.runbook_hosts,
        require_author=settings.webhook.require_author,
    )


def _slack(
    settings: OperatorSettings, connections: ProcessContext, questions: SlackQuestions, sender: NotificationSender
) -> SlackConversation | None:
    chosen = settings.slack
    if chosen.app_token_file is None or not chosen.app_token_file.exists():
        return None
    files = (chosen.app_token_file, chosen.bot_token_file, chosen.users_file)
    return SlackConversation(
        SlackApp(*files, chosen.api_url, settings.web_ui.url),
        SlackPorts(
            connections.client,
            questions,
            Reads(connections.pool, settings.controller.calibration_floor),
            sender,
            settings.outbound.destinations(),
        ),
        namespace=settings.controller.operator_namespace,
        mask=connections.metrics.watched(default_masker().mask, "alert_data"),
        metrics=connections.metrics,
    )


def _history(settings: OperatorSettings, pool: asyncpg.Pool, client: KubeClient, metrics: Metrics) -> HistoryRecorder:
    chosen = settings.history
    try:
        key = chosen.key()
        digests = None if key is None else Digests(key)
    except (OSError, ValueError) as error:
        raise StartError(f"The key of the history (--history-key-file {chosen.key_file}): {error}.") from error
    limits = HistoryLimits(
        retention=timedelta(seconds=chosen.retention_seconds), namespace_bytes=chosen.namespace_mebibytes * 1024 * 1024
    )
    return HistoryRecorder(
        client,
        ObjectHistory(pool),
        HistoryRetention(pool),
        digests,
        metrics,
        HistoryWatches(settings.controller.namespaces),
        limits,
    )


def _transition_recorder(
    settings: OperatorSettings, transitions: ConditionTransitions, client: KubeClient, metrics: Metrics
) -> TransitionRecorder:
    async def namespace_uid(name: str) -> str | None:
        found = await client.find("Namespace", None, name)
        return None if found is None else str(found["metadata"]["uid"])

    seconds = settings.controller.retention_seconds
    kept = None if seconds is None else timedelta(seconds=seconds)
    return TransitionRecorder(transitions, namespace_uid, metrics.watched(default_masker().mask, "history"), kept)


def _server_checks(settings: OperatorSettings, client: KubeClient, secrets: Secrets) -> ServerChecks | None:
    interval = settings.controller.server_check_seconds
    if interval is None:
        return None
    return ServerChecks(_policy(settings, client, secrets), default_masker().mask, interval=interval)


def _git_reader(settings: OperatorSettings, client: KubeClient, secrets: Secrets) -> FetcherClient:
    policy, controlled = _policy(settings, client, secrets), settings.controller
    server = fetcher_plan(controlled.operator_namespace, child=settings.mcp.stdio)
    return FetcherClient(policy, server, controlled.git_ca_file)


def _policy(settings: OperatorSettings, client: KubeClient, secrets: Secrets) -> Policy:
    return Policy(
        Values(client, secrets),
        ssl.create_default_context(),
        settings.mcp.stdio,
        settings.outbound.destinations(),
        cluster=cluster_of(client),
    )


async def _purge(
    retention: Retention,
    intake: Intake,
    evals: Evals,
    transitions: ConditionTransitions,
    settings: ReconcileSettings,
) -> Mapping[str, int]:
    """Deletes the records, evaluations, received notifications and transitions older than their retention."""
    deleted: Counter[str] = Counter()
    if settings.retention_seconds is not None:
        await intake.purge(settings.retention_seconds)
        await evals.purge(settings.retention_seconds, settings.namespaces)
        await transitions.purge(settings.retention_seconds, settings.namespaces)
        deleted.update(await retention.purge(settings.retention_seconds, settings.namespaces, replays=False))
    if settings.replay_retention_seconds is not None:
        deleted.update(await retention.purge(settings.replay_retention_seconds, settings.namespaces, replays=True))
    return deleted
