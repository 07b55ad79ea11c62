"""Serves the liveness and readiness probes of the HTTP server, without authentication.

Decision: the responses contain neither versions nor names, because every client that reaches the port may read them.
"""

import asyncio
from collections.abc import Callable

import asyncpg
from aiohttp import web

from tarsy.http.review_cache import ReviewCache

POSTGRES_SECONDS = 2.0
REMEMBERED_SECONDS = 1.0


def add_health(app: web.Application, pool: asyncpg.Pool, serving: Callable[[], bool]) -> None:
    """Serves `/health` and `/ready`.

    Args:
        app: the application of the direct port.
        pool: connections to Postgres.
        serving: returns whether all ports of this process accept requests.
    """
    answers: ReviewCache[str, bool] = ReviewCache(lambda _: REMEMBERED_SECONDS, size=1)

    async def reachable() -> bool:
        try:
            async with asyncio.timeout(POSTGRES_SECONDS):
                return bool(await pool.fetchval("select true"))
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def ready(_: web.Request) -> web.Response:
        if serving() and await answers.get("postgres", reachable):
            return web.json_response({"status": "ready"})
        return web.json_response({"status": "unready"}, status=503, headers={"Retry-After": "2"})

    app.router.add_get("/health", health)
    app.router.add_get("/ready", ready)
