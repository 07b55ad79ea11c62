"""Takes Postgres, the API server or an operator away for a while: nothing is lost, nothing is done twice."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator

import asyncpg
import pytest

from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until

pytestmark = pytest.mark.timeout(600)
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
      gate: first
    - text: I write.
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: {ANSWER}
      gate: last
"""
OUTAGE_SECONDS = 10.0
READ_ONLY_SECONDS = 4.0
SHORT_LEASE_SECONDS = 2


@contextlib.asynccontextmanager
async def postgres_away(tenant: Tenant) -> AsyncIterator[None]:
    """Postgres is stopped inside, as by its administrator, and back at the same address after it."""
    postgres = tenant.machine.postgres
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGINT)

    async def gone() -> bool:
        return postgres.pid is None

    await until("Postgres is away", gone)
    try:
        yield
    finally:
        await asyncio.to_thread(postgres.restart)


@contextlib.asynccontextmanager
async def postgres_read_only(tenant: Tenant) -> AsyncIterator[None]:
    """As in a failover that is not over: inside, every server that answers takes reads only."""

    async def switch(to: str) -> None:
        connection = await asyncpg.connect(tenant.machine.postgres.dsn)
        try:
            await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {to}")
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    await switch("on")
    try:
        yield
    finally:
        await switch("off")


async def assert_done_once(tenant: Tenant, name: str = "run", *, seconds: float = 150.0) -> None:
    """The run succeeded, with each of its steps done once in the world as in the record."""
    inv = await tenant.finished(name, seconds=seconds)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["attempt"] == 1
    assert [request.turn for request in tenant.model.journal.requests] == [0, 1, 2]
    assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)
    assert (inv["status"]["usage"]["modelCalls"], inv["status"]["usage"]["toolCalls"]) == (3, 2)


async def test_postgres_away_when_the_operator_starts(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    model.open_gate("first")
    model.open_gate("last")
    await tenant.machine.stop_operator()
    await tenant.investigate()
    async with postgres_away(tenant):
        operator = await tenant.machine.operator()
        with pytest.raises(subprocess.TimeoutExpired):
            await operator.wait(5)
    await assert_done_once(tenant)


async def test_postgres_restarted_in_the_middle(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.asked(1)
    await asyncio.to_thread(tenant.machine.postgres.restart)
    model.open_gate("first")
    await tenant.asked(3)
    async with postgres_away(tenant):
        model.open_gate("last")
        await asyncio.sleep(3)
    await assert_done_once(tenant)


async def test_postgres_fails_over_in_the_middle(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.asked(1)
    async with postgres_read_only(tenant):
        model.open_gate("first")
        model.open_gate("last")
        await asyncio.sleep(READ_ONLY_SECONDS)
        assert tenant.tool_calls("look") == 0, "no effect without a record of it"
    await assert_done_once(tenant)


async def test_postgres_away_for_longer_than_a_lease_lasts(bare_tenant: Tenant) -> None:
    """As for minutes: the worker has lost its lease and what was under way, and takes the run up again."""
    tenant = bare_tenant
    await tenant.machine.operator("--lease-seconds", str(SHORT_LEASE_SECONDS))
    model = await tenant.simple(SCRIPT)
    model.open_gate("first")
    run = await tenant.investigate()
    await tenant.asked(3)
    async with postgres_away(tenant):
        await asyncio.sleep(3 * SHORT_LEASE_SECONDS)
    await tenant.asked(4)
    model.open_gate("last")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["attempt"] >= 2
    assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)
    record = await tenant.record(run)
    assert (record.model_calls, record.tool_calls) == (3, 2)
    assert record.interrupted_model_calls >= 1
    turns = [request.turn for request in tenant.model.journal.requests]
    assert (set(turns), len(turns)) == ({0, 1, 2}, 3 + record.interrupted_model_calls)


async def test_api_server_away_for_ten_seconds_in_the_middle(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.asked(1)
    api = tenant.machine.api
    await asyncio.to_thread(api.stop_apiserver)
    try:
        model.open_gate("first")
        model.open_gate("last")
        await tenant.asked(3)  # the run does not need it
        await asyncio.sleep(OUTAGE_SECONDS)
    finally:
        await asyncio.to_thread(api.start_apiserver)
    await assert_done_once(tenant)
    await tenant.use_chain(["agent"], name="later")
    await tenant.investigate("later", chain="later")
    assert condition(await tenant.finished("later"), "Succeeded") == "True", "watching goes on"


async def test_two_operators_at_once_do_everything_once(tenant: Tenant) -> None:
    second = tenant.machine.new_operator()
    try:
        model = await tenant.simple(SCRIPT, alertTypes=[tenant.namespace])
        model.open_gate("first")
        model.open_gate("last")
        await tenant.put("Alert", "twice", {"alertType": tenant.namespace, "data": "the disk is full"})
        await tenant.asked(3)
        (inv,) = await tenant.client.list("Investigation", tenant.namespace)
        await assert_done_once(tenant, inv["metadata"]["name"])
        events = await tenant.client.list("Event", tenant.namespace)
        told = [event["reason"] for event in events if event["involvedObject"]["kind"] == "Investigation"]
        assert sorted(told) == sorted(set(told))
    finally:
        await second.stop()


async def test_second_operator_takes_over_when_the_first_is_killed(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    model.open_gate("last")
    first = await tenant.machine.operator("--lease-seconds", "2")
    await tenant.investigate()
    await tenant.asked(1)
    second = tenant.machine.new_operator()
    try:
        first.kill()
        await first.wait(60)
        await tenant.asked(2)
        model.open_gate("first")
        inv = await tenant.finished()
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] >= 2
        assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)
    finally:
        await second.stop()
