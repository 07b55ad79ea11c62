"""A worker as a process of its own: it runs what an operator accepted. How it drains: `chaos/test_drain.py`."""

import asyncio

import pytest

from e2e.tenant import ANSWER, Tenant, condition

pytestmark = pytest.mark.timeout(600)
SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"


async def test_an_operator_without_places_leaves_its_runs_to_workers(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    await tenant.machine.operator("--places", "0")
    await tenant.investigate()
    await tenant.phase("Queued")
    await asyncio.sleep(3)  # longer than an idle worker takes to look again
    assert condition(await tenant.get(), "Accepted") == "True"
    assert model.journal.requests == []
    worker = tenant.machine.new_worker()
    try:
        inv = await tenant.finished()
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] == 1
        worker.terminate()
        assert await worker.wait(60) == 0
    finally:
        await worker.stop()
