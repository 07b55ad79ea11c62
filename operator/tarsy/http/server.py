"""Runs the HTTP server: the direct port for bearer tokens and browsers, the aggregated port for kube-apiserver.

Decision: when the front proxy of the cluster or the serving certificate changes, the aggregated port is closed and
opened again with all its connections, so that none outlives the CA that authenticated it. Clients of streams reconnect.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from tarsy.http.admission.registration import Registration
from tarsy.http.admission.tls import (
    CertificateError,
    ServingCertificate,
    read_certificate,
    server_context,
    show_certificate,
)
from tarsy.http.aggregated import AggregatedFrontend, add_discovery
from tarsy.http.application import build_application
from tarsy.http.authentication.front_proxy import FrontProxy, NoFrontProxy, read_front_proxy
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.authentication.web_ui_proxy import (
    OPTION,
    PageProxy,
    PageProxySettings,
    read_page_proxy,
    require_separate_authority,
    trust_proxy,
)
from tarsy.http.health import add_health
from tarsy.http.mcp_endpoint.endpoint import add_mcp_endpoint
from tarsy.http.route import Route
from tarsy.http.services import Services
from tarsy.http.web_ui import add_page, read_page
from tarsy.kube.client import ApiError
from tarsy.listening.server import listen
from tarsy.observe.metrics import Metrics

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 30.0
_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Settings of the HTTP server.

    Args:
        host: address to listen on.
        port: direct port; 0: any free port.
        tls: folder with the certificate of the direct port; None: plain HTTP.
        record_port: aggregated port; 0: any free port; None: no aggregated API.
        record_tls: folder with the certificate of the aggregated port; None: the operator creates one.
        audiences: accepted audiences of tokens at the direct port; empty: that of the Kubernetes API.
        namespace: namespace of the operator.
        sign_in_file: file with a one-time sign-in code; used by `tarsy dev` only.
        origins: additional origins whose web pages may use the session of a signed-in user.
        page_proxy: proxy that may authenticate users at the direct port; None: none.
    """

    host: str
    port: int
    record_port: int | None
    tls: Path | None = None
    record_tls: Path | None = None
    audiences: tuple[str, ...] = ()
    namespace: str = "tarsy-system"
    sign_in_file: Path | None = None
    origins: tuple[str, ...] = ()
    page_proxy: PageProxySettings | None = None


class HttpServer:
    """Serves the routes on both ports; `direct_open` and `aggregated_open` are set while a port is open."""

    def __init__(
        self,
        settings: HttpSettings,
        routes: Sequence[Route],
        services: Services,
        metrics: Metrics | None = None,
        *,
        look_seconds: float = _LOOK_SECONDS,
        beside: Callable[[web.Application, BearerFrontend], None] | None = None,
    ) -> None:
        """Creates a server; `run` serves.

        Args:
            settings: addresses, certificates and authentication.
            routes: the route table.
            services: the dependencies of handlers.
            metrics: counts requests.
            look_seconds: interval in seconds between checks of the certificates.
            beside: adds further paths to the application of the direct port.
        """
        self._settings = settings
        self._routes = routes
        self._services = services
        self._metrics = metrics
        self._look_seconds = look_seconds
        self._beside = beside
        self._registration = Registration(services.kube, settings.namespace, settings.record_tls)
        self.direct: web.Application | None = None
        self.direct_open = asyncio.Event()
        self.aggregated_open = asyncio.Event()
        self.port = settings.port
        self.record_port = settings.record_port

    async def serving(self) -> None:
        """Returns when all ports are open."""
        await self.direct_open.wait()
        if self.record_port is not None:
            await self.aggregated_open.wait()

    async def run(self) -> None:
        """Serves until it is cancelled.

        Raises:
            OSError: a port is in use.
            CertificateError: the certificate of the direct port, or the CA of its proxy, cannot be used.
        """
        async with asyncio.TaskGroup() as group:
            if self._services.live is not None:
                group.create_task(self._services.live.run())
            group.create_task(self._direct())
            if self.record_port is not None:
                group.create_task(self._aggregated())

    async def _direct(self) -> None:
        proxy = await self._page_proxy()
        frontend = BearerFrontend(
            self._services.kube, self._settings.audiences, origins=self._services.origins, proxy=proxy
        )
        self.direct = app = build_application(self._routes, frontend, self._services, self._metrics)
        add_health(app, self._services.pool, self._takes_requests)
        add_page(app, await asyncio.to_thread(read_page))
        add_mcp_endpoint(app, frontend, self._services)
        if self._beside is not None:
            self._beside(app, frontend)
        own, context = None, None
        if self._settings.tls is not None:
            own = await asyncio.to_thread(read_certificate, self._settings.tls)
            context = await asyncio.to_thread(server_context, own)
            if proxy is not None:
                trust_proxy(context, proxy)
        async with listen(app, self._settings.host, self.port, tls=context) as port:
            self.port = port
            self.direct_open.set()
            _log.info("the HTTP API listens on port %d", port)
            while True:
                await asyncio.sleep(self._look_seconds)
                if self._settings.tls is not None and context is not None:
                    own = await self._renewed(self._settings.tls, own, context)

    async def _page_proxy(self) -> PageProxy | None:
        settings = self._settings.page_proxy
        if settings is None:
            return None
        if self._settings.tls is None:
            text = f"{OPTION} requires --http-tls: the proxy authenticates with a TLS client certificate"
            raise CertificateError(text)
        proxy = await asyncio.to_thread(read_page_proxy, settings)
        try:
            await require_separate_authority(proxy, self._services.kube)
        except ApiError as error:
            _log.warning("could not check whether %s is the client CA of the cluster: %s", OPTION, error.message)
        return proxy

    async def _renewed(
        self, folder: Path, shown: ServingCertificate | None, context: ssl.SSLContext
    ) -> ServingCertificate | None:
        """Loads the certificate in a folder if it has changed; returns the certificate in use."""
        try:
            own = await asyncio.to_thread(read_certificate, folder)
            if own != shown:
                await asyncio.to_thread(show_certificate, context, own)
                _log.info("the HTTP API serves a new certificate")
        except CertificateError as error:
            _log.warning("the HTTP API keeps its current certificate: %s", error)
            return shown
        return own

    def _takes_requests(self) -> bool:
        closed = self.record_port is not None and not self.aggregated_open.is_set()
        return not closed and not self._services.stopping.is_set()

    async def _aggregated(self) -> None:
        """Opens the aggregated port, and opens it again when the front proxy or the certificate changes."""
        async with contextlib.AsyncExitStack() as opened:
            shown: tuple[FrontProxy, ServingCertificate] | None = None
            while True:
                wait = self._look_seconds
                try:
                    found = (await read_front_proxy(self._services.kube), await self._registration.certificate())
                    if shown is not None:  # a renewed certificate is published before it is used
                        await self._registration.publish(found[1])
                    if found != shown:
                        await self._close(opened)
                        await opened.enter_async_context(self._record_site(*found))
                        if shown is None:  # publishing makes the API server connect, so the port must be open
                            await self._registration.publish(found[1])
                        self.aggregated_open.set()
                        shown = found
                except (NoFrontProxy, CertificateError) as error:
                    await self._close(opened)
                    shown = None
                    _log.warning("the aggregated API is not served: %s", error)
                except ApiError as error:
                    _log.warning("cannot set up the aggregated API, trying again: %s", error.message)
                    if not self.aggregated_open.is_set():
                        await self._close(opened)
                        shown, wait = None, min(wait, _RETRY_SECONDS)
                await asyncio.sleep(wait)

    async def _close(self, opened: contextlib.AsyncExitStack) -> None:
        self.aggregated_open.clear()
        await opened.aclose()

    @contextlib.asynccontextmanager
    async def _record_site(self, front: FrontProxy, own: ServingCertificate) -> AsyncIterator[None]:
        context = await asyncio.to_thread(server_context, own, front.authority)
        frontend = AggregatedFrontend(front)
        routes = [route for route in self._routes if route.aggregated]
        app = build_application(routes, frontend, self._services, self._metrics)
        add_discovery(app, frontend)
        async with listen(app, self._settings.host, self.record_port or 0, tls=context) as port:
            self.record_port = port
            _log.info("the aggregated API listens on port %d", port)
            yield
