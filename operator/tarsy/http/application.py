"""Builds an aiohttp application that serves a table of routes for one frontend.

Each request is authenticated (401), authorized (403) and validated (400) before its handler looks anything up.
Parameters are read before the authorization, because some name the namespace to check; the body is read after it.

Decision: one function does this for every route, so that no handler can omit a step. A handler that returns a response
of its own (a stream) is responsible for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from tarsy.http.authentication.frontends import ApiFrontend
from tarsy.http.authentication.identity import NOBODY, Caller
from tarsy.http.bodies import UNSIGNED_BODIES, UNSIGNED_EACH, BodyRoom
from tarsy.http.calling import authorize
from tarsy.http.errors import HttpError, MethodNotAllowed, NotFound, TimedOut, UnsupportedMediaType
from tarsy.http.failures import as_http_error
from tarsy.http.reading import read_body, read_path, read_query
from tarsy.http.route import PUBLIC_BODY_BYTES, CheckedRequest, Route
from tarsy.http.services import Services
from tarsy.listening.connection_guard import mark_signed_in
from tarsy.listening.uncompressed_bodies import PACKED, plain_bodies_only
from tarsy.observe.metric_table import HTTP_REFUSALS, HTTP_REQUESTS, HTTP_SECONDS
from tarsy.observe.metrics import Metrics

_log = logging.getLogger(__name__)
access_log = logging.getLogger("tarsy.http.authentication.access")
_REQUEST_SECONDS = 30.0
CALLER: Final = web.RequestKey("caller", Caller)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Server": "tarsy",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_LOGGED_PATH = 512
Rooms = tuple[BodyRoom, BodyRoom]
"""Rooms for the bodies of authenticated callers, and of all others."""
_REFUSALS = {401: "unauthenticated", 403: "forbidden", 500: "failed", 503: "unavailable"}


def build_application(
    routes: Iterable[Route],
    frontend: ApiFrontend,
    services: Services,
    metrics: Metrics | None = None,
    *,
    seconds: float = _REQUEST_SECONDS,
) -> web.Application:
    """Builds an application that serves `routes` below the prefix of a frontend.

    Args:
        routes: the route table.
        frontend: authenticates callers and formats errors.
        services: the dependencies of handlers.
        metrics: counts requests.
        seconds: maximum duration of a request; streams lift it.
    """
    metrics = metrics or Metrics()
    rooms = BodyRoom(), BodyRoom(UNSIGNED_BODIES, UNSIGNED_EACH)
    app = web.Application(middlewares=[_outermost(frontend, metrics), plain_bodies_only], logger=_log)
    for route in routes:
        app.router.add_route(
            route.method,
            frontend.prefix + route.path,
            partial(_serve, route=route, frontend=frontend, services=services, rooms=rooms, limit=seconds),
        )
    app.on_response_prepare.append(_headers)
    app.on_startup.append(partial(_know_routes, metrics))
    return app


async def _serve(
    request: web.Request, *, route: Route, frontend: ApiFrontend, services: Services, rooms: Rooms, limit: float
) -> web.StreamResponse:
    began = asyncio.timeout(limit)
    try:
        async with began:
            ask = await _checked(request, route, frontend, services, rooms, lambda: began.reschedule(None))
            answer = await route.handler(ask)
    except TimeoutError:
        if not began.expired():
            raise
        raise TimedOut(f"the request took longer than {limit:g} s; try again, or request less") from None
    if isinstance(answer, web.StreamResponse):
        return answer
    return web.Response(
        body=answer.model_dump_json(by_alias=True).encode(), status=route.status, content_type="application/json"
    )


async def _checked(
    request: web.Request,
    route: Route,
    frontend: ApiFrontend,
    services: Services,
    rooms: Rooms,
    untimed: Callable[[], None],
) -> CheckedRequest:
    caller = NOBODY
    if not route.public:
        caller = request[CALLER] = await frontend.caller(request)
        mark_signed_in(request)
    path = read_path(request.match_info)
    query = read_query(route.query, request.query)
    await authorize(route, caller, path, query, services)
    namespace, body = path.get("namespace", ""), None
    if route.body is not None:
        room, limit = (rooms[1], PUBLIC_BODY_BYTES) if route.public else (rooms[0], route.body_bytes)
        body = await read_body(route.body, request, room, group=namespace, limit=limit)
    uid = await services.namespaces.uid(namespace) if namespace and not route.public else ""
    return CheckedRequest(
        request,
        path,
        caller,
        uid,
        services,
        query,
        body,
        untimed,
        frontend.stream_seconds,
        partial(frontend.caller, request),
    )


def _outermost(frontend: ApiFrontend, metrics: Metrics) -> Middleware:
    """Converts errors to responses, counts requests, and writes the access log, without query parameters."""

    @web.middleware
    async def outermost(request: web.Request, handler: Handler) -> web.StreamResponse:
        began, status = time.monotonic(), "left"
        try:
            answer = await handler(request)
            status = str(answer.status)
            return answer
        except Exception as error:
            refusal = _refusal(error, request)
            status = str(refusal.status)
            if refusal.status == 500:
                _log.exception("%s %s failed", request.method, _path(request))
            if refusal.status in _REFUSALS:
                metrics.add(HTTP_REFUSALS, reason=_REFUSALS[refusal.status])
            answer = frontend.error(refusal)
            if refusal.status == 401:
                answer.force_close()  # without waiting for the rest of the body
            return answer
        finally:
            _count(metrics, request, status, time.monotonic() - began)
            caller = request.get(CALLER)
            about = {
                "frontend": frontend.name,
                "user": caller.username if caller else None,
                "milliseconds": round((time.monotonic() - began) * 1000),
            }
            probed = caller is None and status in ("200", "503")  # frequent probes
            level = logging.DEBUG if probed else logging.INFO
            access_log.log(level, "%s %s %s", request.method, _path(request), status, extra=about)

    return outermost


async def _know_routes(metrics: Metrics, app: web.Application) -> None:
    """Declares the routes to the metrics, including those that other modules have added."""
    metrics.know_routes(resource.canonical for resource in app.router.resources())


def _count(metrics: Metrics, request: web.Request, status: str, seconds: float) -> None:
    """Counts a request by the template of its route, never by its path."""
    resource = request.match_info.route.resource
    route = metrics.route(None if resource is None else resource.canonical)
    outcome = f"{status[0]}xx" if status.isdigit() else status
    metrics.add(HTTP_REQUESTS, route=route, method=request.method, status=outcome)
    metrics.observe(HTTP_SECONDS, seconds, route=route)


def _path(request: web.Request) -> str:
    """Returns the path for the log: still percent-encoded, so that it cannot forge a log line, and truncated."""
    return request.rel_url.raw_path[:_LOGGED_PATH]


def _refusal(error: Exception, request: web.Request) -> HttpError:
    match error:
        case web.HTTPNotFound():
            return NotFound("this path does not exist")
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            text = f"method {request.method} is not allowed for this path; allowed: {allowed}"
            return MethodNotAllowed(text, headers={"Allow": allowed})
        case web.HTTPUnsupportedMediaType():
            return UnsupportedMediaType(PACKED)
        case _:
            return as_http_error(error)


async def _headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        if name == "Server":
            response.headers[name] = value
        else:
            response.headers.setdefault(name, value)
