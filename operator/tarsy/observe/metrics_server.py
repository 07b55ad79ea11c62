"""Where Prometheus reads the metrics of a process: a port of its own, and nothing else there.

Decision: nobody is asked who they are, because Prometheus seldom can say. So the port is on loopback unless somebody
says otherwise, and a NetworkPolicy guards it in a cluster; what can be read there are numbers under names that this
project declares, never a word of an alert.
"""

import contextlib
import logging
from collections.abc import AsyncIterator

from aiohttp import web

from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import plain_bodies_only
from tarsy.observe.metrics import Metrics

_log = logging.getLogger(__name__)
_PATH = "/metrics"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextlib.asynccontextmanager
async def serve_metrics(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serves them while it is entered, and yields the port.

    Args:
        metrics: of the process.
        host: address to listen on.
        port: 0: a free one.

    Raises:
        OSError: the port is taken.
    """

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=await metrics.text(), headers={"Content-Type": _TYPE, "Cache-Control": "no-store"})

    app = web.Application(middlewares=[plain_bodies_only])
    app.router.add_route("GET", _PATH, answer)
    async with listen(app, host, port) as bound:
        _log.info("metrics are served at http://%s:%d%s", host, bound, _PATH)
        yield bound
