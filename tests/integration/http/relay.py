"""Provides a host that passes requests on to the intake, as a Service does, and loses them where a test says so."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

PASSED = ("Authorization", "Content-Type")
"""Headers that go on to the intake."""


class Relay:
    """Whom Alertmanager sends to.

    Attributes:
        base: the intake that answers now.
        up: whether requests reach it; else their connection is closed.
        dies_next: the next request reaches the intake, whose answer is lost; then nothing is up.
        turned_away: how many requests found nothing.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.up, self.dies_next = True, False
        self.turned_away = 0

    async def take(self, request: web.Request) -> web.Response:
        content = await request.read()
        if not self.up:
            self.turned_away += 1
            return self._cut(request)
        headers = {name: request.headers[name] for name in PASSED if name in request.headers}
        dies, self.dies_next = self.dies_next, False
        self.up = self.up and not dies
        async with aiohttp.ClientSession() as session:
            async with session.post(self.base + request.path_qs, data=content, headers=headers) as answer:
                body = await answer.read()
        if dies:
            return self._cut(request)
        return web.Response(status=answer.status, body=body, content_type=answer.content_type)

    @staticmethod
    def _cut(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@contextlib.asynccontextmanager
async def open_relay(base: str) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to an intake, and its own address."""
    relay = Relay(base)
    app = web.Application()
    app.router.add_post("/{path:.*}", relay.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield relay, f"http://{host}:{port}"
    finally:
        await runner.cleanup()
