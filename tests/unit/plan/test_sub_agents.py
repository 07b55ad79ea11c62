"""Sub-agents in the frozen plan: made as the agents of their stage, under the alert's selection and every policy."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tarsy.cli.plans.tree import tree
from tarsy.controllers.runs.parked import planned_servers
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import AgentPlan, DelegationPlan, Plan
from tarsy.plan.policy import ToolPolicy
from tarsy.plan.reach import read_plan
from tarsy.plan.resolve import PlanRequest, explain_plan
from unit.plan.builders import LIBRARY, OPEN, TEAM, agent, alert, chain, plan_of, provider, selected, server, stage


def slot(*names: str, **more: Any) -> dict[str, Any]:
    return {"name": "triage", "subAgents": [{"agentRef": {"name": name}} for name in names or ("reader",)], **more}


def reader(name: str = "reader", namespace: str = "team-a", **spec: Any) -> Any:
    return agent(name, namespace, **{"description": "reads", "mcpServers": selected("kube"), **spec})


def resolved(*more: Any, of: dict[str, Any] | None = None, what: Any = None, **spec: Any) -> Plan:
    objects = [chain(stages=[stage(of or slot())], **spec), agent(), provider(), server(), *more]
    return plan_of(objects, what)


def delegation(plan: Plan) -> DelegationPlan:
    found = plan.stages[0].agents[0].delegation
    assert found is not None
    return found


def only(plan: Plan) -> AgentPlan:
    return delegation(plan).agents[0].agent


def test_a_sub_agent_has_its_own_tools_strategy_and_limits() -> None:
    plan = resolved(reader(strategy="react", maxIterations=7, instructions="be brief"))

    found = only(plan)
    assert (found.name, found.strategy, found.max_iterations) == ("reader", "react", 7)
    assert (found.instructions, [one.name for one in found.servers]) == ("be brief", ["kube"])
    assert (delegation(plan).concurrent, delegation(plan).dispatches) == (3, 10)
    assert (delegation(plan).agents[0].max_dispatches, delegation(plan).agents[0].description) == (10, "reads")


def test_limits_that_are_set_are_those_of_the_plan() -> None:
    of = slot(subAgentLimits={"concurrent": 2, "dispatches": 5, "depth": 1})
    of["subAgents"][0]["maxDispatches"] = 4

    found = delegation(resolved(reader(), of=of))

    assert (found.concurrent, found.dispatches, found.agents[0].max_dispatches) == (2, 5, 4)


def test_the_alerts_selection_of_tools_replaces_those_of_a_sub_agent() -> None:
    what = alert(mcpServers=[{"name": "kube", "tools": ["get"]}])

    found = only(resolved(reader(mcpServers=selected("other")), server("other"), what=what))

    assert [(one.name, one.selected) for one in found.servers] == [("kube", ("get",))]


@pytest.mark.parametrize("level", ["chain", "stage"])
def test_the_tools_of_chain_and_stage_are_those_of_a_sub_agent_too(level: str) -> None:
    spec = {"mcpServers": selected("other")}
    made = chain(stages=[stage(slot(), **(spec if level == "stage" else {}))], **(spec if level == "chain" else {}))

    found = only(plan_of([made, agent(), reader(), provider(), server(), server("other")]))

    assert [one.name for one in found.servers] == ["other"]


def test_what_the_entry_of_its_parent_sets_does_not_count_for_a_sub_agent() -> None:
    of = slot(mcpServers=selected("other"), strategy="react", maxIterations=3)

    found = only(resolved(reader(), server("other"), of=of))

    assert [one.name for one in found.servers] == ["kube"]
    assert (found.strategy, found.max_iterations) != ("react", 3)


def test_the_policies_of_server_and_sub_agent_hold_and_the_stricter_counts() -> None:
    loose = resolved(reader(toolPolicy="All"))
    strict = resolved(reader(toolPolicy=None))

    assert [one.policy for one in only(loose).servers] == [ToolPolicy.ALL]
    assert [one.policy for one in only(strict).servers] == [ToolPolicy.READ_ONLY]


def test_data_flow_and_evidence_of_a_server_are_those_of_every_agent_that_has_it() -> None:
    of = slot(mcpServers=selected("kube"))
    plan = resolved(reader(), of=of)

    assert only(plan).servers[0].data_flow == plan.stages[0].agents[0].servers[0].data_flow
    assert only(plan).servers[0].evidence == plan.stages[0].agents[0].servers[0].evidence


def test_the_objects_accounts_and_providers_of_sub_agents_are_those_of_the_plan() -> None:
    http = {"url": "http://127.0.0.1:1/mcp", "tokenAudience": "tools"}
    acting = server("act", transport={"type": "http", "http": http})
    plan = resolved(reader(mcpServers=selected("act"), serviceAccountName="reads"), acting)

    assert {(one.kind, one.name) for one in plan.objects} >= {("Agent", "reader"), ("MCPServer", "act")}
    assert [one.name for one in plan.agents][:2] == ["triage", "reader"]
    assert plan.accounts == {"reads"}


@pytest.mark.parametrize(
    ("made", "of", "where", "what"),
    [
        ([], slot(), "stages[0].agents[0].subAgents[0].agentRef.name", "reader"),
        ([reader(description=None)], slot(), "subAgents[0].agentRef.name", "has no spec.description"),
        ([reader()], slot(strategy="single-call"), "agents[0].subAgents", "calls no tools"),
        ([reader(mcpServers=selected("gone"))], slot(), "mcpServers[0].name", "gone"),
    ],
)
def test_a_sub_agent_that_cannot_be_had_is_an_error_of_the_plan(
    made: list[Any], of: dict[str, Any], where: str, what: str
) -> None:
    if of.get("strategy") == "single-call":
        of = {**slot()}
        base = [chain(stages=[stage(of)]), agent(strategy="single-call"), provider(), server(), *made]
    else:
        base = [chain(stages=[stage(of)]), agent(), provider(), server(), *made]

    with pytest.raises(PlanInvalid) as raised:
        plan_of(base)

    assert where in str(raised.value) and what in str(raised.value)


def test_a_run_that_waits_notices_that_a_server_of_a_sub_agent_is_gone() -> None:
    plan = resolved(reader(mcpServers=selected("other")), server("other"))

    assert [ref.name for ref in planned_servers(plan)] == ["other"]


def test_the_tree_of_a_plan_shows_sub_agents_under_their_agent_with_limits_and_tools() -> None:
    of = slot(subAgentLimits={"concurrent": 2, "dispatches": 5})
    objects = [chain(stages=[stage(of)]), agent(), reader(), provider(), server()]
    found = explain_plan(
        PlanRequest(
            namespace=TEAM, alert=alert(), chain=objects[0], catalog=ResourceCatalog(objects), library_namespace=None
        )
    )
    console = Console(width=200, record=True, file=StringIO())
    console.print(tree(found))
    lines = [line.strip() for line in console.export_text().splitlines()]

    assert any("2 at the same time, 5 dispatches" in line and "subAgentLimits" in line for line in lines)
    below = lines[next(i for i, line in enumerate(lines) if "sub-agent (at most 5) reader" in line) :]
    assert any("team-a/kube" in line for line in below)


def test_a_plan_without_sub_agents_has_no_field_that_older_workers_refuse() -> None:
    objects = [chain(), agent(), provider()]

    assert b"delegation" not in plan_of(objects).dump()


def test_a_plan_with_sub_agents_is_read_as_it_was_written() -> None:
    plan = resolved(reader())

    assert read_plan(plan.dump()) == plan


def test_servers_of_sub_agents_count_where_tools_act_with_the_rights_of_another_namespace() -> None:
    objects = [
        chain(namespace=LIBRARY, stages=[stage(slot())], allowedNamespaces=OPEN),
        agent(namespace=LIBRARY),
        reader(namespace=LIBRARY),
        provider(namespace=LIBRARY),
        server(namespace=LIBRARY),
    ]

    found = only(plan_of(objects)).servers[0]

    assert found.reach is not None and found.reach.foreign
