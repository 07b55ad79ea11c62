"""Postgres restarted again and again under many investigations: exact answers, one row a step."""

import asyncio
import os
import random
import signal
import time

import pytest

from chaos.exactness import assert_record_is_whole
from chaos.fleet import Fleet
from chaos.ledger import settle
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.once("the API takes no part in what is shown"),
]

SCRIPT = f"""
first_token_ms: 200
per_token_ms: PACE
agents:
  agent:
    - text: I look at the disk of the node first, because that is what the alert says.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: It is full. I write down who writes there.
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: {ANSWER}
"""
TURNS, CALLS = 3, 2


async def test_postgres_restarted_under_load_loses_and_repeats_nothing(
    bare_tenant: Tenant, fleet: Fleet, full: bool
) -> None:
    tenant = bare_tenant
    count, pause, pace = (200, (5.0, 20.0), 800) if full else (16, (0.7, 2.0), 50)
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    await tenant.use_model(SCRIPT.replace("PACE", str(pace)))
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    fleet.start("run", "--places", str(count // 4), *LONG_LEASE)
    runs = {}
    for number in range(count):
        marker = f"node-{number:03}x"
        alert = {"alertType": "DiskFull", "data": f"{marker}: the disk is full"}
        runs[marker] = await tenant.investigate(f"run-{number}", alert=alert)
    away, restarts = 0.0, 0
    while len(tenant.model.journal.requests) < count * TURNS:  # each of them begins before the last turn
        await asyncio.sleep(chance.uniform(*pause))
        before = len(tenant.model.journal.requests)
        away += await restart_postgres(tenant, crash=chance.random() < 0.5)
        restarts += 1
        if before < count * TURNS:
            await tenant.asked(before + 1)  # however slow the machine is, it gets on
    exact, rows = 0, 0
    for number, identity in enumerate(runs.values()):
        inv = await tenant.finished(f"run-{number}", seconds=600 if full else 300)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        exact += inv["status"]["finding"]["summary"] == SUMMARY
        assert inv["status"]["attempt"] == 1
        steps = [*await tenant.model_calls(identity), *await tenant.mcp_calls(identity)]
        assert {row["state"] for row in steps} == {"completed"}
        rows += len(steps)
        await assert_record_is_whole(tenant, identity, agents=())
    account = await settle(tenant, runs)
    assert account.interrupted_calls == 0
    done = (tenant.tool_calls("look"), tenant.tool_calls("write"))
    print(
        f"restarts {restarts} (away {away:.1f} s), investigations {count}, exact answers {exact}, steps "
        f"{count * (TURNS + CALLS)}, rows of steps {rows}, asked {len(tenant.model.journal.requests)} times; {account}"
    )
    assert restarts > 3, "there was no time for it"
    assert (exact, rows) == (count, count * (TURNS + CALLS))
    assert (account.wrong, done) == ([], (count, count))


async def restart_postgres(tenant: Tenant, *, crash: bool) -> float:
    """Ends Postgres in order or at once, and starts it again; for how many seconds it was away."""
    postgres, began = tenant.machine.postgres, time.monotonic()
    if crash:
        assert postgres.pid is not None
        os.kill(postgres.pid, signal.SIGQUIT)

        async def gone() -> bool:
            return postgres.pid is None

        await until("Postgres is away", gone)
    await asyncio.to_thread(postgres.restart)
    return time.monotonic() - began
