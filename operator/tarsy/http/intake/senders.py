"""Authenticates senders of notifications, by a token of the cluster or by a secret of AlertRoutes.

The Kubernetes API reviews a token, and its owner needs the permission to create Alerts. A secret authorizes exactly the
routes that reference it; their Alerts belong to the ServiceAccount that the route names. Decision: the URL selects the
routes (`?namespace=`, else the library), so the routes of one tenant never see notifications of another, and no
password is tried against all tenants.
"""

import asyncio
import base64
import binascii
import hmac
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from aiohttp import hdrs, web

from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.authentication.identity import Caller
from tarsy.http.errors import Unauthorized, Unavailable
from tarsy.http.intake.signature import is_one_of, sign, signatures_in, signed_time
from tarsy.kube.access import service_account_subject
from tarsy.kube.client import ApiError
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import SecretKey
from tarsy.resources.v1alpha1.alert_route import AlertRoute
from tarsy.resources.v1alpha1.common import SecretKeyRef

SenderSecretReader = Callable[[SecretKey], Awaitable[str]]
_REFUSED = "send a bearer token of the cluster, or the secret of an AlertRoute of the namespace in ?namespace="


@dataclass(frozen=True, slots=True)
class AlertSender:
    """An authenticated sender: by token, `caller` is its owner; by secret, `routes` are the authorized routes."""

    name: str
    caller: Caller | None = None
    routes: tuple[AlertRoute, ...] = ()

    def author(self, route: AlertRoute) -> Caller:
        """Returns the author of the Alerts of a route."""
        return self.caller or service_account(route)


def service_account(route: AlertRoute) -> Caller:
    """Returns the ServiceAccount of senders that authenticate by a secret."""
    name = route.spec.auth.service_account_name if route.spec.auth else "default"
    subject = service_account_subject(route.metadata.namespace, name)
    return Caller(subject.username, groups=subject.groups)


class Senders:
    """Authenticates senders.

    Args:
        frontend: authenticates bearer tokens.
        read_secret: reads labelled Secrets.
        clock: returns seconds since 1970.
    """

    def __init__(
        self, frontend: BearerFrontend, read_secret: SenderSecretReader, clock: Callable[[], float] = time.time
    ) -> None:
        self._frontend = frontend
        self._read_secret = read_secret
        self._clock = clock

    async def by_token(self, request: web.Request) -> AlertSender | None:
        """Authenticates by bearer token; returns None without one.

        Raises:
            Unauthorized: the token is invalid.
            Unavailable: the Kubernetes API could not review the token.
        """
        if request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")[0].lower() != "bearer":
            return None
        caller = await self._frontend.caller(request)
        return AlertSender(caller.username, caller)

    async def before_body(self, request: web.Request, routes: Iterable[AlertRoute]) -> AlertSender | None:
        """Authenticates by password; returns None if the body must be checked for a signature.

        Args:
            request: the request.
            routes: routes of the namespace in the URL.

        Raises:
            Unauthorized: the request has no valid credential.
            Unavailable: the Kubernetes API is unavailable.
        """
        scheme, _, rest = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() == "basic":
            return await self._by_password(rest.strip(), routes)
        if any(_signatures(request, route) for route in routes):
            return None
        raise Unauthorized(_REFUSED)

    async def by_signature(self, request: web.Request, content: bytes, routes: Iterable[AlertRoute]) -> AlertSender:
        """Authenticates by the signature of the body.

        Args:
            request: the request.
            content: the body.
            routes: routes of the namespace in the URL.

        Raises:
            Unauthorized: no route has the key of the signature.
            Unavailable: the Kubernetes API is unavailable.
        """
        opened, name = [], ""
        made: dict[tuple[str, bytes], str] = {}
        for route in routes:
            wanted = route.spec.auth.hmac if route.spec.auth else None
            given = _signatures(request, route)
            if wanted is None or not given:
                continue
            at = wanted.timestamp_header
            before = b"" if at is None else signed_time(request.headers.get(at, ""), self._clock())
            key = await self._secret(route, wanted.secret_ref)
            if not key or before is None:
                continue
            if (key, before) not in made:  # signing a large body takes milliseconds
                made[key, before] = await asyncio.to_thread(sign, key, before, content)
            if is_one_of(made[key, before], given):
                opened.append(route)
                name = name or f"signed by {route.metadata.namespace}/{wanted.secret_ref.name}"
        if not opened:
            raise Unauthorized(_REFUSED)
        return AlertSender(name, routes=tuple(opened))

    async def _by_password(self, encoded: str, routes: Iterable[AlertRoute]) -> AlertSender:
        try:
            username, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise Unauthorized(_REFUSED) from None
        opened = []
        for route in routes:
            wanted = route.spec.auth.basic if route.spec.auth else None
            if wanted is None or not colon or not _same(wanted.username, username):
                continue
            if _same(await self._secret(route, wanted.password_secret_ref) or "", password):
                opened.append(route)
        if not opened or not password:
            raise Unauthorized(_REFUSED)
        return AlertSender(f"{opened[0].metadata.namespace}/{username}", routes=tuple(opened))

    async def _secret(self, route: AlertRoute, ref: SecretKeyRef) -> str | None:
        """Reads a secret; None if it is unavailable, which the conditions of the route report."""
        try:
            return await self._read_secret(SecretKey(namespace=route.metadata.namespace, name=ref.name, key=ref.key))
        except SecretProblem:
            return None
        except ApiError:
            raise Unavailable("the Kubernetes API is unavailable; try again") from None


def _signatures(request: web.Request, route: AlertRoute) -> tuple[str, ...]:
    """Returns the signatures in the header that a route names, without malformed ones."""
    wanted = route.spec.auth.hmac if route.spec.auth else None
    return signatures_in(request.headers.get(wanted.header, "")) if wanted is not None else ()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode("utf-8", "surrogateescape"))
