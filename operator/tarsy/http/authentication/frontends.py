"""Authenticates requests at the direct port, by bearer token, cookie or authenticating proxy.

Decision: the Kubernetes API reviews each bearer token (TokenReview), so every token that the cluster authenticates is
accepted. Results are cached for seconds by a digest of the token; the token itself is not stored. A browser that has
signed in (`web_ui_session.py`) sends its token as a cookie. The cookie counts only without an Authorization header, and
writes require a request of the web UI's own origin. The same holds for users of an authenticating proxy
(`web_ui_proxy.py`), because their browser also sends the cookie of the proxy by itself. A token that the proxy forwards
must belong to the same user; a token that the cluster does not know is ignored, since the proxy authenticates the user.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from tarsy.http.authentication.identity import Caller
from tarsy.http.authentication.web_ui_proxy import PageProxy
from tarsy.http.errors import Forbidden, HttpError, Unauthorized, Unavailable
from tarsy.http.models import DIRECT_PREFIX
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import ApiError, KubeClient

_TOKEN_SECONDS = 10.0
BAD_TOKEN_SECONDS = 2.0
_TOKENS = 10_000
TOKEN_CHARACTERS = 16_384
REVIEWS_AT_ONCE = 32
FIRST_REVIEWS_AT_ONCE = 4
"""Concurrent reviews of tokens that were never valid here, so a flood of them delays no other caller."""
WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
"""Prefix of the WebSocket subprotocol in which browsers send a token, as kube-apiserver accepts it."""
COOKIE = "tarsy-session"
"""Session cookie over plain HTTP, on one machine."""
HOST_COOKIE = f"__Host-{COOKIE}"
"""Session cookie over TLS. Browsers accept a cookie of this prefix only from this host and over TLS, so neither another
site of the domain nor an attacker on the network can plant one; over plain HTTP they do not accept it at all."""
PROXY_SECONDS = 900.0
"""Maximum seconds that an open connection stays authenticated by the proxy; then its client must reconnect."""
_READING = frozenset({"GET", "HEAD"})
_NAMED: Final = web.RequestKey("named", float)


class ApiFrontend(Protocol):
    """Authenticates requests and formats errors for one kind of client."""

    @property
    def name(self) -> str:
        """Name for the log."""

    @property
    def prefix(self) -> str:
        """Prefix of all paths."""

    @property
    def stream_seconds(self) -> float | None:
        """Maximum duration of a stream in seconds; None: unlimited."""

    async def caller(self, request: web.Request) -> Caller:
        """Authenticates a request. Raises HttpError if it is not authenticated, or cannot be checked now."""

    def error(self, error: HttpError) -> web.Response:
        """Formats an error for the clients of this frontend."""


class BearerFrontend:
    """Authenticates bearer tokens, cookies and proxied users; returns errors as `{"error": {"reason", "message"}}`.

    Args:
        client: authenticated as the operator, which may create TokenReviews.
        audiences: accepted audiences of tokens; empty: that of the Kubernetes API.
        origins: additional origins whose web pages may use the cookie.
        proxy: proxy that may authenticate users; None: none.
        seconds: lifetime of a cached review.
    """

    name = "direct"
    prefix = DIRECT_PREFIX
    stream_seconds = None

    def __init__(
        self,
        client: KubeClient,
        audiences: Sequence[str] = (),
        *,
        origins: Sequence[str] = (),
        proxy: PageProxy | None = None,
        seconds: float = _TOKEN_SECONDS,
    ) -> None:
        self._client = client
        self._origins = tuple(origins)
        self._proxy = proxy
        self._audiences = tuple(audiences)
        self._reviews = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._first_reviews = asyncio.Semaphore(FIRST_REVIEWS_AT_ONCE)
        self._good: dict[bytes, None] = {}
        self._callers: ReviewCache[bytes, Caller | None] = ReviewCache(
            lambda caller: seconds if caller else min(seconds, BAD_TOKEN_SECONDS), size=_TOKENS
        )

    async def caller(self, request: web.Request) -> Caller:
        """Returns the owner of the token, or the user that the proxy names.

        Raises:
            Unauthorized: the token is missing or invalid; the message does not say which.
            Forbidden: a page of another origin uses the cookie or the proxy.
            Unavailable: the Kubernetes API could not review the token.
        """
        person = self._proxy.person(request) if self._proxy is not None else None
        if person is not None:
            return await self._proxied(request, person)
        token = bearer_token(request) or self._of_cookie(request)
        if not token:
            raise Unauthorized
        known = await self._holder(token)
        if known is None:
            raise Unauthorized
        return replace(known, token=token)

    async def _proxied(self, request: web.Request, person: Caller) -> Caller:
        self._require_page(request)
        if time.monotonic() - request.setdefault(_NAMED, time.monotonic()) > PROXY_SECONDS:
            raise Unauthorized("the authentication by the proxy has expired; reconnect")
        token = bearer_token(request)
        known = await self._holder(token) if token else None
        if known is None:
            return person
        if known.username != person.username:
            raise Unauthorized(
                "the proxy sends one user name and forwards the token of another user: configure it to send the user "
                "names of the cluster, or to forward no token"
            )
        return replace(known, token=token, by_proxy=True)

    async def _holder(self, token: str) -> Caller | None:
        """Returns the owner of a token; None if it is invalid. Raises Unavailable."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        try:
            return await self._callers.get(digest, lambda: self._review(token, digest))
        except ApiError:
            raise Unavailable("the Kubernetes API could not review the token; try again") from None

    def _note_good(self, digest: bytes) -> None:
        self._good[digest] = None
        if len(self._good) > _TOKENS:
            del self._good[next(iter(self._good))]

    def _of_cookie(self, request: web.Request) -> str:
        if hdrs.AUTHORIZATION in request.headers:
            return ""
        if not (token := _sendable(request.cookies.get(cookie_of(request), ""))):
            return ""
        self._require_page(request)
        return token

    def _require_page(self, request: web.Request) -> None:
        """Raises Forbidden unless the web UI sent the request. For credentials that browsers send by themselves."""
        if (request.method not in _READING or _is_websocket(request)) and hdrs.ORIGIN not in request.headers:
            raise Forbidden(
                "cookies and proxy headers are accepted from the web UI only: send a token in the Authorization header"
            )
        require_own_page(request, self._origins)

    def error(self, error: HttpError) -> web.Response:
        """Formats an error as `{"error": {"reason", "message"}}`."""
        body = {"error": {"reason": error.reason, "message": error.message}}
        return web.json_response(body, status=error.status, headers=error.headers)

    async def _review(self, token: str, digest: bytes) -> Caller | None:
        spec: dict[str, Any] = {"token": token}
        if self._audiences:
            spec["audiences"] = list(self._audiences)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": spec}
        async with self._reviews if digest in self._good else self._first_reviews:
            status = (await self._client.create(review)).get("status") or {}
        self._good.pop(digest, None)
        if status.get("authenticated") is not True:
            return None
        # An authenticator without support for audiences returns none: its tokens are for the API server only.
        if self._audiences and not set(self._audiences) & set(status.get("audiences") or ()):
            return None
        user = status.get("user") or {}
        if not user.get("username"):
            return None
        self._note_good(digest)
        extra = {str(key): tuple(values) for key, values in (user.get("extra") or {}).items()}
        return Caller(str(user["username"]), str(user.get("uid") or ""), tuple(user.get("groups") or ()), extra)


def is_secure(request: web.Request) -> bool:
    """Returns whether the browser uses TLS, to this server or to a proxy in front of it."""
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def cookie_of(request: web.Request) -> str:
    """Returns the name of the session cookie for the scheme of a request; the other one is ignored."""
    return HOST_COOKIE if is_secure(request) else COOKIE


def require_own_page(request: web.Request, origins: Sequence[str]) -> None:
    """Refuses requests of web pages from other origins than this server and `origins`.

    Raises:
        Forbidden: the origin is another one.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None or origin in origins:
        return
    with contextlib.suppress(ValueError):
        if urlsplit(origin).netloc.lower() == request.host.lower():
            return
    raise Forbidden("requests from this origin are not allowed")


def bearer_token(request: web.Request) -> str:
    """Returns the token in the Authorization header or in the WebSocket subprotocols; empty without one."""
    scheme, _, token = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() == "bearer":
        token = token.strip()
    elif _is_websocket(request):
        token = _of_subprotocols(request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, []))
    else:
        return ""
    return _sendable(token)


def _sendable(token: str) -> str:
    return token if len(token) <= TOKEN_CHARACTERS and token.isascii() and token.isprintable() else ""


def _is_websocket(request: web.Request) -> bool:
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def _of_subprotocols(values: Sequence[str]) -> str:
    for offer in ",".join(values).split(","):
        encoded = offer.strip()
        if encoded.startswith(WEBSOCKET_TOKEN):
            encoded = encoded.removeprefix(WEBSOCKET_TOKEN)
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
            except (binascii.Error, ValueError):
                return ""
    return ""
