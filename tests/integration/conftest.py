"""What integration tests stand on: a Kubernetes API (of the kind `--api` says) and a real Postgres, one a test process.

Tests keep out of each other's way by namespace and by database. Both servers are started by the first test that asks.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from apis import START_SECONDS, ApiKind, Apis, LocalApi, configuration_of
from integration.databases import SETTINGS, Databases, data_folder, hash_once, make_template
from tarsy.kube.client import KubeClient
from tarsy.store.database import open_pool
from tarsy_dev.postgres import LocalPostgres


@pytest.fixture(scope="session")
def apis() -> Iterator[Apis]:
    """The Kubernetes APIs of this process."""
    with contextlib.ExitStack() as stack:
        yield Apis(stack)


@pytest.fixture(scope="session")
def kube_api(apis: Apis, api_kind: ApiKind) -> LocalApi:
    """The Kubernetes API; use `tarsy_api` where the kinds of this project are needed."""
    return apis.get(api_kind)


@pytest.fixture(scope="session")
def tarsy_api(apis: Apis, api_kind: ApiKind) -> LocalApi:
    """The Kubernetes API with this project's CRDs."""
    return apis.with_crds(api_kind)


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A Postgres with a migrated database that others are copied from."""
    with (
        data_folder() as folder,
        LocalPostgres(folder, fsync=False, settings=SETTINGS, start_timeout=START_SECONDS) as server,
    ):
        if server.pid is not None:  # it is ours
            asyncio.run(hash_once(server.dsn))
        asyncio.run(make_template(server.dsn))
        yield server


@pytest.fixture(scope="session")
def databases(postgres: LocalPostgres) -> Databases:
    """The databases of this process."""
    return Databases(postgres.dsn)


@pytest.fixture
async def kube(tarsy_api: LocalApi) -> AsyncIterator[KubeClient]:
    """A client that may do everything."""
    async with KubeClient(await configuration_of(tarsy_api.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
async def database_url(databases: Databases) -> AsyncIterator[str]:
    """A database of the test's own."""
    url = await databases.take()
    yield url
    await databases.give_back(url)


@pytest.fixture
async def records(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    """A pool for that database."""
    pool = await open_pool(database_url, max_size=10)
    yield pool
    pool.terminate()
