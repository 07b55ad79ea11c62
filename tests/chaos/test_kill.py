"""Kills the operator at boundaries between record and outside calls, in one investigation that must come out exact.

What is compared: what the model was asked and the tool server was called (outside the product), and what the record
says about it. A step that the record holds as finished may not have been done again; a step that died in flight may,
and then the record says so. The small form leaves boundaries to `test_points.py`, which has all for every strategy.
"""

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from chaos.boundaries import Boundaries, Boundary, Fate
from chaos.exactness import assert_record_is_whole, repeated_steps, turns
from chaos.fleet import Fleet, Member
from e2e.machine import LONG_LEASE, Machine
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until

pytestmark = pytest.mark.timeout(1200)

SCRIPT = f"""
agents:
  first:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: I write.
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: I wait.
      calls: [{{name: tools.wait, arguments: {{what: door}}}}]
    - text: I think.
      gate: thinking
      calls: [{{name: tools.look, arguments: {{what: du}}}}]
    - text: The first stage is over.
  left:
    - text: Left looks.
      gate: side
      calls: [{{name: tools.look, arguments: {{what: left}}}}]
    - text: Left is done.
  right:
    - text: Right looks.
      gate: side
      calls: [{{name: tools.look, arguments: {{what: right}}}}]
    - text: Right is done.
  synthesis-agent:
    - text: {ANSWER}
  executive-summary:
    - text: The disk is full.
"""


@pytest.fixture
async def boundaries(bare_tenant: Tenant) -> AsyncIterator[Boundaries]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Boundaries(connection)
    await gates.install()
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


SMALL = {
    (Boundary.B_MODEL_CALL_FINISHED, Fate.ROLLED_BACK),
    (Boundary.D_TOOL_CALL_FINISHED, Fate.ROLLED_BACK),
    (Boundary.D_TOOL_CALL_FINISHED, Fate.COMMITTED),
}
"""What the small form kills at: where a finished step is lost, and where one is not."""


class Killer:
    """Kills the operator as a node does that loses its power, and counts."""

    def __init__(self, machine: Machine, fleet: Fleet, boundaries: Boundaries | None = None) -> None:
        self._machine = machine
        self._fleet = fleet
        self._boundaries = boundaries
        self._operator: Member | None = None
        self.kills = 0

    async def kill(self) -> None:
        """Ends the operator; it stays away."""
        assert self._operator is not None and self._operator.alive
        await self._operator.kill()
        self.kills += 1

    async def start(self) -> None:
        """Starts it, again when the time of its lease is over."""
        await self._machine.lapse_of_all()
        self._operator = self._fleet.start("run", *LONG_LEASE)

    async def kill_at(self, boundary: Boundary, fate: Fate, writes: int = 1) -> None:
        """Lets it run until so many writes stand at the boundary, kills it there, and decides about the writes."""
        assert self._boundaries is not None
        await self._boundaries.close(boundary)
        await self.start()
        await self._boundaries.reached(boundary, writes)
        await self.kill()
        await self._boundaries.let_go(boundary, fate)


async def test_kill_at_every_boundary_repeats_no_finished_step(
    bare_tenant: Tenant, boundaries: Boundaries, fleet: Fleet, full: bool
) -> None:
    tenant = bare_tenant
    model = await tenant.use_model(SCRIPT)
    await tenant.use_tools(tools={"readOnly": ["look"]})
    for agent in ("first", "left", "right"):
        await tenant.use_agent(agent, "tools")
    await tenant.use_chain(["first"], ["left", "right"], summary=True)
    identity = await tenant.investigate()
    operator = Killer(tenant.machine, fleet, boundaries)

    for boundary in Boundary:
        for fate in Fate:
            if full or (boundary, fate) in SMALL:
                await operator.kill_at(boundary, fate)
    # All of it in one turn: its answer was lost once (b rolled back), and so was a tool's result (d rolled back).
    assert turns(tenant) == {("first", 0): 2}
    assert tenant.tool_calls("look") == 2

    # A call in flight of a tool that nobody called repeatable.
    await operator.start()
    await until("the tool server is asked to wait", lambda: called(tenant, "wait"))
    await operator.kill()
    (tenant.folder / "gate").touch()

    # A model call in flight, then two of agents side by side.
    for gate, waiting in (("thinking", {("first", 3)}), ("side", {("left", 0), ("right", 0)})):
        await operator.start()
        await model.journal.wait_for(lambda _, wanted=waiting: turns(tenant).keys() >= wanted, 120)  # type: ignore[misc]
        await operator.kill()
        if gate == "thinking":
            model.open_gate(gate)

    # Both agents in the middle of a write.
    model.open_gate("side")
    await operator.kill_at(Boundary.B_MODEL_CALL_FINISHED, Fate.COMMITTED, writes=2)
    await operator.kill_at(Boundary.C_TOOL_CALL_STARTED, Fate.ROLLED_BACK)  # the other waits for this one's row

    await operator.start()
    inv = await tenant.finished(seconds=300)
    repeated = await repeated_steps(tenant, identity)
    print(f"\nkills {operator.kills}, repeated finished steps {len(repeated)}")
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"] == {"summary": SUMMARY, "confidence": "Low"}
    assert inv["status"]["attempt"] == operator.kills + 1
    assert repeated == []
    assert (tenant.tool_calls("write"), tenant.tool_calls("wait")) == (1, 1)
    await assert_record_is_whole(tenant, identity)


async def called(tenant: Tenant, tool: str) -> bool:
    return tenant.tool_calls(tool) > 0


SIDE_BY_SIDE = f"""
agents:
  agent:
    - text: I wait and look.
      calls:
        - {{name: tools.wait, arguments: {{what: door}}}}
        - {{name: tools.look, arguments: {{what: df}}}}
        - {{name: tools.wait, arguments: {{what: window}}}}
    - text: {ANSWER}
"""


async def test_kill_with_the_second_of_three_calls_answered_repeats_the_other_two_alone(
    bare_tenant: Tenant, fleet: Fleet
) -> None:
    tenant = bare_tenant
    await tenant.use_model(SIDE_BY_SIDE)
    await tenant.use_tools(tools={"readOnly": ["look", "wait"]})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    identity = await tenant.investigate()
    operator = Killer(tenant.machine, fleet)

    await operator.start()
    await until("look is answered, and neither wait is", lambda: look_alone_is_answered(tenant, identity))
    await operator.kill()
    (tenant.folder / "gate").touch()
    await operator.start()
    inv = await tenant.finished(seconds=300)

    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert (tenant.tool_calls("wait"), tenant.tool_calls("look")) == (4, 1)
    assert await repeated_steps(tenant, identity) == []
    await assert_record_is_whole(tenant, identity)
    told = await tenant.rows(
        "SELECT m.content FROM message m JOIN execution e ON e.id = m.execution JOIN stage s ON s.id = e.stage "
        "WHERE s.investigation = $1 AND m.role = 'tool' ORDER BY m.seq",
        identity,
    )
    assert [row["content"].splitlines()[-1] for row in told] == ["wait saw door", "look saw df", "wait saw window"]


async def look_alone_is_answered(tenant: Tenant, identity: UUID) -> bool:
    states = {row["tool"]: row["state"] for row in await tenant.mcp_calls(identity)}
    return states == {"wait": "started", "look": "completed"} and tenant.tool_calls("wait") == 2
