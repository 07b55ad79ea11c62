"""Tests the revision of a Chain, and what the current objects withdraw from the one that serves."""

from __future__ import annotations

from typing import Any

import pytest

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import Plan
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.revision.serving import ServingCatalog
from tarsy.plan.revision.snapshot import Snapshot, SnapshotUnreadable
from tarsy.plan.revision.template import revision_of
from tarsy.plan.revision.withdrawal import covered_by_both
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.mcp_server import MCPServer, MCPServerStatus
from tarsy.resources.v1alpha1.tool_pin import PinnedTool
from unit.plan.builders import (
    LIBRARY,
    OPEN,
    TEAM,
    agent,
    alert,
    chain,
    defaults,
    google,
    provider,
    selected,
    server,
    stage,
)

TOOLS = {"readOnly": ["get"]}


def objects(**changes: AnyResource) -> list[AnyResource]:
    """A chain with one agent, one server and one provider; `changes` replace objects by the name of their kind."""
    usual: dict[str, AnyResource] = {
        "chain": chain(),
        "agent": agent(mcpServers=selected("kube")),
        "server": server(tools=TOOLS),
        "provider": provider(),
    }
    return list((usual | changes).values())


def digest(*found: AnyResource, library: str | None = LIBRARY) -> str:
    (of,) = [obj for obj in found if obj.KIND == "Chain"]
    return revision_of(of, ResourceCatalog(found), library).digest  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": agent(mcpServers=selected("kube"), instructions="Look twice.")},
        {"agent": agent()},
        {"server": server(tools=TOOLS | {"deny": ["delete"]})},
        {"server": server(tools=TOOLS, instructions="Be quick.")},
        {"provider": provider(model="other")},
        {"chain": chain(stages=[stage(), stage(name="again")])},
        {"defaults": defaults(maxIterations=3)},
    ],
    ids=["instructions", "servers", "deny list", "server", "model", "stages", "defaults"],
)
def test_a_change_of_what_runs_do_is_another_revision(changes: dict[str, AnyResource]) -> None:
    assert digest(*objects(**changes)) != digest(*objects())


@pytest.mark.parametrize(
    "changes",
    [
        {"chain": chain(description="d", alertTypes=["Other"], maxConcurrent=3)},
        {"chain": chain(promotion={"policy": "Immediate"})},
        {"chain": chain(allowedNamespaces=OPEN)},
        {"provider": provider(rates={"inputPerMillion": 1, "outputPerMillion": 2}, limits={"maxConcurrent": 1})},
        {"defaults": defaults(alertMasking={"patternGroups": ["basic"]}, maxConcurrent=2)},
        {"agent": agent(mcpServers=selected("kube"), description="d")},
        {"other": agent("unused")},
    ],
    ids=["labels", "promotion", "grant", "prices", "masking", "description", "unrelated"],
)
def test_a_change_that_runs_do_not_follow_is_the_same_revision(changes: dict[str, AnyResource]) -> None:
    assert digest(*objects(**changes)) == digest(*objects())


def test_a_revision_does_not_depend_on_generation_and_uid() -> None:
    old = chain()
    new = old.model_copy(update={"metadata": old.metadata.model_copy(update={"generation": 9, "uid": "new"})})
    assert digest(*objects(chain=new)) == digest(*objects())


def test_a_chain_that_does_not_resolve_has_no_revision() -> None:
    with pytest.raises(PlanInvalid, match="there is no Agent triage"):
        digest(chain(), provider())


def serving(kept: list[AnyResource], now: list[AnyResource], **of_alert: Any) -> Plan:
    """The plan of a run by the revision of `kept`, stored and read again, where the objects are `now`."""
    (was,) = [obj for obj in kept if obj.KIND == "Chain"]
    (current,) = [obj for obj in now if obj.KIND == "Chain"]
    stored = revision_of(was, ResourceCatalog(kept), LIBRARY).snapshot.dump()  # type: ignore[arg-type]
    catalog = ServingCatalog(Snapshot.load(stored), ResourceCatalog(now))
    plan = resolve(
        PlanRequest(
            namespace=TEAM,
            alert=alert(**of_alert),
            chain=catalog.chain(current),  # type: ignore[arg-type]
            catalog=catalog,
            library_namespace=LIBRARY,
        )
    )
    if catalog.withdrawn:
        raise PlanInvalid(catalog.withdrawn)
    return plan


def test_a_stored_revision_serves_what_it_served() -> None:
    kept = objects(
        agent=agent(mcpServers=selected("kube"), instructions="As before."), defaults=defaults(maxIterations=7)
    )
    now = objects(chain=chain(stages=[stage(name="other")]), provider=provider(model="new"), defaults=defaults())
    plan = serving(kept, now)
    (only,) = plan.stages[0].agents
    assert plan.stages[0].name == "look"
    assert (only.instructions, only.provider.model, only.max_iterations) == ("As before.", "m", 7)
    assert [one.name for one in only.servers] == ["kube"]


def of_server(plan: Plan) -> Any:
    return plan.stages[0].agents[0].servers[0]


def test_a_tool_that_is_denied_now_is_not_offered_by_the_serving_revision() -> None:
    found = of_server(serving(objects(), objects(server=server(tools=TOOLS | {"deny": ["delete*"]}))))
    assert found.deny == ("delete*",)


def test_a_tool_that_is_no_longer_denied_stays_denied_until_its_revision_serves() -> None:
    kept = objects(server=server(tools=TOOLS | {"deny": ["delete"]}))
    assert of_server(serving(kept, objects())).deny == ("delete",)


def test_a_tool_that_the_revision_selects_and_that_is_denied_now_refuses_the_run() -> None:
    kept = objects(agent=agent(mcpServers=[{"name": "kube", "tools": ["delete"]}]))
    now = objects(server=server(tools=TOOLS | {"deny": ["delete"]}))
    with pytest.raises(PlanInvalid, match=r"denies delete \(spec.tools.deny\); leave them out"):
        serving(kept, now)


def test_allow_lists_without_a_common_tool_offer_none() -> None:
    kept = objects(server=server(tools=TOOLS | {"allow": ["get"]}))
    found = of_server(serving(kept, objects(server=server(tools=TOOLS | {"allow": ["list"]}))))
    assert found.deny == ("*",)


@pytest.mark.parametrize("where", ["agent", "server"])
def test_the_policy_read_only_holds_at_once(where: str) -> None:
    new = {
        "agent": agent(mcpServers=selected("kube"), toolPolicy="ReadOnly"),
        "server": server(tools=TOOLS, toolPolicy="ReadOnly"),
    }[where]
    assert of_server(serving(objects(), objects())).policy == "All"
    assert of_server(serving(objects(), objects(**{where: new}))).policy == "ReadOnly"


@pytest.mark.parametrize("gone", ["agent", "server", "provider"])
def test_a_deleted_object_refuses_the_run(gone: str) -> None:
    kept = objects()
    now = [obj for obj in kept if obj.KIND.lower() not in {gone, f"mcp{gone}", f"llm{gone}"}]
    assert len(now) == len(kept) - 1
    with pytest.raises(PlanInvalid, match="there is no "):
        serving(kept, now)


def test_an_account_that_the_agent_no_longer_names_refuses_the_run() -> None:
    with pytest.raises(PlanInvalid, match="serviceAccountName: is reader, but the tools"):
        serving(objects(agent=agent(serviceAccountName="admin")), objects(agent=agent(serviceAccountName="reader")))


def test_an_agent_that_was_created_later_is_not_part_of_the_serving_revision() -> None:
    assert serving(objects(), [*objects(), agent("chat-agent", instructions="New.")]).chat is not None
    chat = serving(objects(), [*objects(), agent("chat-agent", instructions="New.")]).chat
    assert chat is not None and "New." not in chat.instructions


def test_an_alert_brings_current_servers_to_the_serving_revision_unless_its_chain_denies_that_now() -> None:
    now = [*objects(), server("own")]
    assert of_server(serving(objects(), now, mcpServers=selected("own"))).name == "own"
    with pytest.raises(PlanInvalid, match="does not accept tools from alerts"):
        serving(objects(), [*objects(chain=chain(alertTools="Denied")), server("own")], mcpServers=selected("own"))


def test_credentials_follow_the_current_object_only_to_the_same_endpoint() -> None:
    key, rotated = ({"apiKeySecretRef": {"name": name, "key": "k"}} for name in ("old", "new"))
    kept = objects(provider=provider(baseURL="https://a.example/v1", **key))
    same = serving(kept, objects(provider=provider(baseURL="https://a.example/v1", **rotated)))
    moved = serving(kept, objects(provider=provider(baseURL="https://b.example/v1", **rotated)))
    found = [plan.stages[0].agents[0].provider for plan in (same, moved)]
    assert [(one.base_url, one.api_key.name if one.api_key else None) for one in found] == [
        ("https://a.example/v1", "new"),
        ("https://a.example/v1", "old"),
    ]


def test_a_native_tool_that_is_switched_off_is_not_used() -> None:
    thinking = agent(strategy="native-thinking")
    kept = objects(provider=google("model", nativeTools={"googleSearch": True}), agent=thinking)
    now = objects(provider=google("model", nativeTools={"googleSearch": False}), agent=thinking)
    assert serving(kept, kept).stages[0].agents[0].native_tools == ("google_search",)
    assert serving(kept, now).stages[0].agents[0].native_tools == ()


def test_the_lower_budget_and_the_current_masking_hold_at_once() -> None:
    kept = objects(chain=chain(budget={"tokens": 100, "toolCalls": 5}), defaults=defaults())
    now = objects(chain=chain(budget={"tokens": 50}), defaults=defaults(alertMasking={"patternGroups": ["basic"]}))
    plan = serving(kept, now)
    assert (plan.budget.tokens, plan.budget.tool_calls) == (50, 5)
    assert plan.alert_masking is not None and plan.alert_masking.groups == ("basic",)


def test_results_are_masked_by_both_settings() -> None:
    kept = objects(server=server(tools=TOOLS, masking={"patternGroups": ["basic"], "patterns": []}))
    found = of_server(serving(kept, objects(server=server(tools=TOOLS, masking={"patternGroups": ["cloud"]}))))
    assert found.masking.groups == ("basic", "cloud")
    off = serving(kept, objects(server=server(tools=TOOLS, masking={"enabled": False})))
    assert of_server(off).masking.groups == ("basic",)


def test_what_either_revision_keeps_in_stays_in() -> None:
    def flow(argument: str, tool: str) -> dict[str, Any]:
        rule = {"tools": ["*"], "arguments": [argument], "holds": "Text"}
        return {"outboundArguments": [rule], "sensitiveTools": [tool]}

    def values(tool: str) -> list[dict[str, Any]]:
        return [{"tools": [tool], "fields": [{"name": tool, "type": "Time"}]}]

    kept = objects(server=server(tools=TOOLS, dataFlow=flow("url", "a"), extraction=values("a")))
    now = objects(server=server(tools=TOOLS, dataFlow=flow("text", "b"), extraction=values("b")))
    found = of_server(serving(kept, now))
    assert (found.data_flow.outbound_of("x"), found.data_flow.sensitive) == (frozenset({"url", "text"}), ("a", "b"))
    assert [one.tools for one in found.extraction] == [("b",), ("a",)]
    without = of_server(serving(kept, objects(server=server(tools=TOOLS))))
    assert (without.data_flow.sensitive, len(without.extraction)) == (("a",), 1)
    since = of_server(serving(objects(server=server(tools=TOOLS)), now))
    assert (since.data_flow.sensitive, len(since.extraction)) == (("b",), 1)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (["get"], ["get"], ("get",)),
        (["get"], ["list"], ()),
        (["get_*"], ["get_pods", "list"], ("get_pods",)),
        (["*"], ["get_*"], ("get_*",)),
        (["a*"], ["*b"], ()),
        (["a*c"], ["a*b*c"], ("a*b*c",)),
    ],
)
def test_patterns_that_both_lists_cover(one: list[str], other: list[str], both: tuple[str, ...]) -> None:
    assert covered_by_both(one, other) == both
    assert set(covered_by_both(other, one)) == set(both)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"objects": [], "places": []}', '{"objects": [{"kind": "Chain"}]}'])
def test_a_stored_revision_that_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(SnapshotUnreadable):
        Snapshot.load(text)


def test_tools_that_are_approved_now_are_those_of_the_serving_revision_and_make_no_new_one() -> None:
    def pinned(digest: str, state: str) -> MCPServer:
        known = MCPServerStatus(pinned_tools=(PinnedTool(name="get", digest=digest, state=state),))  # type: ignore[arg-type]
        return server(tools=TOOLS, pin="Approved").model_copy(update={"status": known})

    trusted, changed = pinned("a" * 64, "Trusted"), pinned("b" * 64, "Changed")
    assert digest(*objects(server=trusted)) == digest(*objects(server=changed)) == digest(*objects())
    assert of_server(serving(objects(), objects(server=trusted))).pin.trusted == (("get", "a" * 64),)
    assert of_server(serving(objects(server=trusted), objects(server=changed))).pin.trusted == ()
    assert of_server(serving(objects(server=trusted), objects())).pin is None
