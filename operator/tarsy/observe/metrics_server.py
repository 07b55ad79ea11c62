"""Serves the metrics of a process or a pod to Prometheus, on a port of their own.

Decision: requests are not authenticated, because Prometheus is rarely configured for it. So the port binds to loopback
by default, and a NetworkPolicy protects it in a cluster; it serves numbers under declared names, never text of alerts.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import plain_bodies_only

_log = logging.getLogger(__name__)
_PATH = "/metrics"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextlib.asynccontextmanager
async def serve_metrics(text: Callable[[], Awaitable[bytes]], host: str, port: int) -> AsyncIterator[int]:
    """Serves the metrics while entered, and yields the port.

    Args:
        text: formats the metrics.
        host: address to listen on.
        port: port to listen on; 0: any free port.

    Raises:
        OSError: the port is in use.
    """

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=await text(), headers={"Content-Type": _TYPE, "Cache-Control": "no-store"})

    app = web.Application(middlewares=[plain_bodies_only])
    app.router.add_route("GET", _PATH, answer)
    async with listen(app, host, port) as bound:
        _log.info("metrics are served at http://%s:%d%s", host, bound, _PATH)
        yield bound
