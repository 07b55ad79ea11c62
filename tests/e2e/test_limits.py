"""Limits on runs at once are exact: from the record's own times, never more than allowed, and as many as allowed."""

from uuid import UUID

from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}, gate: door}}]}}"
RUNS = 8


async def most_at_once(tenant: Tenant, identities: list[UUID]) -> int:
    """The most runs that were in progress at one time, by the record."""
    rows = await tenant.rows("SELECT started_at, finished_at FROM investigation WHERE id = ANY($1::uuid[])", identities)
    edges = sorted([(row["started_at"], 1) for row in rows] + [(row["finished_at"], -1) for row in rows])
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most


async def run_many(tenant: Tenant, chains: list[str], *, together: int) -> list[UUID]:
    """All runs, to their end; none ends before so many are under way."""
    identities = [await tenant.investigate(f"run-{i}", chain=chains[i % len(chains)]) for i in range(RUNS)]
    await tenant.asked(together)
    tenant.model.open_gate("door")
    for i in range(RUNS):
        inv = await tenant.finished(f"run-{i}")
        assert condition(inv, "Succeeded") == "True", inv["status"]
    return identities


async def test_chain_limit_is_exact_and_does_not_bind_other_chains(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, maxConcurrent=2)
    await tenant.use_chain(["agent"], name="other")
    identities = await run_many(tenant, ["chain", "other"], together=2 + 3)
    assert await most_at_once(tenant, identities[0::2]) == 2
    assert await most_at_once(tenant, identities[1::2]) > 2


async def test_namespace_limit_is_exact_over_all_its_chains(tenant: Tenant) -> None:
    await tenant.put("InvestigationDefaults", "default", {"maxConcurrent": 3})

    async def seen() -> object:
        return (await tenant.get("default", "InvestigationDefaults")).get("status")

    await until("the operator has seen the limit", seen, 60)  # a plan made before would have none
    await tenant.simple(SCRIPT)
    await tenant.use_chain(["agent"], name="other")
    assert await most_at_once(tenant, await run_many(tenant, ["chain", "other"], together=3)) == 3


async def test_global_limit_is_exact_over_two_operators(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    await tenant.simple(SCRIPT)
    arguments = ("--global-limit", "2")
    await tenant.machine.operator(*arguments)
    second = tenant.machine.new_operator(*arguments)
    try:
        assert await most_at_once(tenant, await run_many(tenant, ["chain"], together=2)) == 2
    finally:
        await second.stop()
