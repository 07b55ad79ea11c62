"""Tests the status of an MCPServer, and the Events for its changes."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.controllers.mcp_server import assess_server, happened, server_plan_of, stdio_errors
from tarsy.controllers.readiness.server_checks import Health
from tarsy.mcp.health import Look
from tarsy.mcp.tool_catalog import digests_of, offer
from tarsy.plan.errors import FieldPath
from tarsy.resources.meta import condition
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MCPServer, MCPServerStatus
from unit.controllers.builders import NOW, raw

HTTP = {"type": "http", "http": {"url": "http://tools/mcp"}}
SILENCE = Look(reason="Timeout", failure="it did not start within 30 s")


def server(status: Any = None, generation: int = 1, **spec: Any) -> MCPServer:
    body = {"transport": HTTP, "tools": {"readOnly": ["*"]}, **spec}
    return parse_as(MCPServer, raw("MCPServer", "tools", body, status, generation=generation))


def found(obj: MCPServer, *names: str, description: str = "") -> Health:
    tools = [types.Tool(name=name, description=description, input_schema={"type": "object"}) for name in names]
    return Health(found=Look(digests_of(tools), offer(server_plan_of(obj), tools)))


def judged(obj: MCPServer, health: Health | None, errors: Any = ()) -> MCPServerStatus:
    return assess_server(obj, server_plan_of(obj), errors, health, NOW)


def said(status: MCPServerStatus, kind: str) -> tuple[str, str]:
    it = condition(status.conditions, kind)
    assert it is not None
    return it.status, it.reason


def then(obj: MCPServer, status: MCPServerStatus, **changes: Any) -> MCPServer:
    """The same object with this status."""
    return obj.model_copy(update={"status": status, **changes})


def test_a_server_that_was_not_looked_at_is_ready_and_nothing_more_is_known() -> None:
    status = judged(server(), Health())
    assert said(status, "Ready") == ("True", "Usable")
    assert said(status, "Available") == said(status, "Verified") == ("Unknown", "NotChecked")
    assert status.tool_count is None and status.tools == ()


def test_a_server_that_answers_shows_its_tools() -> None:
    obj = server()
    status = judged(obj, found(obj, "b", "a"))
    assert said(status, "Available") == ("True", "Answers") and said(status, "Verified") == ("True", "ToolsKnown")
    assert (status.tool_count, status.tools, len(status.tools_hash or "")) == (2, ("a", "b"), 64)
    assert status.last_error is None


def test_a_thousand_tools_are_counted_and_the_first_ones_named() -> None:
    obj = server()
    status = judged(obj, found(obj, *(f"t{number:04}" for number in range(1000))))
    assert status.tool_count == 1000 and len(status.tools) == 128 and status.tools[0] == "t0000"


def test_one_failure_says_its_error_and_changes_nothing_else() -> None:
    obj = server()
    good = judged(obj, found(obj, "a"))
    status = judged(then(obj, good), found(obj, "a").after(SILENCE))
    assert status.conditions == good.conditions and status.tools == ("a",)
    assert status.last_error == SILENCE.failure


def test_several_failures_in_a_row_make_it_unavailable_and_its_tools_stay_known() -> None:
    obj = server()
    good = judged(obj, found(obj, "a"))
    health = found(obj, "a").after(SILENCE).after(SILENCE).after(SILENCE)
    status = judged(then(obj, good), health)
    assert said(status, "Available") == ("False", "Timeout") and said(status, "Verified") == ("True", "ToolsKnown")
    assert status.tools == ("a",) and status.last_error == SILENCE.failure
    assert said(status, "Ready") == ("True", "Usable"), "a run may name it; what it lacks is said on the run"
    assert judged(then(obj, status), health.after(SILENCE)) == status, "a look that finds nothing new writes nothing"
    assert judged(then(obj, status), found(obj, "a")).last_error is None


def test_what_was_known_stays_after_a_restart_of_the_operator_until_it_is_looked_at() -> None:
    obj = server()
    good = judged(obj, found(obj, "a"))
    assert judged(then(obj, good), Health()) == good
    assert judged(then(obj, good), Health().after(SILENCE)).conditions == good.conditions


def test_what_was_known_of_another_spec_does_not_count() -> None:
    obj = server()
    changed = then(server(generation=2), judged(obj, found(obj, "a")))
    status = judged(changed, Health())
    assert said(status, "Available") == ("Unknown", "NotChecked")


OUTBOUND: dict[str, Any] = {"tools": ["*"], "arguments": ["url"], "holds": "Text"}


@pytest.mark.parametrize(
    ("arguments", "known", "told"),
    [
        (["url"], ["url", "q"], None),
        (["url", "uri"], ["url"], "spec.dataFlow.outboundArguments[0] names the arguments uri"),
        (["uri"], [], None),
    ],
)
def test_a_misspelt_outbound_argument_is_said(arguments: list[str], known: list[str], told: str | None) -> None:
    obj = server(dataFlow={"outboundArguments": [OUTBOUND | {"arguments": arguments}]})
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in known}}
    tools = [types.Tool(name="fetch", description="", input_schema=schema)]
    status = judged(obj, Health(found=Look(digests_of(tools), offer(server_plan_of(obj), tools))))
    verified = condition(status.conditions, "Verified")
    assert verified is not None and (verified.reason == "ToolsMissing") is (told is not None)
    assert told is None or told in verified.message


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"tools": {"readOnly": ["look", "lok"]}}, "spec.tools.readOnly names lok"),
        ({"tools": {"readOnly": ["*"], "allow": ["pods_*", "look"]}}, "spec.tools.allow names pods_*"),
        ({"tools": {"readOnly": ["*"], "deny": ["drop"]}}, "spec.tools.deny names drop"),
        ({"tools": {"readOnly": ["*"], "destructive": ["drop"]}}, "spec.tools.destructive names drop"),
        ({"tools": {"readOnly": ["*"]}, "repeatableTools": ["wirte"]}, "spec.repeatableTools names wirte"),
        ({"dataFlow": {"sensitiveTools": ["lok"]}}, "spec.dataFlow names lok"),
        ({"dataFlow": {"outboundArguments": [OUTBOUND | {"tools": ["lok"]}]}}, "spec.dataFlow names lok"),
        ({"extraction": [{"tools": ["lok"], "fields": [{"name": "a", "type": "Time"}]}]}, "spec.extraction names lok"),
    ],
)
def test_names_of_no_tool_are_said_by_field(spec: Any, told: str) -> None:
    obj = server(**spec)
    status = judged(obj, found(obj, "look", "write"))
    verified = condition(status.conditions, "Verified")
    assert verified is not None and (verified.status, verified.reason) == ("False", "ToolsMissing")
    assert told in verified.message
    assert said(status, "Available") == ("True", "Answers")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"tools": {"destructive": ["write"]}}, None),
        ({"toolPolicy": "All", "tools": {"readOnly": ["look"]}}, None),
        ({"toolPolicy": "All", "tools": {"destructive": ["wr*"]}}, "Each call of these tools needs approval: write."),
        ({"toolPolicy": "Approve", "tools": {"readOnly": ["look"]}}, "Each call of these tools needs approval: write."),
    ],
)
def test_a_condition_names_the_tools_of_which_each_call_needs_approval(spec: Any, told: str | None) -> None:
    obj = server(**spec)
    first = judged(obj, found(obj, "look", "write"))
    gated = condition(first.conditions, "NeedsApproval")
    assert (gated.message.split(" spec.approval")[0] if gated else None) == told
    assert judged(then(obj, first), found(obj, "look", "write")).conditions == first.conditions
    plain = then(server(), first)
    assert condition(judged(plain, found(plain, "look")).conditions, "NeedsApproval") is None


SCALES = {"tools": ["write"], "manifestArgument": "resource"}


@pytest.mark.parametrize(
    ("approval", "told", "untold"),
    [
        (
            None,
            "people decide without a preview, and calls on objects that Argo CD, Flux or Helm manages are not",
            "write are",
        ),
        ({"targets": [SCALES]}, "Each call of these tools needs approval: write.", "spec.approval"),
        ({}, "Calls of write are refused: spec.approval.targets does not declare the objects", "without a preview"),
        (
            {"undetermined": "Ask"},
            "spec.approval.targets does not declare the objects of write: people decide",
            "refused: ",
        ),
    ],
)
def test_the_condition_says_where_the_objects_of_calls_are_not_known(approval: Any, told: str, untold: str) -> None:
    spec: dict[str, Any] = {"toolPolicy": "Approve", "tools": {"readOnly": ["look"]}}
    obj = server(**spec, **({} if approval is None else {"approval": approval}))
    gated = condition(judged(obj, found(obj, "look", "write")).conditions, "NeedsApproval")
    assert gated is not None and told in gated.message and untold not in gated.message
    early = condition(judged(obj, None).conditions, "NeedsApproval")
    assert early is not None and ("objects that they change are unknown" in early.message) == (approval is None)


def test_a_server_that_offers_agents_nothing_says_what_to_set() -> None:
    obj = server(tools={})
    status = judged(obj, found(obj, "look"))
    verified = condition(status.conditions, "Verified")
    assert verified is not None and (verified.status, verified.reason) == ("False", "NothingOffered")
    assert "spec.tools.readOnly" in verified.message and "trustAnnotations" in verified.message


def test_a_server_without_tools_is_not_verified() -> None:
    obj = server()
    status = judged(obj, found(obj))
    assert said(status, "Available") == ("True", "Answers") and said(status, "Verified") == ("False", "NothingOffered")


def test_a_server_that_is_not_ready_is_not_looked_at() -> None:
    obj = server()
    error = FieldPath.of(obj).error("Secret team-a/x does not exist; create it")
    status = judged(obj, None, [(error, "SecretMissing")])
    assert said(status, "Ready") == ("False", "SecretMissing")
    assert said(status, "Available") == said(status, "Verified") == ("Unknown", "NotReady")


def test_a_command_is_not_ready_in_a_cluster_and_the_remedy_is_said() -> None:
    obj = server(transport={"type": "stdio", "stdio": {"command": "tools"}})
    assert stdio_errors(obj, allowed=True) == [] == stdio_errors(server(), allowed=False)
    status = judged(obj, None, stdio_errors(obj, allowed=False))
    ready = condition(status.conditions, "Ready")
    assert ready is not None and (ready.status, ready.reason) == ("False", "StdioNotInCluster")
    assert "spec.transport.type" in ready.message and "put the server behind streamable HTTP" in ready.message
    assert "spec.run" in ready.message


def test_coming_and_going_are_told_once_each() -> None:
    obj = server()
    new, good = MCPServerStatus(), judged(obj, found(obj, "a"))
    away = judged(then(obj, good), found(obj, "a").after(SILENCE).after(SILENCE).after(SILENCE))
    assert list(happened(new, good)) == []
    ((kind, reason, message),) = happened(good, away)
    assert (
        (kind, reason) == ("Warning", "Unavailable") and SILENCE.failure in message and "since 2026-11-22T" in message
    )
    assert list(happened(away, away)) == []
    ((kind, reason, _),) = happened(away, good)
    assert (kind, reason) == ("Normal", "AvailableAgain")


@pytest.mark.parametrize(
    ("names", "description", "told"),
    [
        (("a", "c"), "", "new: c; gone: b"),
        (("a", "b"), "another", "descriptions or parameters of some"),
    ],
)
def test_a_changed_list_of_tools_is_told_with_what_changed(names: tuple[str, ...], description: str, told: str) -> None:
    obj = server()
    old = judged(obj, found(obj, "a", "b"))
    new = judged(then(obj, old), found(obj, *names, description=description))
    ((kind, reason, message),) = happened(old, new)
    assert (kind, reason) == ("Warning", "ToolsChanged") and told in message
    assert list(happened(new, new)) == []
