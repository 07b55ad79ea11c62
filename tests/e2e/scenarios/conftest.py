"""A scene for each scenario, on the APIs and the Postgres that the integration tests have."""

import asyncpg
import pytest

from e2e.scenarios.scene import Scene
from integration import conftest as stands
from tarsy.kube.client import KubeClient

apis, kube_api, tarsy_api = stands.apis, stands.kube_api, stands.tarsy_api
kube, namespace = stands.kube, stands.namespace
postgres, databases = stands.postgres, stands.databases
database_url, records = stands.database_url, stands.records


@pytest.fixture
async def scene(
    kube: KubeClient, namespace: str, records: asyncpg.Pool, database_url: str, request: pytest.FixtureRequest
) -> Scene:
    """A scene of the scenario's own."""
    return Scene(kube, namespace, records, database_url, request)
