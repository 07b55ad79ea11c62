"""A person follows a chain that acts: the request, the decision of another person, and what was done."""

import json
from collections.abc import AsyncIterator

import pytest

import rights
from e2e.person import Person, new_person
from e2e.tenant import SUMMARY, Tenant, answer, condition
from e2e.test_plugin import open_doors
from e2e.waiting import until
from policies import lift_approve, put_approve

pytestmark = [pytest.mark.newer_api, pytest.mark.timeout(600)]

SCRIPT = f"""
agents:
  reader:
    - text: I look.
      calls: [{{name: disk.look, arguments: {{what: df}}}}]
    - text: {answer("High", ("disk.look", "look saw df"))}
  mender:
    - text: Is it still full?
      calls: [{{name: disk.look, arguments: {{what: node-1}}}}]
    - text: node-1 is still full, as @callId(disk.look) shows, so I remove old logs.
      calls: [{{name: disk.write, arguments: {{what: logs-of-node-1}}}}]
    - text: "The logs are removed.\\nNO"
"""


@pytest.fixture
async def people(tenant: Tenant) -> AsyncIterator[tuple[Person, Person]]:
    """Rita starts runs and reads them; anna approves calls. At the end the policy is gone."""
    use = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    bound = rights.binding("rita-use", tenant.namespace, "Role", "rita-use", rights.user("rita"))
    await rights.put_rights(tenant.client, [rights.role("rita-use", tenant.namespace, use), bound])
    rita = await new_person(tenant, "rita", "tarsy-investigator", "tarsy-tracer")
    anna = await new_person(tenant, "anna", "tarsy-approver")
    await put_approve(tenant.client)
    yield rita, anna
    await lift_approve(tenant.client, tenant.namespace)


async def test_people_see_what_a_stage_did_and_that_its_model_says_otherwise(
    tenant: Tenant, people: tuple[Person, Person]
) -> None:
    rita, anna = people
    await tenant.use_model(SCRIPT)
    await tenant.use_tools("disk", toolPolicy="Approve", tools={"readOnly": ["look"]})
    await tenant.use_agent("reader", "disk", toolPolicy="ReadOnly")
    await tenant.use_agent("mender", "disk", toolPolicy="Approve")
    look = {"name": "look", "agents": [{"name": "reader"}]}
    act = {"name": "act", "kind": "Action", "agents": [{"name": "mender"}]}
    await tenant.use_chain(name="disk", stages=[look, act], alertTypes=["DiskFull"])
    await until("both doors are open", lambda: open_doors(tenant))

    run = await tenant.investigate("disk-full", chain="disk", author={"username": "rita"})

    async def asked() -> bool:
        found = await tenant.rows("SELECT id FROM investigation WHERE id = $1 AND parked_at IS NOT NULL", run)
        return bool(found) and bool(await tenant.client.list("ToolApproval", tenant.namespace))

    await until("people are asked", asked)
    waiting = await anna.tarsy("approvals")
    (approval,) = await tenant.client.list("ToolApproval", tenant.namespace)
    decided = await anna.tarsy("approve", approval["metadata"]["name"], "--yes")
    assert decided.status == 0, decided
    inv = await tenant.finished("disk-full")
    assert condition(inv, "Succeeded") == "True", inv["status"]

    finding = inv["status"]["finding"]
    assert finding["summary"] == SUMMARY
    acted = inv["status"]["stages"][1]
    assert (acted["kind"], acted["acted"], acted["modelSaysActed"]) == ("Action", "Yes", "No")
    assert acted["message"].startswith("The model says that it took no action")
    why, timeline = await rita.tarsy("why", "disk-full"), await rita.tarsy("timeline", "disk-full")
    trace = await rita.tarsy("trace", "disk-full")
    print("\n".join(one.out for one in (waiting, decided, why, timeline, trace)))
    for told in (why, timeline, trace):
        assert "An action was taken: disk.write (call_" in told.out, told
        assert "The model says that it took no action" in told.out, told
    (action,) = json.loads((await rita.tarsy("why", "disk-full", "-o", "json")).out)["actions"]
    assert (action["acted"], action["word"], [one["tool"] for one in action["calls"]]) == (True, "No", ["disk.write"])
    assert tenant.tool_calls("write") == 1
