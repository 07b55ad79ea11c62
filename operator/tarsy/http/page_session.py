"""Signing in to the page: a token becomes a cookie that scripts cannot read.

Decision: the cookie carries the token itself. It is HttpOnly, SameSite=Strict, and counts only where the page's own
origin asks (`doors.py`), so nothing is kept here: every replica knows it, and what the Kubernetes API thinks of the
token is asked anew as for any other. A browser keeps 4 KiB a cookie; a longer token is refused here, and still good in
an Authorization header.
"""

import asyncio
import hmac
import ipaddress
import json
from pathlib import Path
from typing import Annotated, Final, Self

from aiohttp import web
from pydantic import Field, StringConstraints

from tarsy.http.doors import COOKIE, cookie_of, is_secure, require_own_page
from tarsy.http.errors import Conflict, Forbidden, NotFound
from tarsy.http.identity import Caller
from tarsy.http.route import PRODUCT_GROUP, Ask, Body, Permission, Query, Route, View
from tarsy.http.routes.parameters import MAX_LIMIT

COOKIE_SECONDS: Final = 43_200
COOKIE_CHARACTERS: Final = 3_800
"""Browsers keep 4,096 bytes of name, value and attributes."""
USED: Final = (
    "This link has been used, or is of another start. Sign in with a token: kubectl create token you -n tarsy-system"
)
"""What a link says that signs nobody in; the account is that of `tarsy dev`, the only one with such links."""
_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)
_ASKED_AT_ONCE = 16


class SessionView(View):
    """Who is signed in."""

    username: str
    groups: tuple[str, ...]
    by_proxy: bool = Field(description="A proxy signed them in, so it alone can sign them out.")
    has_token: bool = Field(description="What they write can be written as them; a proxy may forward no token.")

    @classmethod
    def of(cls, caller: Caller) -> Self:
        """A caller."""
        return cls(
            username=caller.username, groups=caller.groups, by_proxy=caller.by_proxy, has_token=caller.token is not None
        )


class SignedOut(View):
    """Nobody is signed in any more."""

    signed_in: bool = False


class SignInCode(Body):
    """A code that somebody was shown where TARSy runs on their own machine."""

    code: Annotated[str, StringConstraints(min_length=16, max_length=128, pattern=r"^[A-Za-z0-9_-]+$")]


class NamespacesQuery(Query):
    """How many."""

    limit: int = Field(default=MAX_LIMIT, ge=1, le=MAX_LIMIT, description="Namespaces at most.")


class NamespaceList(View):
    """Where the caller may list investigations."""

    everywhere: bool = Field(description="In all namespaces at once, too.")
    items: tuple[str, ...]
    more: bool = Field(description="There are more than were asked for.")


async def sign_in(ask: Ask) -> web.StreamResponse:
    """Makes the caller's token a cookie."""
    if ask.caller.by_proxy:
        raise Conflict("a proxy has signed you in already")
    return _with_cookie(ask, ask.caller.token or "", SessionView.of(ask.caller))


async def get_session(ask: Ask) -> SessionView:
    """Who asks."""
    return SessionView.of(ask.caller)


async def sign_out(ask: Ask) -> web.StreamResponse:
    """Takes the cookie away."""
    require_own_page(ask.request, ask.services.origins)
    response = _json(SignedOut())
    for name in {COOKIE, cookie_of(ask.request)}:  # over TLS also the one of a version before
        response.del_cookie(name, path="/", secure=is_secure(ask.request), httponly=True, samesite="Strict")
    return response


async def sign_in_by_code(ask: Ask) -> web.StreamResponse:
    """Signs in who opens the link that `tarsy dev` shows: once, and on this machine only."""
    require_own_page(ask.request, ask.services.origins)
    if not (_is_loopback(ask.request.remote or "") and _is_loopback(ask.request.url.host or "")):
        raise Forbidden("codes are taken on the machine itself only")
    file = ask.services.sign_in_file
    token = await asyncio.to_thread(_redeem, file, ask.body(SignInCode).code) if file else None
    if token is None:
        raise NotFound(USED)
    return _with_cookie(ask, token, SignedOut(signed_in=True))


async def list_namespaces(ask: Ask) -> NamespaceList:
    """The namespaces in which the caller may list investigations."""
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
    """Leaves a code, and the token that it stands for, where an operator of this machine finds it.

    Args:
        file: the operator's `sign_in_file`; only its owner can read it.
        code: what is shown.
        token: what it is changed into, once.
    """
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps({"code": code, "token": token}))


def _redeem(file: Path, code: str) -> str | None:
    """The token of a code, which is used up by that."""
    try:
        left = json.loads(file.read_text())
        if not hmac.compare_digest(str(left["code"]).encode(), code.encode()):
            return None
        file.unlink()  # whoever removes it has it: of two at once one fails here
        return str(left["token"])
    except (OSError, ValueError, KeyError):
        return None


def _with_cookie(ask: Ask, token: str, view: View) -> web.StreamResponse:
    if len(token) > COOKIE_CHARACTERS:
        raise Conflict(f"the token has {len(token)} characters; browsers keep {COOKIE_CHARACTERS}: take a shorter one")
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
        summary="Keep the bearer token of this request in a cookie, for the page",
        handler=sign_in,
        response=SessionView,
    ),
    Route(
        method="GET",
        path="/session",
        operation="getSession",
        summary="Who asks",
        handler=get_session,
        response=SessionView,
    ),
    Route(
        method="DELETE",
        path="/session",
        operation="signOut",
        summary="Forget the cookie",
        handler=sign_out,
        response=SignedOut,
        public=True,
    ),
    Route(
        method="POST",
        path="/session/codes",
        operation="signInByCode",
        summary="Sign in by the one-time code of `tarsy dev`, on the machine that it runs on",
        handler=sign_in_by_code,
        body=SignInCode,
        response=SignedOut,
        public=True,
    ),
    Route(
        method="GET",
        path="/namespaces",
        operation="listNamespaces",
        summary="The namespaces in which one may list investigations",
        handler=list_namespaces,
        query=NamespacesQuery,
        response=NamespaceList,
    ),
)
