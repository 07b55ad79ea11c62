"""Tests tool servers that send compressed responses although the client accepts none."""

import gzip

import pytest
from aiohttp import web

from integration.mcp.servers import http, resolve
from tarsy.mcp.http_failures import LARGEST_ANSWER
from tarsy.mcp.toolbox import McpToolboxes


@pytest.mark.parametrize(
    ("kind", "before", "told"),
    [("application/json", b"", "larger than 64 MiB"), ("text/event-stream", b"data: ", "exceed")],
)
async def test_a_compressed_bomb_is_refused_before_it_is_whole(kind: str, before: bytes, told: str) -> None:
    bomb = gzip.compress(before + b"\x20" * (LARGEST_ANSWER + 1024 * 1024), 1)
    assert len(bomb) < 2 * 1024 * 1024
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers["accept-encoding"])
        return web.Response(body=bomb, headers={"content-type": kind, "content-encoding": "gzip"})

    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with McpToolboxes(resolve, mask=str).open([http(f"http://127.0.0.1:{port}/mcp")]) as box:
            assert told in box.unavailable["web"]
    finally:
        await runner.cleanup()
    assert set(asked) == {"identity"}
