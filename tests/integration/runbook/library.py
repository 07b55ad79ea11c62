"""Hosts of runbooks for tests: one server on loopback, reached under any name that the resolver knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tarsy.outbound.address_check import Found


class Library:
    """A web server of runbooks; notes host, path and token of each request."""

    def __init__(self) -> None:
        self.pages: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {}
        self.asked: list[tuple[str, str, str | None]] = []
        self.port = 0
        self.closing = asyncio.Event()

    def put(self, path: str, text: str | bytes, **rest: Any) -> None:
        """A page with a text."""

        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(body=text.encode() if isinstance(text, str) else text, **rest)

        self.pages[path] = answer

    def silent(self, path: str) -> None:
        """A page that does not answer before the library closes."""

        async def answer(_: web.Request) -> web.StreamResponse:
            await self.closing.wait()
            return web.Response(status=503)

        self.pages[path] = answer

    def redirect(self, path: str, location: str) -> None:
        """A page that leads elsewhere."""
        self.put(path, "", status=302, headers={"Location": location})

    def url(self, path: str, host: str = "wiki.test") -> str:
        """The URL of a page, under the name of a host."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answers one request."""
        host = request.host.rsplit(":", 1)[0]
        self.asked.append((host, request.path, request.headers.get("Authorization")))
        page = self.pages.get(request.path)
        return web.Response(status=404, text="secret of the server") if page is None else await page(request)


class Names:
    """Gives each name its addresses, one list a question, the last again and again (`Resolve`)."""

    def __init__(self, **names: list[str]) -> None:
        self.names = {name.replace("_", "."): list(addresses) for name, addresses in names.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Found:
        self.asked.append(name)
        addresses = self.names.get(name, ["127.0.0.1"])
        return Found((addresses.pop(0) if len(addresses) > 1 else addresses[0],))
