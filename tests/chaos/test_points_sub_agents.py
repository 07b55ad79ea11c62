"""SIGKILL of a worker at eleven points of agents with 0, 1 and 3 sub-agents, and of a sub-agent alone and beside two.

As in `test_points.py` there is a run for each, and one kill for all of them: each round, every run is brought to its
next point, all stand still there, and the worker that runs them is killed. A gate stops the calls of the agent that has
the name of its chain; its parent, or its sub-agents, go on as far as they come.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import yaml

from chaos.exactness import assert_record_is_whole, turns
from chaos.fleet import Fleet
from chaos.points import Gate, Points
from chaos.test_points import Point
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.once("the API takes no part in what is shown"),
]

POINTS = (
    Point("claimed, nothing written", Gate.BEGIN),
    Point("before a model call, unwritten", Gate.MODEL_CALL_STARTED),
    Point("before a model call, written and not sent", Gate.MODEL_CALL_STARTED, commit=True),
    Point("in a model's stream"),
    Point("answered by the model, unwritten with the tool call", Gate.MODEL_CALL_FINISHED),
    Point("answered by the model, written with the tool call", Gate.MODEL_CALL_FINISHED, commit=True),
    Point("before a tool call, unwritten", Gate.TOOL_CALL_STARTED),
    Point("before a tool call, written and not sent", Gate.TOOL_CALL_STARTED, commit=True),
    Point("answered, unwritten", Gate.TOOL_CALL_FINISHED),
    Point("answered, written", Gate.TOOL_CALL_FINISHED, commit=True),
    Point("concluded, unwritten", Gate.END),
)

CHILDREN = {"none": 0, "one": 1, "three": 3, "solo-1": 1, "trio-1": 3}
"""Sub-agents of the run in each chain. The last two are named after a sub-agent: it is stopped, and not its parent."""

HANG = {"hang": {"after": 2, "times": 1}}
CONCLUSION = {"text": json.loads(ANSWER)}


def lead(chain: str) -> str:
    """The agent of a chain that dispatches."""
    return f"lead-{sub(chain)}" if chain.endswith("-1") else chain


def sub(chain: str) -> str:
    """The agent that it dispatches."""
    return chain.removesuffix("-1") if chain.endswith("-1") else f"sub-{chain}"


def script() -> dict[str, Any]:
    look = {"text": "I look.", "calls": [{"name": "tools.look", "arguments": {"what": "3"}}]}
    agents: dict[str, Any] = {}
    for chain, count in CHILDREN.items():
        calls = [
            {"name": "dispatch_agent", "arguments": {"name": sub(chain), "task": f"Look at part {n}."}}
            for n in range(count)
        ]
        first = {"text": "I let others look.", "calls": calls} if calls else dict(look)
        of_parent = not chain.endswith("-1")
        # How many conclusions come at once is open, so each answer after the first may be the last.
        later = [{"text": f"Turn {turn}.\n\n{CONCLUSION['text']}"} for turn in range(1, count + 3)]
        agents[lead(chain)] = [first | (HANG if of_parent else {}), *later]
        for number in range(1, count + 1):
            name = f"{sub(chain)}-{number}"
            agents[name] = [look | (HANG if name == chain else {}), CONCLUSION]
    return {"agents": agents}


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install(tuple(CHILDREN))
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


async def build(tenant: Tenant) -> None:
    await tenant.use_model(yaml.safe_dump(script()))
    await tenant.use_tools(tools={"readOnly": ["look"]}, summarization={"enabled": False})
    for chain in CHILDREN:
        await tenant.use_agent(sub(chain), "tools", description="Looks at a part.")
        await tenant.use_agent(lead(chain), "tools")
        slot = {"name": lead(chain), "subAgents": [{"agentRef": {"name": sub(chain)}}]}
        slot["subAgentLimits"] = {"concurrent": 2, "dispatches": 3}
        await tenant.use_chain(name=chain, stages=[{"name": "work", "agents": [slot]}])


async def test_kill_at_every_point_with_none_one_and_three_sub_agents_repeats_no_finished_step(
    bare_tenant: Tenant, points: Points, fleet: Fleet
) -> None:
    tenant = bare_tenant
    await build(tenant)
    fleet.controller()
    runs = {chain: await tenant.investigate(chain, chain=chain) for chain in CHILDREN}

    async def reached(chain: str, point: Point) -> bool:
        if point.gate is not None:
            return bool(await points.waiting(chain, point.gate))
        return any(r.agent == chain and r.chunks >= 2 for r in tenant.model.journal.requests)

    for point in POINTS:
        if point.gate is not None:
            for chain in runs:
                await points.close(chain, point.gate)
        worker = await fleet.successor()
        for chain in runs:
            await until(f"{chain} is at: {point.name}", lambda c=chain, p=point: reached(c, p))  # type: ignore[misc]
        await worker.kill()
        if point.gate is not None:
            for chain in runs:
                await points.let_go(chain, point.gate, commit=point.commit)
    await fleet.successor()

    exact, repeated = 0, list[str]()
    for chain, identity in runs.items():
        inv = await tenant.finished(chain)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] == len(POINTS) + 1
        exact += inv["status"]["finding"]["summary"] == SUMMARY
        names = [row["display_name"] for row in await children(tenant, identity)]
        assert names == [f"{sub(chain)}-{number}" for number in range(1, CHILDREN[chain] + 1)]
        repeated += await repeated_steps(tenant, identity)
        await assert_record_is_whole(tenant, identity, agents={lead(chain), *names})
        await assert_every_result_is_told_once(tenant, identity, chain)
    print(
        f"\nkills {len(POINTS)}, points times runs {len(POINTS) * len(runs)}, repeated finished steps {len(repeated)}, "
        f"exact final answers {exact} of {len(runs)}"
    )
    assert (repeated, exact) == ([], len(runs))


async def children(tenant: Tenant, identity: UUID) -> list[asyncpg.Record]:
    """The executions of sub-agents, all of which have completed."""
    rows = await tenant.rows(
        "SELECT e.* FROM execution e JOIN stage s ON s.id = e.stage "
        "WHERE s.investigation = $1 AND e.parent IS NOT NULL ORDER BY e.index",
        identity,
    )
    assert {row["state"] for row in rows} <= {"completed"}
    keys = {row["idempotency_key"] for row in await tenant.mcp_calls(identity) if row["tool"] == "dispatch_agent"}
    assert {str(row["dispatched_by"]) for row in rows} == keys
    return rows


async def repeated_steps(tenant: Tenant, identity: UUID) -> list[str]:
    """Model turns and tool calls done once more although the record had them as finished.

    A turn may be asked for once, and once more for each call of it that the record lists as interrupted; a tool call of
    a server as often as it has tries.
    """
    interrupted: Counter[tuple[str, int]] = Counter()
    turn: Counter[str] = Counter()
    for row in await tenant.model_calls(identity):
        place = (row["display_name"], turn[row["display_name"]])
        interrupted[place] += row["state"] == "interrupted"
        turn[row["display_name"]] += row["state"] == "completed"
    found = [
        f"turn {place} was asked {times} times, {interrupted[place]} were interrupted"
        for place, times in turns(tenant).items()
        if place[0] in turn and times > 1 + interrupted[place]
    ]
    calls = Counter((tenant.folder / "calls").read_text().splitlines())
    rows = [row for row in await tenant.mcp_calls(identity) if row["server"]]
    tries = Counter(f"{row['tool']} {row['idempotency_key']}" for row in rows)
    return found + [f"tool call {call}: {calls[call]} calls, {n} tries" for call, n in tries.items() if calls[call] > n]


async def assert_every_result_is_told_once(tenant: Tenant, identity: UUID, chain: str) -> None:
    told = await tenant.rows(
        "SELECT split_part(m.content, ' ', 2) AS name FROM message m JOIN execution e ON e.id = m.execution "
        "JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 AND e.parent IS NULL AND m.role = 'user' "
        "AND m.content LIKE 'Sub-agent %'",
        identity,
    )
    assert sorted(row["name"] for row in told) == [f"{sub(chain)}-{n}" for n in range(1, CHILDREN[chain] + 1)]
