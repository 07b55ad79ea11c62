"""What the long-running processes of this project have in common: signals, health, and what they stand on.

Postgres and the Kubernetes API may be away at start: both are waited for, with a line in the log, because a pod that
restarts in circles helps nobody. Readiness is served on HTTP from the first moment. The first SIGTERM or SIGINT asks a
process to stop in order, for which it takes its time; the second one asks it to hurry.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import asyncpg
from aiohttp import web

from tarsy.app.settings.processes import ProcessSettings
from tarsy.app.settings.serving_topics import ObservabilitySettings
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.values import Values
from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import plain_bodies_only
from tarsy.llm.registry import ModelRegistry, build_client
from tarsy.masking import Maskers, default_masker
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.observe.metrics import Metrics
from tarsy.observe.metrics_server import serve_metrics
from tarsy.observe.tracing import Tracing, tracing
from tarsy.runtime.service_account_tokens import ActingToolboxes, cluster_of
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreUnavailable
from tarsy.store.gauges import watch_pool
from tarsy.store.migrate import migrate
from tarsy.stream.listener import Listener

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Shutdown:
    """How a process is asked to end; `drain` is what it does first, unless it shall hurry."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()
        self.drain: Callable[[], Awaitable[None]] | None = None

    def signal(self) -> None:
        """SIGTERM or SIGINT came."""
        (self.hurry if self.asked.is_set() else self.asked).set()

    async def over(self) -> None:
        """Returns when the process shall end now: asked to, and drained or told to hurry."""
        await self.asked.wait()
        if self.drain is None:
            return
        _log.info("stopping: waiting for runs to reach a boundary; a second signal ends this at once")
        drained, hurried = asyncio.ensure_future(self.drain()), asyncio.create_task(self.hurry.wait())
        try:
            await asyncio.wait({drained, hurried}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (drained, hurried):
                task.cancel()
            await asyncio.wait({drained, hurried})
        if not drained.cancelled():
            drained.result()


async def until_stopped(main: Callable[[Shutdown], Awaitable[None]]) -> None:
    """Runs `main` until it ends or the process is asked to; then it is cancelled. Raises what it raises."""
    shutdown = Shutdown()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, shutdown.signal)
    work, over = asyncio.ensure_future(main(shutdown)), asyncio.create_task(shutdown.over())
    try:
        await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (over, work):
            task.cancel()
        await asyncio.wait({over, work})
    for task in (work, over):
        if not task.cancelled():
            task.result()


class ProcessReadiness:
    """Tells the readiness probe whether this process works."""

    def __init__(self) -> None:
        self._started = False
        self._checks: list[Callable[[], str | None]] = []

    def start(self) -> None:
        """Notes that everything of this process runs."""
        self._started = True

    def depend_on(self, check: Callable[[], str | None]) -> None:
        """Adds a check, which returns why this process is not ready, or None."""
        self._checks.append(check)

    def why_not(self) -> str | None:
        """Why this process is not ready; None: it is."""
        if not self._started:
            return "starting"
        return next((why for check in self._checks if (why := check()) is not None), None)


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What a process stands on."""

    pool: asyncpg.Pool
    client: KubeClient
    secrets: Secrets
    models: ModelRegistry
    toolboxes: ActingToolboxes
    metrics: Metrics
    tracing: Tracing | None
    readiness: ProcessReadiness


@contextlib.asynccontextmanager
async def connected(settings: ProcessSettings, shutdown: Shutdown, name: str) -> AsyncIterator[ProcessContext]:
    """Waits for Postgres and the Kubernetes API, migrates, and opens what runs need; closes it at the end.

    Args:
        settings: where everything is.
        shutdown: makes the process unready when it is asked to end.
        name: of the process, for `pg_stat_activity`.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
        TracingError: traces were asked for and cannot be sent.
    """
    readiness, metrics = ProcessReadiness(), Metrics()
    async with contextlib.AsyncExitStack() as stack:
        observability, destinations = settings.observability, settings.outbound.destinations()
        traces = await stack.enter_async_context(tracing(observability.otlp_endpoint, name.replace(" ", "-")))
        await stack.enter_async_context(_health(observability, readiness, shutdown))
        if observability.metrics_port is not None:
            await stack.enter_async_context(
                serve_metrics(metrics, observability.metrics_host, observability.metrics_port)
            )
        application = f"{name} {os.getpid()}"
        pool = await patiently(
            "Postgres", lambda: open_pool(settings.database.url, min_size=2, max_size=20, application=application)
        )
        stack.push_async_callback(pool.close)
        watch_pool(metrics, pool, "runs")
        await patiently("Postgres", lambda: migrate(pool))
        client = await stack.enter_async_context(
            await KubeClient.load(settings.kubernetes.kubeconfig, settings.kubernetes.context)
        )
        await patiently("the Kubernetes API", client.version)
        secrets = Secrets(client)
        models = ModelRegistry(
            secrets,
            build=partial(
                build_client, lent_to=settings.outbound.workload_identity_namespaces, destinations=destinations
            ),
            destinations=destinations,
        )
        stack.push_async_callback(models.aclose)
        maskers = Maskers()
        tools = McpToolboxes(
            Values(client, secrets),
            mask=metrics.watched(default_masker().mask, "tool_results"),
            mask_of=lambda setting: metrics.watched(maskers.of(setting), "tool_results"),
            allow_stdio=settings.mcp.stdio,
            destinations=destinations,
            cluster=cluster_of(client),
        )
        acting = ActingToolboxes(tools, client, settings.kubernetes.library_namespace)
        yield ProcessContext(pool, client, secrets, models, acting, metrics, traces, readiness)


async def pass_on(listener: Listener, channel: str, event: asyncio.Event) -> None:
    """Sets `event` at each wake-up of a channel, and at each poll interval without one."""
    with listener.subscribe(channel) as subscription:
        while True:
            await subscription.wait()
            event.set()


async def patiently(what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Tries until it works; only what may pass is tried again."""
    delay = 0.5
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            _log.warning("waiting for %s: %s", what, error)
        except ApiError as error:
            if not error.transient or error.reason == "NoConfiguration":
                raise
            _log.warning("waiting for %s: %s", what, error.message)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 10.0)


@contextlib.asynccontextmanager
async def _health(
    settings: ObservabilitySettings, readiness: ProcessReadiness, shutdown: Shutdown
) -> AsyncIterator[None]:
    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def is_ready(_: web.Request) -> web.Response:
        if shutdown.asked.is_set():
            return web.Response(text="stopping", status=503)
        why = readiness.why_not()
        return web.Response(text="ready") if why is None else web.Response(text=why, status=503)

    app = web.Application(middlewares=[plain_bodies_only])
    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", is_ready)
    async with listen(app, settings.health_host, settings.health_port):
        yield
