"""The machine of a session, and a tenant for each test."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from apis import ApiKind
from e2e.machine import Machine, running_machine
from e2e.tenant import Tenant
from tarsy.kube.client import KubeClient
from tarsy.store.database import open_pool
from tarsy_dev.objects import put


@pytest.fixture(scope="session")
def machine(api_kind: ApiKind) -> Iterator[Machine]:
    """The machine of all tests on this kind of Kubernetes API."""
    with running_machine(api_kind) as machine:
        yield machine


@pytest.fixture
async def bare_tenant(machine: Machine, tmp_path: Path) -> AsyncIterator[Tenant]:
    """A tenant on a machine whose operator the test starts and stops by itself."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    async with await KubeClient.load(machine.api.kubeconfig) as client:
        await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        pool = await open_pool(machine.postgres.dsn, min_size=0, max_size=4, application="tarsy e2e tests")
        try:
            tenant = Tenant(machine, name, client, pool, tmp_path)
            yield tenant
            await tenant.leave()
        finally:
            for model in tenant.models:
                await model.stop()
            pool.terminate()


@pytest.fixture
async def tenant(bare_tenant: Tenant) -> Tenant:
    """A tenant on a machine whose operator is running."""
    await bare_tenant.machine.operator()
    return bare_tenant
