"""Kills the operator in the middle of a replay: the attempt that resumes answers from the same record."""

from uuid import UUID

import pytest

from chaos.exactness import turns
from chaos.fleet import Fleet
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition

pytestmark = pytest.mark.timeout(600)
LOOK = "calls: [{name: tools.look, arguments: {what: df}}]"
SCRIPT = f"""
agents:
  agent:
    - {{text: I look., {LOOK}}}
    - {{text: I look again., {LOOK}}}
    - {{text: {ANSWER}}}
  other:
    - {{text: Other looks., {LOOK}}}
    - {{text: Other looks again., gate: thinking, {LOOK}}}
    - {{text: {ANSWER}}}
"""


async def test_a_killed_replay_resumes_without_the_tool_server_and_uses_each_recorded_call_once(
    bare_tenant: Tenant, fleet: Fleet
) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    await tenant.use_agent("other", "tools")
    await tenant.use_chain(["other"], name="other")
    first = fleet.start("run", *LONG_LEASE)
    await tenant.investigate()
    await tenant.finished()
    recorded = tenant.tool_calls("look")
    replay = {"of": {"name": "run"}, "overrides": {"chainRef": {"name": "other"}}}
    made = await tenant.put("Investigation", "again", {"replay": replay})
    identity = UUID(made["metadata"]["uid"])
    await model.journal.wait_for(lambda _: ("other", 1) in turns(tenant), 120)
    await first.kill()
    await tenant.client.delete("Investigation", tenant.namespace, "run")
    model.open_gate("thinking")
    await tenant.machine.lapse_of_all()
    fleet.start("run", *LONG_LEASE)
    inv = await tenant.finished("again")
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["attempt"] == 2
    assert inv["status"]["finding"] == {"summary": SUMMARY, "confidence": "Low"}
    kept = inv["status"]["replay"]
    assert (kept["rungs"]["exact"], kept["coverage"], kept["unusedCalls"]) == (2, "1.00", 0), kept
    lines = [call["cassette_line"] for call in await tenant.mcp_calls(identity)]
    assert len(lines) == len(set(lines)) == 2
    assert turns(tenant)["other", 0] == 1, "a finished step was done again"
    assert tenant.tool_calls("look") == recorded == 2
