"""Handles signals, and serves the health of a long-running process.

The first SIGTERM or SIGINT drains the process, the second one stops it immediately.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from tarsy.app.settings.serving_topics import ObservabilitySettings
from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import plain_bodies_only

_log = logging.getLogger(__name__)


class Shutdown:
    """Shuts a process down: `drain` runs first, unless a second signal skips it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()
        self.drain: Callable[[], Awaitable[None]] | None = None

    def signal(self) -> None:
        """Handles SIGTERM or SIGINT."""
        (self.hurry if self.asked.is_set() else self.asked).set()

    async def over(self) -> None:
        """Returns when the process must end: after a signal and draining, or after a second signal."""
        await self.asked.wait()
        if self.drain is None:
            return
        _log.info(
            "stopping: waiting for investigations to finish their current step; a second signal stops immediately"
        )
        drained, hurried = asyncio.ensure_future(self.drain()), asyncio.create_task(self.hurry.wait())
        try:
            await asyncio.wait({drained, hurried}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (drained, hurried):
                task.cancel()
            await asyncio.wait({drained, hurried})
        if not drained.cancelled():
            drained.result()


async def until_stopped(main: Callable[[Shutdown], Awaitable[None]]) -> None:
    """Runs `main` until it ends or a signal cancels it. Raises the errors of `main`."""
    shutdown = Shutdown()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, shutdown.signal)
    work, over = asyncio.ensure_future(main(shutdown)), asyncio.create_task(shutdown.over())
    try:
        await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (over, work):
            task.cancel()
        await asyncio.wait({over, work})
    for task in (work, over):
        if not task.cancelled():
            task.result()


class ProcessReadiness:
    """Reports the readiness of this process to the probe."""

    def __init__(self) -> None:
        self._started = False
        self._checks: list[Callable[[], str | None]] = []

    def start(self) -> None:
        """Marks the process as started."""
        self._started = True

    def depend_on(self, check: Callable[[], str | None]) -> None:
        """Adds a check that returns why this process is not ready, or None."""
        self._checks.append(check)

    def why_not(self) -> str | None:
        """Returns why this process is not ready, or None."""
        if not self._started:
            return "starting"
        return next((why for check in self._checks if (why := check()) is not None), None)


@contextlib.asynccontextmanager
async def serve_health(
    settings: ObservabilitySettings,
    shutdown: Shutdown,
    why_not_ready: Callable[[], Awaitable[str | None]],
    why_dead: Callable[[], str | None] = lambda: None,
) -> AsyncIterator[None]:
    """Serves /healthz and /readyz while entered.

    Args:
        settings: the port.
        shutdown: makes the process unready after a signal.
        why_not_ready: returns why the process is not ready, or None.
        why_dead: returns why the process must be started anew, or None.
    """

    async def is_alive(_: web.Request) -> web.Response:
        why = why_dead()
        return web.Response(text="ok") if why is None else web.Response(text=why, status=503)

    async def is_ready(_: web.Request) -> web.Response:
        why = "stopping" if shutdown.asked.is_set() else await why_not_ready()
        return web.Response(text="ready") if why is None else web.Response(text=why, status=503)

    app = web.Application(middlewares=[plain_bodies_only])
    app.router.add_get("/healthz", is_alive)
    app.router.add_get("/readyz", is_ready)
    async with listen(app, settings.health_host, settings.health_port) as port:
        _log.info("health is served at http://%s:%d", settings.health_host, port)
        yield
