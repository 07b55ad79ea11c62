"""SIGKILL of a worker between a cheap finding and the first call of the second attempt, and in the midst of that."""

import json
from collections.abc import AsyncIterator

import asyncpg
import pytest
import yaml

from chaos.fleet import Fleet
from chaos.points import Gate, Points
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy.store.sealing.sealed_record import SealedRecord

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.once("the API takes no part in what is shown"),
]

CHAINS = {"lost": False, "kept": True}
"""Whether the write that a killed worker stood in was committed."""


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install(tuple(CHAINS))
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


def script() -> str:
    """Both models look at the same part, and conclude."""
    look = {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": "df"}}]}
    return yaml.safe_dump({"agents": {chain: [look, {"text": json.loads(ANSWER)}] for chain in CHAINS}})


async def test_no_kill_repeats_the_first_attempt_a_tool_call_or_the_escalation(
    bare_tenant: Tenant, points: Points, fleet: Fleet
) -> None:
    tenant = bare_tenant
    cheap, dear = await tenant.use_model(script()), await tenant.use_model(script(), name="dear")
    await tenant.use_tools(tools={"readOnly": ["look"]}, summarization={"enabled": False})
    for chain in CHAINS:
        await tenant.use_agent(chain, "tools")
        stage = {"name": "look", "agents": [{"name": chain}], "escalate": {"when": "true", "to": "dear"}}
        await tenant.use_chain(name=chain, stages=[stage])
    fleet.controller()

    async def all_stand_at(gate: Gate) -> None:
        for chain in CHAINS:
            await until(f"{chain} stands at {gate}", lambda c=chain: points.waiting(c, gate))  # type: ignore[misc]

    async def let_go(gate: Gate, following: Gate | None, *, alive: bool = False) -> None:
        for chain, kept in CHAINS.items():
            if following is not None:
                await points.close(chain, following)
            await points.let_go(chain, gate, commit=alive or kept)

    for chain in CHAINS:
        await points.close(chain, Gate.MODEL_CALL_FINISHED)
    worker = await fleet.successor()
    runs = {chain: await tenant.investigate(chain, chain=chain) for chain in CHAINS}
    await all_stand_at(Gate.MODEL_CALL_FINISHED)  # the first stage has begun
    await let_go(Gate.MODEL_CALL_FINISHED, Gate.BEGIN, alive=True)
    await all_stand_at(Gate.BEGIN)  # of the second attempt: the finding of the first is there
    assert dear.journal.requests == []
    await worker.kill()
    await let_go(Gate.BEGIN, Gate.TOOL_CALL_STARTED)
    worker = await fleet.successor()
    await all_stand_at(Gate.TOOL_CALL_STARTED)
    await worker.kill()
    await let_go(Gate.TOOL_CALL_STARTED, None)
    await fleet.successor()

    for chain, identity in runs.items():
        inv = await tenant.finished(chain)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert (inv["status"]["attempt"], inv["status"]["finding"]["summary"]) == (3, SUMMARY)
        record = await tenant.record(identity)
        assert [one.name for one in record.stages][:2] == ["look", "look-escalated"]
        assert len({one.name for one in record.stages}) == len(record.stages)
        first = [one for one in cheap.journal.requests if one.agent == chain]
        assert sorted(one.turn for one in first) == [0, 1], "the first attempt was asked again"
        assert [report.flaws for report in await SealedRecord(tenant.pool).check(identity)] == [[]]
        calls = [row for row in await tenant.mcp_calls(identity) if row["result"] is not None]
        assert [row["rung"] for row in calls] == [None, "exact"], "the second attempt has the answer of the first"
    assert tenant.tool_calls("look") == len(CHAINS), "a tool was asked twice"
