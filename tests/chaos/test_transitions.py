"""Kills the controller between the status of an object and the record of its change: it is recorded, once."""

from itertools import pairwise

import asyncpg
import pytest

from chaos.fleet import Fleet
from e2e.tenant import Tenant, condition
from e2e.waiting import until
from tarsy.store.history.condition_transitions import TRANSITION_LOCK, ConditionTransitions
from tarsy_dev.objects import put

pytestmark = pytest.mark.timeout(300)
WAITS = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = $2 AND NOT granted)"
)


async def test_a_controller_killed_between_status_and_record_leaves_the_change_to_its_successor(
    bare_tenant: Tenant, fleet: Fleet
) -> None:
    tenant, store = bare_tenant, ConditionTransitions(bare_tenant.pool)
    uid = (await tenant.client.get("Namespace", None, tenant.namespace))["metadata"]["uid"]

    async def statuses() -> list[str]:
        found = await store.page(["Agent"], 100, namespace_uids=[uid])
        return [one.status for one in reversed(found) if one.type == "Ready"]

    async def not_ready() -> bool:
        return (await statuses())[-1:] == ["False"]

    async def all_of_it() -> bool:
        return (await statuses())[-1:] == ["True"]

    async def ready() -> bool:
        return condition(await tenant.get("agent", "Agent"), "Ready") == "True"

    async def stands_still(there: asyncpg.Connection) -> bool:
        return bool(await there.fetchval(WAITS, TRANSITION_LOCK >> 32, TRANSITION_LOCK & 0xFFFFFFFF))

    for name in ("transitions-a", "transitions-b"):
        await put(tenant.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await tenant.use_agent("agent", "tools")  # there is no such server yet
    first = fleet.controller("--lease-namespace", "transitions-a")
    await until("the first change is recorded", not_ready)
    async with tenant.pool.acquire() as holder:
        await holder.execute("SELECT pg_advisory_lock($1)", TRANSITION_LOCK)
        try:
            await tenant.use_tools()
            await until("the status is written", ready)
            await until("the record waits", lambda: stands_still(holder))
            await first.kill()
        finally:
            await holder.execute("SELECT pg_advisory_unlock($1)", TRANSITION_LOCK)
    fleet.controller("--lease-namespace", "transitions-b")
    await until("its successor has recorded it", all_of_it)
    found = await statuses()
    assert found.count("True") == 1 and all(one != after for one, after in pairwise(found)), found
