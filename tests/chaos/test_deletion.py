"""SIGKILL while an Investigation is deleted: of controllers that shall stop its run, and of its worker that does."""

import json
from collections.abc import AsyncIterator
from itertools import count

import asyncpg
import pytest
import yaml

from chaos.exactness import assert_record_is_whole
from chaos.fleet import Fleet, Member
from chaos.points import Gate, Points
from e2e.tenant import ANSWER, Tenant
from e2e.waiting import until
from tarsy.record.run import State
from tarsy_dev.objects import put

pytestmark = pytest.mark.timeout(900)
DELETED = "deleted"
NEVER = dict.fromkeys(("firstTokenSeconds", "stallSeconds", "modelCallSeconds", "iterationSeconds"), 3600)
"""Limits of the call that hangs: it is interrupted, however slow the machine is, and is not made again."""
SCRIPT = {
    "agents": {
        DELETED: [
            {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": "df"}}]},
            {"text": json.loads(ANSWER), "gate": "never"},
        ]
    }
}


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install((DELETED,))
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


async def test_kill_while_an_investigation_is_deleted_stops_its_run_once_and_keeps_its_record(
    bare_tenant: Tenant, points: Points, fleet: Fleet
) -> None:
    tenant, kills, leases = bare_tenant, 0, count()
    await tenant.use_model(yaml.safe_dump(SCRIPT))
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent(DELETED, "tools")
    await tenant.use_chain([DELETED], name=DELETED, timeouts=NEVER)

    async def controller() -> Member:
        """One that need not wait for the Lease of the one before."""
        name = f"{tenant.namespace}-{next(leases)}"
        await put(tenant.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return fleet.controller("--lease-namespace", name)

    async def kill_at(gate: Gate, member: Member, *, commit: bool) -> None:
        nonlocal kills
        await until(f"{gate.name} is reached", lambda: points.waiting(DELETED, gate), 300)
        await member.kill()
        await points.let_go(DELETED, gate, commit=commit)
        kills += 1

    controlling, worker = await controller(), await fleet.successor()
    run = await tenant.investigate("mine", chain=DELETED)
    await tenant.asked(2)
    await points.close(DELETED, Gate.OBJECT_GONE)
    await tenant.client.delete("Investigation", tenant.namespace, "mine")
    await kill_at(Gate.OBJECT_GONE, controlling, commit=False)
    await points.close(DELETED, Gate.CANCEL_WISHED)
    await kill_at(Gate.CANCEL_WISHED, await controller(), commit=False)
    await points.close(DELETED, Gate.CANCEL_WISHED)
    await points.close(DELETED, Gate.END)
    await kill_at(Gate.CANCEL_WISHED, await controller(), commit=True)
    await kill_at(Gate.END, worker, commit=False)
    await controller()
    await fleet.successor()

    async def ended() -> bool:
        found = await tenant.record(run)
        return found.state.finished

    await until("the run has ended", ended)
    record = await tenant.record(run)
    told = [event.metadata.get("reason") for event in await tenant.reads.timeline(run)]
    print(f"\nkills {kills}, model calls {len(tenant.model.journal.requests)}, attempts {record.attempt}")
    assert record.state is State.CANCELLED
    assert record.attempt <= 2, "the sweep of the controller may come before another worker"
    assert (record.model_calls, record.interrupted_model_calls, record.tool_calls) == (1, 1, 1)
    assert [told.count(reason) for reason in ("CancelRequested", "Cancelled")] == [1, 1]
    assert (len(tenant.model.journal.requests), tenant.tool_calls("look")) == (2, 1)
    assert await tenant.client.find("Investigation", tenant.namespace, "mine") is None
    assert run not in {found.id for found in await tenant.reads.unpublished(100)}
    assert await tenant.rows("SELECT FROM lease WHERE investigation = $1", run) == []
    await assert_record_is_whole(tenant, run)
