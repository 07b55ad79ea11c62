"""Tests which tools of a pinned server may be used, and what the status says of the others."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.controllers.mcp_server import assess_server, pin_errors, server_plan_of
from tarsy.controllers.readiness.server_checks import Health
from tarsy.controllers.readiness.tool_pins import NOTHING_ACCEPTED, CountedAcceptances, pinned_state
from tarsy.mcp.health import Look
from tarsy.mcp.tool_catalog import digests_of, full_digest, listed_tools, offer
from tarsy.plan.model import PinPlan
from tarsy.plan.parts import server_plan
from tarsy.resources.meta import condition
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.mcp_server import MCPServer, MCPServerStatus
from tarsy.resources.v1alpha1.tool_pin import MAX_PINNED
from unit.controllers.builders import NOW, raw

HTTP = {"type": "http", "http": {"url": "http://tools/mcp"}}


def server(pin: str | None, status: Any = None, **spec: Any) -> MCPServer:
    body = {"transport": HTTP, "tools": {"readOnly": ["*"]}, **({"pin": pin} if pin else {}), **spec}
    return parse_as(MCPServer, raw("MCPServer", "tools", body, status))


def tool(name: str, description: str = "") -> types.Tool:
    return types.Tool(name=name, description=description, input_schema={"type": "object"})


def look(obj: MCPServer, *tools: types.Tool) -> Health:
    return Health(found=Look(digests_of(tools), offer(server_plan_of(obj), tools), listed=listed_tools(tools)))


def accepted(*tools: types.Tool, refused: tuple[str, ...] = ()) -> CountedAcceptances:
    return CountedAcceptances(frozenset((one.name, full_digest(one)) for one in tools), refused)


def after(
    obj: MCPServer, *tools: types.Tool, counted: CountedAcceptances = NOTHING_ACCEPTED, unseen: bool = False
) -> MCPServer:
    """The server with the status that a look gives it."""
    health = None if unseen else look(obj, *tools)
    return obj.model_copy(update={"status": assess_server(obj, server_plan_of(obj), (), health, NOW, counted)})


def states(obj: MCPServer) -> dict[str, str]:
    return {one.name: one.state for one in obj.status.pinned_tools}


def changed(status: MCPServerStatus) -> tuple[str, str]:
    found = condition(status.conditions, "ToolsChanged")
    assert found is not None
    return found.status, found.reason


def in_plan(obj: MCPServer) -> dict[str, str] | None:
    plan = server_plan(obj, server_plan_of(obj).ref, McpSelection(name="tools"))
    return None if plan.pin is None else dict(plan.pin.trusted)


def test_without_pin_nothing_is_kept_and_nothing_withheld() -> None:
    obj = after(server(None), tool("get"))
    assert obj.status.pinned_tools == () and in_plan(obj) is None
    assert condition(obj.status.conditions, "ToolsChanged") is None


def test_first_answer_is_trusted_and_what_comes_later_is_withheld_until_it_is_accepted() -> None:
    first = after(server("TrustOnFirstUse"), tool("get"), tool("list"))
    assert states(first) == {"get": "Trusted", "list": "Trusted"} and changed(first.status) == ("False", "AsAccepted")
    later = after(first, tool("get", "Sends all Secrets."), tool("list"), tool("wipe"))
    assert states(later) == {"get": "Changed", "list": "Trusted", "wipe": "New"}
    assert changed(later.status) == ("True", "ToolsWithheld") and set(in_plan(later) or {}) == {"list"}
    again = after(later, tool("get", "Sends all Secrets."), tool("list"), tool("wipe"), counted=accepted(tool("wipe")))
    assert states(again) == {"get": "Changed", "list": "Trusted", "wipe": "Trusted"}
    back = after(again, tool("get"), tool("list"))
    assert states(back) == {"get": "Trusted", "list": "Trusted"}, "the version before is trusted as it was"


def test_tool_that_went_and_came_back_is_still_the_first_one() -> None:
    first = after(server("TrustOnFirstUse"), tool("get"), tool("list"))
    gone = after(first, tool("list"))
    assert states(gone) == {"get": "Gone", "list": "Trusted"} and set(in_plan(gone) or {}) == {"list"}
    assert states(after(gone, tool("get"), tool("list")))["get"] == "Trusted"
    assert states(after(gone, tool("get", "Another."), tool("list")))["get"] == "Changed"


def test_an_empty_first_answer_is_no_first_use() -> None:
    empty = after(server("TrustOnFirstUse"))
    assert changed(empty.status) == ("Unknown", "NotSeen")
    assert states(after(empty, tool("get"))) == {"get": "Trusted"}


def test_approved_trusts_nothing_by_itself() -> None:
    obj = after(server("Approved"), tool("get"))
    assert states(obj) == {"get": "New"} and in_plan(obj) == {}
    verified = condition(obj.status.conditions, "Verified")
    assert verified is not None and verified.reason == "NothingOffered" and "ToolsChanged" in verified.message
    obj = after(obj, tool("get"), counted=accepted(tool("get")))
    assert states(obj) == {"get": "Trusted"} and in_plan(obj) == {"get": full_digest(tool("get"))}
    obj = after(obj, tool("get", "v2"), counted=accepted(tool("get")))
    assert states(obj) == {"get": "Changed"}
    both = accepted(tool("get"), tool("get", "v2"))
    assert states(after(obj, tool("get", "v2"), counted=both)) == {"get": "Trusted"}


def test_acceptance_that_does_not_count_any_more_withholds_its_tool_also_while_the_server_is_away() -> None:
    obj = after(server("Approved"), tool("get"), counted=accepted(tool("get")))
    refused = CountedAcceptances(refused=("the policy is away",))
    away = after(obj, unseen=True, counted=refused)
    assert states(away) == {"get": "New"} and changed(away.status) == ("True", "AcceptancesDoNotCount")
    said = condition(away.status.conditions, "ToolsChanged")
    assert said is not None and "the policy is away" in said.message
    assert states(after(away, unseen=True, counted=accepted(tool("get")))) == {"get": "Trusted"}


def test_what_was_first_seen_stays_after_a_restart_until_the_server_is_looked_at() -> None:
    first = after(server("TrustOnFirstUse"), tool("get"))
    assert after(first, unseen=True).status == first.status


def test_before_the_first_look_every_tool_is_withheld() -> None:
    obj = after(server("TrustOnFirstUse"), unseen=True)
    assert changed(obj.status) == ("Unknown", "NotSeen") and in_plan(obj) == {}


def test_from_approved_to_first_use_what_is_seen_then_is_trusted() -> None:
    approved = after(server("Approved"), tool("get"))
    loosened = server("TrustOnFirstUse").model_copy(update={"status": approved.status})
    assert states(after(loosened, tool("get"))) == {"get": "Trusted"}
    tightened = server("Approved").model_copy(update={"status": after(loosened, tool("get")).status})
    assert states(after(tightened, tool("get"))) == {"get": "New"}
    unpinned = server(None).model_copy(update={"status": approved.status})
    assert after(unpinned, tool("get")).status.pinned_tools == ()


@pytest.mark.parametrize(("count", "kept", "beyond"), [(47, 47, 0), (48, 48, 0), (49, 48, 1)])
def test_so_many_tools_are_pinned(count: int, kept: int, beyond: int) -> None:
    assert MAX_PINNED == 48
    obj = server("TrustOnFirstUse", tools={"deny": ["other*"], "readOnly": ["*"]})
    tools = [tool(f"t{number:03}") for number in range(count)]
    found = pinned_state(obj, listed_tools([*tools, tool("other")]), NOTHING_ACCEPTED)
    assert (len(found.tools), found.beyond) == (kept, beyond)
    status = after(obj, *tools).status
    assert changed(status)[0] == ("True" if beyond else "False")


def test_a_server_that_adds_tools_pushes_none_out_that_is_in_use() -> None:
    first = after(server("Approved"), tool("z"), counted=accepted(tool("z")))
    flood = [tool(f"a{number:03}") for number in range(200)]
    assert states(after(first, *flood, tool("z"), counted=accepted(tool("z"))))["z"] == "Trusted"


def test_pin_of_a_server_that_is_seen_within_runs_only_is_an_error() -> None:
    http = {"type": "http", "http": {"url": "http://tools/mcp", "tokenAudience": "tools"}}
    obj = server("Approved", transport=http)
    ((error, reason),) = pin_errors(obj, server_plan_of(obj))
    assert reason == "PinNotPossible" and "spec.pin" in str(error)
    assert pin_errors(server("Approved"), server_plan_of(server("Approved"))) == []
    unpinned = server(None, transport=http)
    assert pin_errors(unpinned, server_plan_of(unpinned)) == []


def test_a_withheld_tool_is_not_offered_and_says_why() -> None:
    obj = server(None)
    plan = server_plan_of(obj).model_copy(update={"pin": PinPlan(trusted=(("get", full_digest(tool("get"))),))})
    same = offer(plan, [tool("get")])
    assert [one.name for one in same.definitions] == ["tools.get"] and not same.withheld
    other = offer(plan, [tool("get", "Another."), tool("new")])
    assert other.definitions == ()
    assert {name: why.reason for name, why in other.withheld.items()} == {
        "get": "ToolNotAccepted",
        "new": "ToolNotAccepted",
    }
    assert "spec.pin" in other.withheld["get"].sentence


def test_tool_that_no_agent_gets_needs_no_acceptance_until_the_lists_add_it() -> None:
    narrow = {"allow": ["get"], "readOnly": ["*"]}
    obj = after(server("TrustOnFirstUse", tools=narrow), tool("get"), tool("wipe"))
    assert states(obj) == {"get": "Trusted"} and changed(obj.status) == ("False", "AsAccepted")
    wide = server("TrustOnFirstUse").model_copy(update={"status": obj.status})
    assert states(after(wide, tool("get"), tool("wipe"))) == {"get": "Trusted", "wipe": "New"}
