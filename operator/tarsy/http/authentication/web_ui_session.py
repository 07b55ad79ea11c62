"""Signs in to the web UI: stores a token in a cookie that scripts cannot read.

Decision: the cookie contains the token itself. It is HttpOnly, SameSite=Strict, and valid only for requests of the web
UI's own origin (`frontends.py`), so the server stores no session: every replica accepts it, and the Kubernetes API
reviews the token as any other. Browsers store 4 KiB a cookie; a longer token is refused here, but accepted in an
Authorization header.
"""

import asyncio
import hmac
import ipaddress
import json
from pathlib import Path
from typing import Annotated, Final, Self

from aiohttp import web
from pydantic import Field, StringConstraints

from tarsy.http.authentication.frontends import COOKIE, cookie_of, is_secure, require_own_page
from tarsy.http.authentication.identity import Caller, Permission
from tarsy.http.errors import Conflict, Forbidden, NotFound
from tarsy.http.models import PRODUCT_GROUP, Body, Query, View
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.parameters import MAX_LIMIT

COOKIE_SECONDS: Final = 43_200
COOKIE_CHARACTERS: Final = 3_800
"""Maximum length of a token in a cookie: browsers store 4,096 bytes of name, value and attributes."""
USED: Final = (
    "This link has been used, or belongs to an earlier start. "
    "Sign in with a token: kubectl create token you -n tarsy-system"
)
"""Error for an invalid link. Only `tarsy dev` prints links; the token is of its account."""
_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)
_ASKED_AT_ONCE = 16


class SessionView(View):
    """The authenticated caller."""

    username: str
    groups: tuple[str, ...]
    by_proxy: bool = Field(
        description="Whether an authenticating proxy signed the caller in; only the proxy can sign them out."
    )
    has_token: bool = Field(
        description="Whether the request carries a token, which writes require. A proxy may forward none."
    )

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """Converts a caller."""
        return cls(
            username=caller.username, groups=caller.groups, by_proxy=caller.by_proxy, has_token=caller.token is not None
        )


class SignedOut(View):
    """State after signing out."""

    signed_in: bool = False


class SignInCode(Body):
    """A one-time code that `tarsy dev` prints."""

    code: Annotated[str, StringConstraints(min_length=16, max_length=128, pattern=r"^[A-Za-z0-9_-]+$")]


class NamespacesQuery(Query):
    """Size of the list."""

    limit: int = Field(default=MAX_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of namespaces.")


class NamespaceList(View):
    """Namespaces in which the caller may list investigations."""

    everywhere: bool = Field(description="Whether the caller may list investigations cluster-wide.")
    items: tuple[str, ...]
    more: bool = Field(description="Whether there are more namespaces than the limit.")


async def sign_in(ask: CheckedRequest) -> web.StreamResponse:
    """Stores the caller's token in a cookie."""
    if ask.caller.by_proxy:
        raise Conflict("an authenticating proxy has already signed you in")
    return _with_cookie(ask, ask.caller.token or "", SessionView.of(ask.caller))


async def get_session(ask: CheckedRequest) -> SessionView:
    """Returns the authenticated caller."""
    return SessionView.of(ask.caller)


async def sign_out(ask: CheckedRequest) -> web.StreamResponse:
    """Deletes the cookie."""
    require_own_page(ask.request, ask.services.origins)
    response = _json(SignedOut())
    for name in {COOKIE, cookie_of(ask.request)}:  # over TLS also the cookie of an older version
        response.del_cookie(name, path="/", secure=is_secure(ask.request), httponly=True, samesite="Strict")
    return response


async def sign_in_by_code(ask: CheckedRequest) -> web.StreamResponse:
    """Signs in with the link that `tarsy dev` prints: once, and on this machine only."""
    require_own_page(ask.request, ask.services.origins)
    if not (_is_loopback(ask.request.remote or "") and _is_loopback(ask.request.url.host or "")):
        raise Forbidden("one-time codes are accepted on the same machine only")
    file = ask.services.sign_in_file
    token = await asyncio.to_thread(_redeem, file, ask.body(SignInCode).code) if file else None
    if token is None:
        raise NotFound(USED)
    return _with_cookie(ask, token, SignedOut(signed_in=True))


async def list_namespaces(ask: CheckedRequest) -> NamespaceList:
    """Lists the namespaces in which the caller may list investigations."""
    limit, access = ask.query(NamespacesQuery).limit, ask.services.access
    names = sorted(one["metadata"]["name"] for one in await ask.services.kube.list("Namespace", None))
    everywhere = await access.allowed(ask.caller, _LIST)
    if not everywhere:
        places = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def allowed(name: str) -> bool:
            async with places:
                return await access.allowed(ask.caller, _LIST, name)

        may = await asyncio.gather(*map(allowed, names))
        names = [name for name, yes in zip(names, may, strict=True) if yes]
    return NamespaceList(everywhere=everywhere, items=tuple(names[:limit]), more=len(names) > limit)


def write_code(file: Path, code: str, token: str) -> None:
    """Writes a one-time code and its token for an operator on this machine.

    Args:
        file: the operator's `sign_in_file`; only its owner can read it.
        code: the code to print.
        token: the token that the code is exchanged for, once.
    """
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps({"code": code, "token": token}))


def _redeem(file: Path, code: str) -> str | None:
    """Exchanges a code for its token and invalidates the code."""
    try:
        left = json.loads(file.read_text())
        if not hmac.compare_digest(str(left["code"]).encode(), code.encode()):
            return None
        file.unlink()  # of two concurrent requests one fails here
        return str(left["token"])
    except (OSError, ValueError, KeyError):
        return None


def _with_cookie(ask: CheckedRequest, token: str, view: View) -> web.StreamResponse:
    if len(token) > COOKIE_CHARACTERS:
        raise Conflict(
            f"the token has {len(token)} characters; a cookie stores {COOKIE_CHARACTERS}: use a shorter token"
        )
    response = _json(view)
    response.set_cookie(
        cookie_of(ask.request),
        token,
        path="/",
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="Strict",
        secure=is_secure(ask.request),
    )
    return response


def _json(view: View) -> web.Response:
    return web.Response(body=view.model_dump_json(by_alias=True).encode(), content_type="application/json")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


ROUTES = (
    Route(
        method="POST",
        path="/session",
        operation="signIn",
        summary="Sign in to the web UI: store the bearer token of this request in a cookie",
        handler=sign_in,
        response=SessionView,
    ),
    Route(
        method="GET",
        path="/session",
        operation="getSession",
        summary="Get the authenticated caller",
        handler=get_session,
        response=SessionView,
    ),
    Route(
        method="DELETE",
        path="/session",
        operation="signOut",
        summary="Sign out of the web UI: delete the cookie",
        handler=sign_out,
        response=SignedOut,
        public=True,
    ),
    Route(
        method="POST",
        path="/session/codes",
        operation="signInByCode",
        summary="Sign in with the one-time code of `tarsy dev`, on the same machine only",
        handler=sign_in_by_code,
        body=SignInCode,
        response=SignedOut,
        public=True,
    ),
    Route(
        method="GET",
        path="/namespaces",
        operation="listNamespaces",
        summary="List the namespaces in which the caller may list investigations",
        handler=list_namespaces,
        query=NamespacesQuery,
        response=NamespaceList,
    ),
)
