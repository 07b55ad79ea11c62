"""Whether this process lives and serves, for load balancers; nobody has to say who they are.

Decision: two words, no versions, no names: whoever can reach the port may read this.
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
        app: of the direct door.
        pool: of the record.
        serving: whether this process takes requests at all its doors.
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
