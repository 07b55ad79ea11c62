"""Provides signals, health and connections for the long-running processes.

Postgres and the Kubernetes API may be unavailable at start. A process waits for both and logs it, because a crash loop
helps nobody. Readiness is served over HTTP from the start. The first SIGTERM or SIGINT drains the process, the second
one stops it immediately.
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
    """Shuts a process down: `drain` runs first, unless a second signal skips it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()
        self.drain: Callable[[], Awaitable[None]] | None = None

    def signal(self) -> None:
        """Handles SIGTERM or SIGINT."""
        (self.hurry if self.asked.is_set() else self.asked).set()

    async def over(self) -> None:
        """Returns when the process must end: after a signal and draining, or after a second signal."""
        await self.asked.wait()
        if self.drain is None:
            return
        _log.info(
            "stopping: waiting for investigations to finish their current step; a second signal stops immediately"
        )
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
    """Runs `main` until it ends or a signal cancels it. Raises the errors of `main`."""
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
    """Reports the readiness of this process to the probe."""

    def __init__(self) -> None:
        self._started = False
        self._checks: list[Callable[[], str | None]] = []

    def start(self) -> None:
        """Marks the process as started."""
        self._started = True

    def depend_on(self, check: Callable[[], str | None]) -> None:
        """Adds a check that returns why this process is not ready, or None."""
        self._checks.append(check)

    def why_not(self) -> str | None:
        """Returns why this process is not ready, or None."""
        if not self._started:
            return "starting"
        return next((why for check in self._checks if (why := check()) is not None), None)


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Connections and clients of a process."""

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
    """Waits for Postgres and the Kubernetes API, migrates, and opens the clients of a process; closes them at the end.

    Args:
        settings: the topics of the process.
        shutdown: makes the process unready after a signal.
        name: the name of the process for `pg_stat_activity`.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
        TracingError: traces are configured and cannot be sent.
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
    """Sets `event` at each notification of a channel, and after each poll interval without one.

    Args:
        listener: listens to Postgres.
        channel: the channel.
        event: set for each notification.
    """
    with listener.subscribe(channel) as subscription:
        while True:
            await subscription.wait()
            event.set()


async def patiently(what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Repeats an attempt until it succeeds; only transient errors are retried."""
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
