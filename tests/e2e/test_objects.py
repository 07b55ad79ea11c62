"""Runs `kubectl tarsy objects` as a person with the role of a viewer, through the Kubernetes API."""

import json
from typing import Any

import pytest

from e2e.person import Person, new_person
from e2e.tenant import Tenant
from e2e.test_plugin import open_doors
from e2e.waiting import until

pytestmark = pytest.mark.timeout(600)


async def changes(person: Person) -> list[dict[str, Any]]:
    """The changes of the condition Ready of the agent, the oldest first."""
    told = await person.tarsy("objects", "tagent/agent", "-o", "json")
    assert told.status == 0, told
    return [one for one in reversed(json.loads(told.out)["items"]) if one["type"] == "Ready"]


async def test_objects_are_listed_with_their_health_and_the_changes_of_one(tenant: Tenant) -> None:
    await until("both doors are open", lambda: open_doors(tenant))
    ada = await new_person(tenant, "ada", "tarsy-viewer")
    await tenant.use_agent("agent", "tools")  # there is no such server yet

    async def ends_with(status: str) -> bool:
        found = await changes(ada)
        return bool(found) and found[-1]["status"] == status

    await until("it is recorded that the agent is not ready", lambda: ends_with("False"))
    await tenant.use_tools(tools={"readOnly": ["look"]})
    await until("it is recorded that the agent is ready", lambda: ends_with("True"))
    found = await changes(ada)
    assert all(one["was"] != one["status"] for one in found) and found[0]["was"] is None

    listed = await ada.tarsy("objects")
    assert listed.status == 0, listed
    rows = [line.split() for line in listed.out.splitlines()]
    assert rows[0][:4] == ["KIND", "NAME", "HEALTH", "SINCE"]
    agent = next(row for row in rows if row[:2] == ["Agent", "agent"])
    assert agent[2] == "Ready" and int(agent[4]) >= 1 and "ago," in agent
    one = await ada.tarsy("objects", "agent/agent")
    assert one.out.splitlines()[0].split() == ["TIME", "AGE", "CONDITION", "CHANGE", "REASON", "MESSAGE"]
    assert "there is no MCPServer" in " ".join(one.out.split())
    document = json.loads((await ada.tarsy("objects", "agents", "--hours", "168", "-o", "json")).out)
    assert (document["cellMinutes"], [item["kind"] for item in document["items"]]) == (360, ["Agent"])
    refused = await ada.tarsy("objects", "-A")
    assert refused.status == 1 and "tarsy-viewer" in refused.err, refused
    print(listed.out, one.out, sep="\n")
