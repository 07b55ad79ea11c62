"""Provides connections and clients for the long-running processes.

Postgres and the Kubernetes API may be unavailable at start. A process waits for both and logs it, because a crash loop
helps nobody. Readiness is served from the start.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import asyncpg

from tarsy.app.lifecycle import ProcessReadiness, Shutdown, serve_health
from tarsy.app.settings.processes import ProcessSettings
from tarsy.app.settings.serving_topics import ObservabilitySettings
from tarsy.app.worker_shares import RUN_CONNECTIONS
from tarsy.engine.ports import Toolboxes
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.values import Values
from tarsy.llm.registry import ModelRegistry, build_client
from tarsy.masking import Maskers, default_masker
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.observe.metrics import Metrics
from tarsy.observe.metrics_server import serve_metrics
from tarsy.observe.tracing import Tracing, tracing
from tarsy.plan.destinations import Destinations
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.runtime.object_reader import ClusterObjects
from tarsy.runtime.rate_limiter import SharedModels
from tarsy.runtime.service_account_tokens import ActingToolboxes, cluster_of
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreUnavailable
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.migrate import migrate
from tarsy.store.reading.gauges import watch_pool
from tarsy.stream.listener import Listener

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

ServeReports = Callable[[Metrics, ProcessReadiness, Shutdown], AbstractAsyncContextManager[None]]
"""Serves metrics and readiness of a process while entered."""


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Connections and clients of a process.

    Args:
        pool: a migrated database.
        client: the Kubernetes API.
        secrets: reads the Secrets of namespaces.
        models: the clients of LLMProviders.
        toolboxes: the tools of MCPServers.
        objects: reads the cluster for stages of kind Changes and its history; None: nothing does.
        metrics: of the process.
        tracing: exports traces of the runs; None: no traces.
        readiness: of the process.
    """

    pool: asyncpg.Pool
    client: KubeClient
    secrets: Secrets
    models: SharedModels
    toolboxes: Toolboxes
    objects: ClusterObjects | None
    metrics: Metrics
    tracing: Tracing | None
    readiness: ProcessReadiness


@contextlib.asynccontextmanager
async def connected(
    settings: ProcessSettings,
    shutdown: Shutdown,
    name: str,
    *,
    connections: int = RUN_CONNECTIONS,
    serve: ServeReports | None = None,
) -> AsyncIterator[ProcessContext]:
    """Waits for Postgres and the Kubernetes API, migrates, and opens the clients of a process; closes them at the end.

    Args:
        settings: the topics of the process.
        shutdown: makes the process unready after a signal.
        name: the name of the process for `pg_stat_activity`.
        connections: maximum connections of its pool to Postgres.
        serve: serves metrics and readiness; None: at the ports of the settings.

    Raises:
        StoreError: the database cannot be used (wrong credentials, a newer schema).
        ApiError: there is no usable configuration of a cluster.
        TracingError: traces are configured and cannot be sent.
    """
    readiness, metrics = ProcessReadiness(), Metrics()
    async with contextlib.AsyncExitStack() as stack:
        observability, destinations = settings.observability, settings.outbound.destinations()
        service = name.replace(" ", "-")
        traces = await stack.enter_async_context(
            tracing(observability.otlp_endpoint, service, observability.span_style)
        )
        serve = serve or partial(_serve_at_ports, observability)
        await stack.enter_async_context(serve(metrics, readiness, shutdown))
        application = f"{name} {os.getpid()}"
        pool = await patiently(
            "Postgres",
            lambda: open_pool(settings.database.url, min_size=2, max_size=connections, application=application),
        )
        stack.push_async_callback(pool.close)
        watch_pool(metrics, pool, "runs")
        await patiently("Postgres", lambda: migrate(pool))
        client = await stack.enter_async_context(
            await KubeClient.load(settings.kubernetes.kubeconfig, settings.kubernetes.context)
        )
        await patiently("the Kubernetes API", client.version)
        await asyncio.to_thread(default_masker().compile)
        secrets = Secrets(client)
        models = _models(settings, secrets, destinations)
        stack.push_async_callback(models.aclose)
        library = settings.kubernetes.library_namespace
        acting = ActingToolboxes(_toolboxes(settings, client, secrets, metrics, destinations), client, library)
        nobody = await stack.enter_async_context(client.without_identity())
        objects = ClusterObjects(
            client,
            nobody,
            metrics.watched(default_masker().mask, "tool_results"),
            library or LIBRARY_NAMESPACE,
            ObjectHistory(pool),
        )
        yield ProcessContext(pool, client, secrets, models, acting, objects, metrics, traces, readiness)


def _models(settings: ProcessSettings, secrets: Secrets, destinations: Destinations) -> ModelRegistry:
    lent_to = settings.outbound.workload_identity_namespaces
    build = partial(build_client, lent_to=lent_to, destinations=destinations)
    return ModelRegistry(secrets, build=build, destinations=destinations)


def _toolboxes(
    settings: ProcessSettings, client: KubeClient, secrets: Secrets, metrics: Metrics, destinations: Destinations
) -> McpToolboxes:
    maskers = Maskers()
    return McpToolboxes(
        Values(client, secrets),
        mask=metrics.watched(default_masker().mask, "tool_results"),
        mask_of=lambda setting: metrics.watched(maskers.of(setting), "tool_results"),
        allow_stdio=settings.mcp.stdio,
        destinations=destinations,
        cluster=cluster_of(client),
    )


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
async def _serve_at_ports(
    settings: ObservabilitySettings, metrics: Metrics, readiness: ProcessReadiness, shutdown: Shutdown
) -> AsyncIterator[None]:
    """Serves health and metrics at the ports of the settings.

    Args:
        settings: the ports.
        metrics: the metrics of the process.
        readiness: whether the process is ready.
        shutdown: makes the process unready.
    """

    async def why_not() -> str | None:
        return readiness.why_not()

    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serve_health(settings, shutdown, why_not))
        if settings.metrics_port is not None:
            await stack.enter_async_context(serve_metrics(metrics.text, settings.metrics_host, settings.metrics_port))
        yield
