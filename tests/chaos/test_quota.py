"""Workers killed at random under a quota: spent and reserved never exceed it, and nothing stays reserved at the end."""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

import pytest

from chaos.fleet import Fleet
from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.once("the API takes no part in what is shown"),
]

SCRIPT = f"""
first_token_ms: 500
per_token_ms: 10
agents:
  agent:
    - text: I look at the disk of the node first, because that is what the alert says.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: It is full. I look at what is large, and at who writes there.
      calls: [{{name: tools.look, arguments: {{what: du}}}}]
    - text: {ANSWER}
"""
OUTPUT = 500
PLACES = "6"
_SUMS = """SELECT q.name, q.tokens, q.investigations AS hard, coalesce(u.spent_tokens, 0) AS spent,
    coalesce(u.reserved_tokens, 0) AS reserved, coalesce(u.investigations, 0) AS started
FROM quota q LEFT JOIN quota_usage u ON u.quota = q.uid AND u.share = 'all' WHERE q.namespace = $1"""


@dataclass
class Watcher:
    """Looks at the ledger all the time."""

    tenant: Tenant
    looks: int = 0
    wrong: list[str] = field(default_factory=list)
    most: int = 0

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            for row in await self.tenant.rows(_SUMS, self.tenant.namespace):
                self.looks += 1
                self.most = max(self.most, row["spent"] + row["reserved"])
                if row["tokens"] is not None and row["spent"] + row["reserved"] > row["tokens"]:
                    self.wrong.append(f"{row['name']}: {row['spent']} + {row['reserved']} > {row['tokens']}")
                if row["hard"] is not None and row["started"] > row["hard"]:
                    self.wrong.append(f"{row['name']}: {row['started']} started of {row['hard']}")
            await asyncio.sleep(0.02)


async def test_no_kill_makes_a_namespace_spend_more_than_its_quota(
    bare_tenant: Tenant, fleet: Fleet, full: bool
) -> None:
    tenant = bare_tenant
    count, kills, tokens = (60, 60, 150_000) if full else (12, 6, 40_000)
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    await tenant.use_model(SCRIPT)
    spec = (await tenant.get("model", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "model", {**spec, "maxOutputTokens": OUTPUT})
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    fleet.controller()
    await tenant.put("InvestigationQuota", "day", {"period": "Day", "hard": {"tokens": tokens}, "onExceeded": "Reject"})
    runs = {"period": "Day", "hard": {"investigations": count - 2}, "onExceeded": "Reject"}
    await tenant.put("InvestigationQuota", "runs", runs)
    for name in ("day", "runs"):
        await tenant.noticed("InvestigationQuota", name)
    workers = [fleet.worker("--places", PLACES) for _ in range(3)]
    for number in range(count):
        await tenant.investigate(f"run-{number}", alert={"alertType": "DiskFull", "data": f"node-{number:03}x: full"})
    watcher = Watcher(tenant)
    watching = asyncio.create_task(watcher.run())
    try:
        await tenant.asked()  # so at least one call is under way when all workers die
        await asyncio.gather(*(worker.kill() for worker in workers))
        workers = [fleet.worker("--places", PLACES) for _ in workers]
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 0.8))
            victim = chance.randrange(len(workers))
            await workers[victim].kill()
            workers[victim] = fleet.worker("--places", PLACES)
        ended = [await tenant.finished(f"run-{number}", seconds=300) for number in range(count)]
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    assert watcher.wrong == []

    async def settled() -> bool:
        return not await tenant.rows("SELECT FROM quota_reservation")

    await until("nothing is reserved", settled, 60)
    ledger = {row["name"]: row for row in await tenant.rows(_SUMS, tenant.namespace)}
    at_least = await tenant.rows(
        "SELECT coalesce(sum(c.input_tokens + c.output_tokens), 0) AS known, "
        "count(*) FILTER (WHERE c.input_tokens IS NULL) AS interrupted, "
        "coalesce(sum(c.worst_tokens) FILTER (WHERE c.input_tokens IS NULL), 0) AS lost, count(*) AS calls "
        "FROM llm_interaction c JOIN execution e ON e.id = c.execution JOIN stage s ON s.id = e.stage "
        "JOIN investigation i ON i.id = s.investigation WHERE i.namespace = $1",
        tenant.namespace,
    )
    sums = at_least[0]
    reasons = [condition(inv, "Succeeded", "reason") for inv in ended]
    stopped = [condition(inv, "BudgetExceeded", "reason") for inv in ended].count("Quota")
    print(
        f"kills {kills + len(workers)}, investigations {count}, rejected {reasons.count('QuotaExceeded')}, stopped "
        f"{stopped}, calls {sums['calls']}, interrupted {sums['interrupted']}, looks {watcher.looks}, "
        f"most {watcher.most} of {tokens}"
    )
    assert ledger["day"]["reserved"] == 0
    assert ledger["day"]["spent"] == sums["known"] + sums["lost"]
    assert reasons.count("QuotaExceeded") >= 2
    assert ledger["runs"]["started"] == count - reasons.count("QuotaExceeded")
    assert sums["interrupted"] > 0, "the kills hit nothing"
    assert watcher.looks > 20
