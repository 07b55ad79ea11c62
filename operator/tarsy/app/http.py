"""Opens the HTTP server of an operator process: the HTTP API, the aggregated API and the intake.

Decision: it has its own connections to Postgres, so requests never make the worker in this process wait for one.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial

from tarsy.app.process import ProcessContext, patiently
from tarsy.app.settings.processes import OperatorSettings
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.web_ui_proxy import PageProxySettings
from tarsy.http.intake.application import add_intake
from tarsy.http.intake.configuration import Configuration
from tarsy.http.intake.texts import LargeTexts
from tarsy.http.live.hub import CHANNELS, Hub
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.server import HttpServer, HttpSettings
from tarsy.http.services import Services
from tarsy.http.table import all_routes
from tarsy.observe.metric_table import STREAMS
from tarsy.store.database import open_pool
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.intake import Intake
from tarsy.store.reading.gauges import watch_pool
from tarsy.store.reading.reads import Reads
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

_CONNECTIONS = 8


@contextlib.asynccontextmanager
async def http_server(
    settings: OperatorSettings,
    connections: ProcessContext,
    stopping: asyncio.Event,
) -> AsyncIterator[HttpServer]:
    """Opens the HTTP server of a process, for the caller to run; closes its connections at the end.

    Args:
        settings: the topics of the operator.
        connections: the connections of the process.
        stopping: set when the process is asked to stop; streams close then.
    """
    http, database = http_settings(settings), settings.database
    library_namespace = settings.kubernetes.library_namespace
    async with contextlib.AsyncExitStack() as stack:
        application = f"tarsy http {os.getpid()}"
        pool = await patiently(
            "Postgres", lambda: open_pool(database.url, max_size=_CONNECTIONS, application=application)
        )
        stack.push_async_callback(pool.close)
        watch_pool(connections.metrics, pool, "http")
        callers = await stack.enter_async_context(connections.client.without_identity())
        floor = settings.controller.calibration_floor
        listener = Listener(database.listen_url or database.url, CHANNELS)
        live = Hub(pool, listener, Notifier(pool), calibration_floor=floor)
        connections.metrics.pull(STREAMS, lambda: {(): live.open_connections})
        services = Services(
            pool=pool,
            reads=Reads(pool, floor),
            kube=connections.client,
            callers=callers,
            access=AccessReviews(connections.client),
            namespaces=NamespaceReader(connections.client),
            library_namespace=library_namespace,
            stopping=stopping,
            origins=http.origins,
            sign_in_file=http.sign_in_file,
            live=live,
            texts=LargeTexts(Configuration(connections.client, library_namespace), Intake(pool)),
            history=ObjectHistory(pool),
        )
        intake = partial(
            add_intake,
            services=services,
            metrics=connections.metrics,
            read_secret=connections.secrets,
            intake=Intake(
                pool,
                queue_limit=settings.intake.queue_limit,
                namespace_queue_limit=settings.intake.namespace_queue_limit,
            ),
            namespaces=settings.controller.namespaces,
        )
        yield HttpServer(http, all_routes(), services, connections.metrics, beside=intake)


def http_settings(settings: OperatorSettings) -> HttpSettings:
    """Returns the settings of the HTTP server: addresses, certificates, audiences and the trusted proxy."""
    api, record, web_ui = settings.http, settings.record_api, settings.web_ui
    proxy = None
    if web_ui.proxy_ca_file is not None:
        proxy = PageProxySettings(
            web_ui.proxy_ca_file, web_ui.proxy_names, web_ui.proxy_user_header, web_ui.proxy_group_header
        )
    return HttpSettings(
        host=api.host,
        port=api.port,
        tls=api.tls_directory,
        record_port=record.port if record.enabled else None,
        record_tls=record.tls_directory,
        audiences=api.token_audiences,
        namespace=settings.controller.operator_namespace,
        sign_in_file=web_ui.sign_in_file,
        origins=web_ui.origins,
        page_proxy=proxy,
    )
