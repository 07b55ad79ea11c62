"""The doors: how a request says who asks, and how an error looks there.

Decision: the direct door knows a caller by bearer token, which the Kubernetes API itself checks (TokenReview); nothing
is checked here, so whatever a cluster authenticates by token comes in. Answers are remembered for seconds by a digest
of the token; the token itself is kept nowhere. A browser that signed in (`page_session.py`) sends it as a cookie; that
counts only without an Authorization header, and for more than reading only where our own page asks. So it is with
people whom a proxy names (`page_proxy.py`): their browser sends the proxy's cookie by itself, too. A token that their
proxy forwards must be theirs; one that the cluster does not know is as none, since the proxy's own word stands.
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
"""Of tokens that were never good here: whoever sends any number of them keeps neither others nor the API waiting."""
WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
"""The subprotocol by which browsers send a token, as kube-apiserver reads it."""
COOKIE = "tarsy-session"
"""The cookie by which a browser that signed in sends its token, where it speaks plain HTTP: on one machine."""
HOST_COOKIE = f"__Host-{COOKIE}"
"""The same over TLS. Browsers take a cookie of this prefix from this very host and over TLS only, so no other site of
the domain, and nobody on the way, can plant one; over plain HTTP they do not take it at all."""
PROXY_SECONDS = 900.0
"""So long a connection that stays open is of whom the proxy named; then it comes again, past the proxy."""
_READING = frozenset({"GET", "HEAD"})
_NAMED: Final = web.RequestKey("named", float)


class ApiFrontend(Protocol):
    """A way in."""

    @property
    def name(self) -> str:
        """For the log."""

    @property
    def prefix(self) -> str:
        """What stands before the path of a route."""

    @property
    def stream_seconds(self) -> float | None:
        """How long an answer that streams may go on; None: as long as it likes."""

    async def caller(self, request: web.Request) -> Caller:
        """Who asks. Raises HttpError: nobody knows, or nobody can say now."""

    def error(self, error: HttpError) -> web.Response:
        """An error as the clients of this door expect it."""


class BearerFrontend:
    """Bearer tokens, and errors as `{"error": {"reason", "message"}}`.

    Args:
        client: as the operator, which may create TokenReviews.
        audiences: what tokens must be for; none: the Kubernetes API itself.
        origins: web sites, besides the one of the request itself, whose pages may act by a cookie.
        proxy: who may say who asks; None: nobody.
        seconds: how long a good token is believed.
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
        """Who the token is of, or whom the proxy names.

        Raises:
            Unauthorized: there is none, or it is no good; the sentence does not say which.
            Forbidden: it is a cookie's, or a proxy's, and a page of another site asks.
            Unavailable: the Kubernetes API could not say.
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
        """Who a token is of; None: it is no good. Raises Unavailable: the Kubernetes API could not say."""
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
        """Refuses what no page of ours asks, of what a browser says by itself who asks. Raises Forbidden."""
        if (request.method not in _READING or _is_websocket(request)) and hdrs.ORIGIN not in request.headers:
            raise Forbidden(
                "cookies and proxy headers are accepted from the web UI only: send a token in the Authorization header"
            )
        require_own_page(request, self._origins)

    def error(self, error: HttpError) -> web.Response:
        """`{"error": {"reason", "message"}}`."""
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
        # An authenticator that knows nothing of audiences answers with none: its tokens are for the API server only.
        if self._audiences and not set(self._audiences) & set(status.get("audiences") or ()):
            return None
        user = status.get("user") or {}
        if not user.get("username"):
            return None
        self._note_good(digest)
        extra = {str(key): tuple(values) for key, values in (user.get("extra") or {}).items()}
        return Caller(str(user["username"]), str(user.get("uid") or ""), tuple(user.get("groups") or ()), extra)


def is_secure(request: web.Request) -> bool:
    """Whether the browser speaks TLS, to this door or to what stands before it."""
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def cookie_of(request: web.Request) -> str:
    """The name of the one cookie that counts for a request; that of the other scheme is not looked at."""
    return HOST_COOKIE if is_secure(request) else COOKIE


def require_own_page(request: web.Request, origins: Sequence[str]) -> None:
    """Refuses what a page of a site asks that is neither this one nor one of `origins`.

    Raises:
        Forbidden: it is another's.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None or origin in origins:
        return
    with contextlib.suppress(ValueError):
        if urlsplit(origin).netloc.lower() == request.host.lower():
            return
    raise Forbidden("requests from this origin are not allowed")


def bearer_token(request: web.Request) -> str:
    """The token of a request, empty without one: of the Authorization header, or of a WebSocket's subprotocols."""
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
