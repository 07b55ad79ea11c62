"""What integration tests stand on: a real Kubernetes API server and a real Postgres, one of each a test process.

Tests keep out of each other's way by namespace and by database. Both servers are started by the first test that asks.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tarsy.kube.client import KubeClient
from tarsy.local.apiserver.server import ApiServer
from tarsy.local.objects import install_crds
from tarsy.local.postgres import LocalPostgres
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate

TEMPLATE = "tarsy_migrated"


@pytest.fixture(scope="session")
def kube_api() -> Iterator[ApiServer]:
    """The API server; use `tarsy_api` where the kinds of this project are needed."""
    with ApiServer() as server:
        yield server


@pytest.fixture(scope="session")
def tarsy_api(kube_api: ApiServer) -> ApiServer:
    """The API server with this project's CRDs."""

    async def install() -> None:
        async with await KubeClient.load(kube_api.kubeconfig) as client:
            await install_crds(client)

    asyncio.run(install())
    return kube_api


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A Postgres with a migrated database that others are copied from."""
    with LocalPostgres(fsync=False) as server:
        asyncio.run(_template(server.dsn))
        yield server


@pytest.fixture
async def kube(tarsy_api: ApiServer) -> AsyncIterator[KubeClient]:
    """A client that may do everything."""
    async with await KubeClient.load(tarsy_api.kubeconfig) as client:
        yield client


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
async def database_url(postgres: LocalPostgres) -> str:
    """A database of the test's own."""
    name = f"test_{uuid.uuid4().hex}"
    await _execute(postgres.dsn, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    return _database(postgres.dsn, name)


@pytest.fixture
async def records(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    """A pool for that database."""
    pool = await open_pool(database_url, max_size=10)
    yield pool
    pool.terminate()


async def _template(dsn: str) -> None:
    if not await _fetch(dsn, "SELECT true FROM pg_database WHERE datname = $1", TEMPLATE):
        await _execute(dsn, f"CREATE DATABASE {TEMPLATE}")
    pool = await open_pool(_database(dsn, TEMPLATE), max_size=1)
    await migrate(pool)
    await pool.close()


def _database(dsn: str, name: str) -> str:
    return dsn.rsplit("/", 1)[0] + f"/{name}"


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _fetch(dsn: str, query: str, *args: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query, *args)
    finally:
        await connection.close()
