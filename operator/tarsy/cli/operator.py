"""The operator process: everything wired together, in the order in which things must be there.

Postgres and the Kubernetes API may be away at start: both are waited for, with a line in the log, because a pod that
restarts in circles helps nobody. Readiness is served on HTTP from the first moment.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import asyncpg
from aiohttp import web

from tarsy.controllers.active import ActiveController
from tarsy.controllers.probing import Probes
from tarsy.engine.ports import Models, Toolboxes
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.llm.registry import ModelRegistry
from tarsy.masking import Maskers, default_masker
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import Value
from tarsy.runtime.run import Runner
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker
from tarsy.store.claims import Claims
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreUnavailable
from tarsy.store.migrate import migrate
from tarsy.store.reads import Reads
from tarsy.store.runs import Runs
from tarsy.store.wakeups import QUEUE_CHANNEL, RUN_CHANNEL
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """How the operator runs.

    `listen_url` is for LISTEN, where `database_url` leads to a transaction pooler. `namespaces` limits the operator to
    some (none: all). `stdio_tools` lets MCPServers run commands in this process's container: for one machine only.
    `runbook_hosts` are those that runbooks may be fetched from in every namespace, whatever their address.
    `health_port` 0 takes a free one.
    """

    database_url: str
    listen_url: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    library_namespace: str = "tarsy-library"
    lease_namespace: str = "tarsy-system"
    namespaces: tuple[str, ...] = ()
    stdio_tools: bool = False
    runbook_hosts: tuple[str, ...] = ()
    health_host: str = "0.0.0.0"
    health_port: int = 8080
    worker: WorkerSettings = field(default_factory=WorkerSettings)


async def operate(settings: OperatorSettings, *, ready: Callable[[], None] | None = None) -> None:
    """Runs the operator until SIGTERM or SIGINT.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sig, stop.set)
    work = asyncio.create_task(_operate(settings, ready))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _operate(settings: OperatorSettings, ready: Callable[[], None] | None) -> None:
    state = {"ready": False}
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_health(settings, state))
        pool = await _patiently("Postgres", lambda: open_pool(settings.database_url, min_size=2, max_size=20))
        stack.push_async_callback(pool.close)
        await _patiently("Postgres", lambda: migrate(pool))
        client = await stack.enter_async_context(await KubeClient.load(settings.kubeconfig, settings.context))
        await _patiently("the Kubernetes API", client.version)

        secrets = Secrets(client)

        async def resolve(value: Value) -> str:
            return await secrets(value.secret) if value.secret else value.value or ""

        models = ModelRegistry(secrets)
        stack.push_async_callback(models.aclose)
        toolboxes = McpToolboxes(
            resolve, mask=default_masker().mask, mask_of=Maskers().of, allow_stdio=settings.stdio_tools
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(run_product(settings, pool, client, secrets, models, toolboxes))
            state["ready"] = True
            if ready:
                ready()


async def run_product(
    settings: OperatorSettings,
    pool: asyncpg.Pool,
    client: KubeClient,
    secrets: Secrets,
    models: Models,
    toolboxes: Toolboxes,
) -> None:
    """Runs the active controller and a worker, with the wake-ups between them, until it is cancelled.

    Args:
        settings: of `models` and `toolboxes` nothing is read.
        pool: a migrated database.
        client: the Kubernetes API.
        secrets: reads the Secrets of namespaces.
        models: where the engine finds its models.
        toolboxes: where it finds its tools.
    """
    notifier = Notifier(pool)
    runs, reads = Runs(pool, notifier.notify), Reads(pool)
    wake, changed = asyncio.Event(), asyncio.Event()
    listener = Listener(settings.listen_url or settings.database_url, (QUEUE_CHANNEL, RUN_CHANNEL))
    instance = f"{socket.gethostname()}-{os.getpid()}"
    worker = Worker(
        Claims(pool, notifier.notify),
        Runner(pool, runs, models, toolboxes, notifier.notify, grace_seconds=settings.worker.finish_grace_seconds),
        settings.worker,
        wake,
    )
    controller = ActiveController(
        client,
        runs,
        reads,
        secrets,
        LeaderElection(client, settings.lease_namespace, "tarsy-controller", instance),
        Events(client, instance=instance),
        library_namespace=settings.library_namespace,
        mask=default_masker().mask,
        namespaces=settings.namespaces,
        changed=changed,
        runbook_hosts=settings.runbook_hosts,
        probes=Probes(),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(notifier.run())
        group.create_task(listener.run())
        group.create_task(_pass_on(listener, QUEUE_CHANNEL, wake))
        group.create_task(_pass_on(listener, RUN_CHANNEL, changed))
        group.create_task(controller.run())
        group.create_task(worker.run())


async def _pass_on(listener: Listener, channel: str, event: asyncio.Event) -> None:
    """Sets `event` at each wake-up of a channel, and at each poll interval without one."""
    with listener.subscribe(channel) as subscription:
        while True:
            await subscription.wait()
            event.set()


async def _patiently(what: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Tries until it works; only what may pass is tried again."""
    delay = 0.5
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            log.warning("waiting for %s: %s", what, error)
        except ApiError as error:
            if not error.transient or error.reason == "NoConfiguration":
                raise
            log.warning("waiting for %s: %s", what, error.message)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 10.0)


@contextlib.asynccontextmanager
async def _health(settings: OperatorSettings, state: dict[str, bool]):  # type: ignore[no-untyped-def]
    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def is_ready(_: web.Request) -> web.Response:
        return web.Response(text="ready" if state["ready"] else "starting", status=200 if state["ready"] else 503)

    app = web.Application()
    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", is_ready)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, settings.health_host, settings.health_port)
    try:
        await site.start()
        yield
    finally:
        await runner.cleanup()
