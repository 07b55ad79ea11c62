"""A library of runbooks for each test, and a desk for those that need controllers."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from aiohttp import web

from apis import LocalApi
from integration.controllers.desk import Desk
from integration.runbook.library import Library
from tarsy.kube.client import KubeClient


@pytest.fixture
def desk(kube: KubeClient, namespace: str, records: asyncpg.Pool, tarsy_api: LocalApi) -> Desk:
    """Controllers of a namespace of the test's own."""
    return Desk(kube, namespace, records, tarsy_api.kubeconfig)


@pytest.fixture
async def library() -> AsyncIterator[Library]:
    """A server on a free port of loopback."""
    made = Library()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        made.closing.set()
        await runner.cleanup()
