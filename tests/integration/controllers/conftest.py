"""Gives each test a namespace on the API server and a database on the real Postgres."""

import asyncpg
import pytest

from apis import LocalApi
from integration.controllers.desk import Desk
from tarsy.kube.client import KubeClient


@pytest.fixture
async def desk(tarsy_api: LocalApi, kube: KubeClient, namespace: str, records: asyncpg.Pool) -> Desk:
    return Desk(kube, namespace, records, tarsy_api.kubeconfig)
