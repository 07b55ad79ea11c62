"""Tests that changes of conditions are recorded while controllers work: once each, and none at rest."""

from typing import Any

from integration.controllers.desk import Desk, eventually
from integration.mcp.servers import served

CHAIN = {
    "alertTypes": ["PodCrash"],
    "llmProvider": "one",
    "stages": [{"name": "look", "agents": [{"name": "one"}]}],
}


async def recorded(desk: Desk, kind: str, type_: str) -> list[tuple[str | None, str]]:
    """The changes of a condition, the oldest first."""
    found = await desk.transitions.page([kind], 100)
    return [(one.was, one.status) for one in reversed(found) if one.type == type_]


async def until_recorded(desk: Desk, kind: str, type_: str, *statuses: str) -> None:
    """Waits for the last changes; a condition may be Unknown between two statuses, and no status follows itself."""

    async def look() -> bool:
        changes = await recorded(desk, kind, type_)
        assert all(was != status for was, status in changes), changes
        found = [status for _, status in changes if status != "Unknown"]
        assert found == list(statuses), found
        return True

    await eventually(look)


async def test_a_server_that_goes_away_and_comes_back_gives_two_transitions_with_reason_and_address(desk: Desk) -> None:
    async with served() as web, desk.controller(look_every=0.2):
        transport = {"type": "http", "http": {"url": web.url}}
        made = await desk.put("MCPServer", "tools", {"transport": transport, "tools": {"readOnly": ["*"]}})
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        await until_recorded(desk, "MCPServer", "Available", "True")
        web.refuse = 503
        await desk.reason("MCPServer", "tools", "Available", "False", "OpenFailed")
        web.refuse = None
        await desk.reason("MCPServer", "tools", "Available", "True", "Answers")
        await until_recorded(desk, "MCPServer", "Available", "True", "False", "True")
        assert (await recorded(desk, "MCPServer", "Available"))[-2:] == [("True", "False"), ("False", "True")]
        found = await desk.transitions.page(["MCPServer"], 100)
        newest, away, *_ = (one for one in found if one.type == "Available")
        assert (away.reason, "HTTP 503" in away.message) == ("OpenFailed", True)
        assert away.address == web.url.removesuffix("/mcp") and away.object.uid == made["metadata"]["uid"]
        status: dict[str, Any] = (await desk.get("MCPServer", "tools"))["status"]
        stamps = {one["type"]: one["lastTransitionTime"] for one in status["conditions"]}
        assert f"{newest.at:%Y-%m-%dT%H:%M:%SZ}" == stamps["Available"]


async def test_two_controllers_and_a_third_one_after_them_record_each_change_once_and_nothing_at_rest(
    desk: Desk,
) -> None:
    await desk.configure(skip=("Agent", "Chain"))
    await desk.put("Chain", "one", CHAIN)
    async with desk.controller(), desk.controller():
        await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")
        await until_recorded(desk, "Chain", "Ready", "False")
        await desk.put("Agent", "one", {"instructions": "Look."})
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await until_recorded(desk, "Chain", "Ready", "False", "True")
        await until_recorded(desk, "Agent", "Ready", "True")
    count = "SELECT count(*) FROM condition_transition WHERE name = 'one'"
    before = await desk.pool.fetchval(count)
    async with desk.controller(relist_seconds=0.2):
        await desk.put("Agent", "two", {"instructions": "Look."})  # what comes last is recorded last
        await desk.reason("Agent", "two", "Ready", "True", "Usable")
        await until_recorded(desk, "Agent", "Ready", "True", "True")
    assert await desk.pool.fetchval(count) == before
