"""Serves the admission webhook in every replica, and publishes its CA.

Decision: a server of its own instead of that of kopf, which writes the whole webhook configuration: here the manifests
own the configuration (GitOps sees no change), and only its `caBundle` is written. As for the aggregated port, each
replica creates a certificate whose key never leaves its memory, and adds its CA to those of the others. Without a
configuration, admission is not installed, and the webhook is not served. With a certificate from outside (OLM), the
configuration is someone else's too: it has another name, and nothing of it is read or written.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from pydantic import ValidationError

from tarsy.http.admission.ca_bundle import keep_ca_bundle, with_authority
from tarsy.http.admission.stamp import AdmissionReview, stamped
from tarsy.http.admission.tls import (
    CertificateError,
    ServingCertificate,
    make_certificate,
    needs_renewal,
    read_certificate,
    server_context,
)
from tarsy.http.bodies import BodyRoom, demand_depth, read_whole
from tarsy.http.errors import HttpError
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.listening.connection_guard import ConnectionLimits
from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import plain_bodies_only

_log = logging.getLogger(__name__)

CONFIGURATION = _SERVICE = "tarsy-admission"
_PATH = "/stamp"
_LOOK_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_MAX_BYTES = 4 * 1_048_576
"""Maximum size of a review in bytes; an API server accepts smaller objects only."""
_BODIES = 32
_LIMITS = ConnectionLimits(idle_seconds=120.0)
"""An API server does not authenticate, and keeps its connections open."""


class Admission:
    """Serves the webhook at `port` if it is installed; `settled` is set once this is known.

    Args:
        client: authenticated as the operator.
        namespace: namespace of the Service in the configuration.
        host: address to listen on.
        port: port to listen on; 0: any free port.
        files: folder with an external certificate, `tls.crt` and `tls.key`; it is read again at each check. None: the
            process creates its certificate.
        look_seconds: interval in seconds between checks of the certificate and the configuration.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        *,
        host: str = "0.0.0.0",
        port: int = 9443,
        files: Path | None = None,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        self._client = client
        self._names = (f"{_SERVICE}.{namespace}.svc", f"{_SERVICE}.{namespace}.svc.cluster.local")
        self._host = host
        self._files = files
        self._look_seconds = look_seconds
        self._room = BodyRoom(_BODIES)
        self.port = port
        self.settled = asyncio.Event()

    async def run(self) -> None:
        """Serves until it is cancelled.

        Raises:
            OSError: the port is in use.
        """
        async with contextlib.AsyncExitStack() as opened:
            shown: ServingCertificate | None = None
            while True:
                wait = self._look_seconds
                try:
                    shown = await self._look(shown, opened)
                    self.settled.set()
                except (ApiError, CertificateError) as error:
                    _log.warning("cannot set up the admission webhook, trying again: %s", error)
                    wait = min(wait, _RETRY_SECONDS)
                await asyncio.sleep(wait)

    async def _look(
        self, shown: ServingCertificate | None, opened: contextlib.AsyncExitStack
    ) -> ServingCertificate | None:
        """Opens the port, or opens it again with a renewed certificate; returns the certificate in use."""
        now, own = datetime.now(UTC), shown
        if self._files is not None:
            own = await asyncio.to_thread(read_certificate, self._files)
        else:
            if own is None or needs_renewal(own, now):
                own = make_certificate(self._names, now)
            if not await self._publish(own.authority):
                await opened.aclose()
                return None
        if own != shown:
            context = await asyncio.to_thread(server_context, own)
            await opened.aclose()
            await opened.enter_async_context(self._site(context))
        return own

    @contextlib.asynccontextmanager
    async def _site(self, context: ssl.SSLContext) -> AsyncIterator[None]:
        app = web.Application(middlewares=[plain_bodies_only])
        app.router.add_post(_PATH, self._answer)
        async with listen(app, self._host, self.port, tls=context, limits=_LIMITS) as self.port:
            _log.info("the admission webhook listens on port %d", self.port)
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            content = await read_whole(self._room, request, "", _MAX_BYTES)
            demand_depth(content)
            review = AdmissionReview.model_validate_json(content)
        except HttpError as error:
            return web.Response(status=error.status, text=error.message)
        except ValidationError:
            return web.Response(status=400, text="the body is not an AdmissionReview of admission.k8s.io/v1")
        try:
            answer = await stamped(review.request, self._may)
        except ApiError as error:
            _log.warning("cannot decide the admission of %s: %s", review.request.resource.resource, error.message)
            return web.Response(status=503, text="the Kubernetes API could not check the permission; try again")
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def _may(self, subject: Subject, attributes: ResourceAttributes) -> bool:
        return await may(self._client, subject, attributes)

    async def _publish(self, authority: str) -> bool:
        """Publishes a CA beside those of other replicas. Returns False if the webhook is not installed."""
        return await keep_ca_bundle(
            self._client, "MutatingWebhookConfiguration", CONFIGURATION, partial(_believing, authority)
        )


def _believing(authority: str, found: dict[str, Any]) -> dict[str, Any]:
    hooks = [_calling(authority, hook) for hook in found.get("webhooks") or []]
    return {**found, "webhooks": hooks} if hooks else found


def _calling(authority: str, hook: Mapping[str, Any]) -> dict[str, Any]:
    config = hook["clientConfig"]
    return {**hook, "clientConfig": {**config, "caBundle": with_authority(authority, config.get("caBundle"))}}
