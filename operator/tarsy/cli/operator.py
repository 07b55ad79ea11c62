"""The operator process: the active controller, and a worker unless workers are elsewhere, wired together.

When it shall stop, the controller goes first: another replica takes its Lease while the worker here drains.
"""

import asyncio
import os
import socket
import ssl
from dataclasses import dataclass, field
from functools import partial

import asyncpg

from tarsy.cli.service import ServiceSettings, Shutdown, connected, pass_on, until_stopped
from tarsy.cli.worker import new_worker
from tarsy.controllers.active import ActiveController
from tarsy.controllers.probing import Probes
from tarsy.controllers.server_checks import ServerChecks
from tarsy.engine.ports import Toolboxes
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.kube.values import Values
from tarsy.llm.probe import probe
from tarsy.masking import default_masker
from tarsy.mcp.link import Policy
from tarsy.observe.counters import Counters
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.turnstile import SharedModels, Turnstiles
from tarsy.store.questions import Questions
from tarsy.store.reads import Reads
from tarsy.store.retention import Retention
from tarsy.store.runs import Runs
from tarsy.store.slots import ProviderSlots
from tarsy.store.wakeups import QUEUE_CHANNEL, RUN_CHANNEL, TURN_CHANNEL
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier


@dataclass(frozen=True, slots=True)
class OperatorSettings(ServiceSettings):
    """How the operator runs.

    `namespaces` limits the operator to some (none: all). `runbook_hosts` are those that runbooks may be fetched from in
    every namespace, whatever their address. MCPServers are looked at every `server_check_seconds` (None: never).
    Records are kept `retention_seconds` after their run ended (None: for ever). Without `worker` it runs no
    investigation itself: workers of their own do.
    """

    library_namespace: str = "tarsy-library"
    lease_namespace: str = "tarsy-system"
    namespaces: tuple[str, ...] = ()
    runbook_hosts: tuple[str, ...] = ()
    server_check_seconds: float | None = 60.0
    retention_seconds: float | None = None
    worker: WorkerSettings | None = field(default_factory=WorkerSettings)


async def operate(settings: OperatorSettings) -> None:
    """Runs the operator until SIGTERM or SIGINT.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
    """

    async def main(shutdown: Shutdown) -> None:
        async with connected(settings, shutdown, "tarsy run") as world, asyncio.TaskGroup() as group:
            product = run_product(
                settings,
                world.pool,
                world.client,
                world.secrets,
                world.models,
                world.toolboxes,
                shutdown,
                world.counters,
            )
            group.create_task(product)
            world.ready()

    await until_stopped(main)


async def run_product(
    settings: OperatorSettings,
    pool: asyncpg.Pool,
    client: KubeClient,
    secrets: Secrets,
    models: SharedModels,
    toolboxes: Toolboxes,
    shutdown: Shutdown | None = None,
    counters: Counters | None = None,
) -> None:
    """Runs the active controller and a worker, with the wake-ups between them, until it is cancelled.

    Args:
        settings: of `models` and `toolboxes` nothing is read.
        pool: a migrated database.
        client: the Kubernetes API.
        secrets: reads the Secrets of namespaces.
        models: where the engine finds its models.
        toolboxes: where it finds its tools.
        shutdown: is told how to drain.
        counters: what is counted for people to see.
    """
    notifier = Notifier(pool)
    runs, reads = Runs(pool, notifier.notify), Reads(pool)
    wake, changed = asyncio.Event(), asyncio.Event()
    listener = Listener(settings.listen_url or settings.database_url, (QUEUE_CHANNEL, RUN_CHANNEL, TURN_CHANNEL))
    slots = ProviderSlots(pool, notifier.notify)
    turnstiles = Turnstiles(slots, listener.subscribe)
    instance = f"{socket.gethostname()}-{os.getpid()}"
    worker = None
    if settings.worker is not None:
        worker = new_worker(settings.worker, pool, models, toolboxes, notifier.notify, wake, turnstiles)
    purge = None
    if settings.retention_seconds is not None:
        purge = partial(Retention(pool).purge, settings.retention_seconds, settings.namespaces)
    checks = None
    if settings.server_check_seconds is not None:
        policy = Policy(Values(client, secrets), ssl.create_default_context(), allow_stdio=settings.stdio_tools)
        checks = ServerChecks(policy, default_masker().mask, interval=settings.server_check_seconds)
    controller = ActiveController(
        client,
        runs,
        reads,
        Questions(pool, notifier.notify),
        secrets,
        LeaderElection(client, settings.lease_namespace, "tarsy-controller", instance),
        Events(client, instance=instance),
        library_namespace=settings.library_namespace,
        mask=default_masker().mask,
        namespaces=settings.namespaces,
        changed=changed,
        runbook_hosts=settings.runbook_hosts,
        probes=Probes(partial(probe, lent_to=settings.workload_identity_for)),
        checks=checks,
        purge=purge,
        publish_limits=slots.publish,
        counters=counters,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(notifier.run())
        group.create_task(listener.run())
        group.create_task(pass_on(listener, QUEUE_CHANNEL, wake))
        group.create_task(pass_on(listener, RUN_CHANNEL, changed))
        controlling = group.create_task(controller.run())
        if worker is not None:
            group.create_task(turnstiles.run())
            group.create_task(worker.run())

        async def drain() -> None:
            controlling.cancel()
            if worker is not None:
                await worker.drain()

        if shutdown is not None:
            shutdown.drain = drain
