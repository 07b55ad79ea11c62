"""Workers killed at random: what the scripted model billed is on record or was interrupted, to the token."""

import asyncio
import random

import pytest

from chaos.exactness import assert_record_is_whole
from chaos.fleet import Fleet
from chaos.ledger import settle
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy_dev.model.journal import RequestOutcome

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.once("the API takes no part in what is shown"),
]

SCRIPT = f"""
first_token_ms: 100
per_token_ms: 20
agents:
  agent:
    - text: I look at the disk of the node first, because that is what the alert says.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: It is full. I look at what is large, and at who writes there.
      calls:
        - {{name: tools.look, arguments: {{what: du}}}}
        - {{name: tools.look, arguments: {{what: logs}}}}
    - text: One more look at the pods of the node and their volumes.
      calls: [{{name: tools.look, arguments: {{what: pods}}}}]
    - text: {ANSWER}
"""
TURNS = 4
PLACES = "6"


async def test_every_token_that_was_billed_is_on_record_or_of_an_interrupted_call(
    bare_tenant: Tenant, fleet: Fleet, full: bool
) -> None:
    tenant = bare_tenant
    count, kills = (60, 60) if full else (10, 6)
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    await tenant.use_model(SCRIPT)
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    fleet.controller()
    workers = [fleet.worker("--places", PLACES) for _ in range(2)]
    runs = {}
    for number in range(count):
        marker = f"node-{number:03}x"
        alert = {"alertType": "DiskFull", "data": f"{marker}: the disk is full"}
        runs[marker] = await tenant.investigate(f"run-{number}", alert=alert)
    killed = 0
    while killed < kills and await until("something is under way, or over", lambda: what_is(tenant, count)) != "over":
        await asyncio.sleep(chance.uniform(0.05, 0.5))
        victim = chance.randrange(len(workers))
        await workers[victim].kill()
        workers[victim] = fleet.worker("--places", PLACES)
        killed += 1
    exact = 0
    for number, identity in enumerate(runs.values()):
        inv = await tenant.finished(f"run-{number}", seconds=300)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        exact += inv["status"]["finding"]["summary"] == SUMMARY
        assert inv["status"]["usage"]["modelCalls"] == TURNS
        await assert_record_is_whole(tenant, identity, agents=())
    account = await settle(tenant, runs)
    print(f"kills {killed}, investigations {count}, exact answers {exact}; {account}")
    assert account.interrupted_calls > 0, "the kills hit nothing"
    assert account.wrong == []
    assert account.billed == account.recorded + account.interrupted
    assert exact == count


async def what_is(tenant: Tenant, count: int) -> str:
    """Whether the model is being asked, or all has ended."""
    if any(request.outcome is RequestOutcome.PENDING for request in tenant.model.journal.requests):
        return "under way"
    ended = "SELECT count(*) FROM investigation WHERE namespace = $1 AND state = 'completed'"
    return "over" if (await tenant.rows(ended, tenant.namespace))[0]["count"] == count else ""
