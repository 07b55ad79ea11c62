"""The HTTP API of an operator process: what its handlers stand on, and its two doors.

Decision: it has connections to Postgres of its own. However much people ask, the worker beside it never waits for one.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial

from tarsy.app.process import ProcessContext, ProcessSettings, patiently
from tarsy.http.authentication.access import AccessReviews
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
from tarsy.store.gauges import watch_pool
from tarsy.store.intake import NAMESPACE_QUEUE_LIMIT, QUEUE_LIMIT, Intake
from tarsy.store.reads import Reads
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

_CONNECTIONS = 8


@contextlib.asynccontextmanager
async def http_server(
    settings: HttpSettings,
    library_namespace: str,
    service: ProcessSettings,
    world: ProcessContext,
    stopping: asyncio.Event,
    *,
    namespaces: tuple[str, ...] = (),
    queue_limit: int = QUEUE_LIMIT,
    namespace_queue_limit: int = NAMESPACE_QUEUE_LIMIT,
) -> AsyncIterator[HttpServer]:
    """A server that is to be run; its connections are closed at the end.

    Args:
        settings: where it is.
        library_namespace: of what is shipped for all.
        service: where Postgres is.
        world: what the process stands on.
        stopping: set when the process has been asked to end; streams close then.
        namespaces: those that alerts may be routed to; none: all.
        queue_limit: how many investigations may wait before the intake takes no new incidents.
        namespace_queue_limit: how many of one namespace may.
    """
    async with contextlib.AsyncExitStack() as stack:
        application = f"tarsy http {os.getpid()}"
        pool = await patiently(
            "Postgres", lambda: open_pool(service.database_url, max_size=_CONNECTIONS, application=application)
        )
        stack.push_async_callback(pool.close)
        watch_pool(world.metrics, pool, "http")
        callers = await stack.enter_async_context(world.client.without_identity())
        live = Hub(pool, Listener(service.listen_url or service.database_url, CHANNELS), Notifier(pool))
        world.metrics.pull(STREAMS, lambda: {(): live.open_connections})
        services = Services(
            pool=pool,
            reads=Reads(pool),
            kube=world.client,
            callers=callers,
            access=AccessReviews(world.client),
            namespaces=NamespaceReader(world.client),
            library_namespace=library_namespace,
            stopping=stopping,
            origins=settings.origins,
            sign_in_file=settings.sign_in_file,
            live=live,
            texts=LargeTexts(Configuration(world.client, library_namespace), Intake(pool)),
        )
        intake = partial(
            add_intake,
            services=services,
            metrics=world.metrics,
            read_secret=world.secrets,
            queue_limit=queue_limit,
            namespace_queue_limit=namespace_queue_limit,
            namespaces=namespaces,
        )
        yield HttpServer(settings, all_routes(), services, world.metrics, beside=intake)
