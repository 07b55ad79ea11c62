"""The HTTP API alone, for whom a fake Kubernetes API allows everything: `python live_server.py DSN PORT`."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from aiohttp import web

from tarsy.http.application import build_application
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.live.hub import CHANNELS, FollowLimits, Hub
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.services import Services
from tarsy.http.table import all_routes
from tarsy.store.database import open_pool
from tarsy.store.reading.reads import Reads
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier
from unit.http.api import FakeKube


async def main(dsn: str, port: int) -> None:
    """Serves until it is killed."""
    pool, kube = await open_pool(dsn, max_size=8), FakeKube({"ann": {"username": "ann"}})
    hub = Hub(pool, Listener(dsn, CHANNELS), Notifier(pool), limits=FollowLimits(of_one=5_000, of_all=5_000))
    services = Services(pool, Reads(pool), kube, kube, AccessReviews(kube), NamespaceReader(kube), live=hub)  # type: ignore[arg-type]
    runner = web.AppRunner(build_application(all_routes(), BearerFrontend(kube), services), access_log=None)  # type: ignore[arg-type]
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await hub.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
