"""Stages of kind Action in a plan: what refuses one, and what the frozen plan says of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tarsy.plan.errors import PlanInvalid
from tarsy.plan.model import Plan, StagePlan
from tarsy.resources.meta import AnyResource
from unit.plan.builders import agent, alert, chain, plan_of, provider, selected, server, stage

LOOK = stage("triage", name="look")
TRIAGE = agent("triage", mcpServers=selected("kube"))


def act(*agents: Any, **more: Any) -> dict[str, Any]:
    return stage(*(agents or ("actor",)), name="act", kind="Action", **more)


def actor(policy: str | None = "Approve", **more: Any) -> AnyResource:
    return agent("actor", **{"mcpServers": selected("kube"), "toolPolicy": policy, **more})


def made(*stages: dict[str, Any], of: AnyResource | None = None, on: str | None = "All", **brought: Any) -> Plan:
    objects = [provider(), TRIAGE, of or actor(), server(toolPolicy=on), chain(stages=list(stages))]
    return plan_of(objects, alert(**brought))


def errors(
    *stages: dict[str, Any], of: AnyResource | None = None, on: str | None = "All", **brought: Any
) -> dict[str, str]:
    with pytest.raises(PlanInvalid) as raised:
        made(*stages, of=of, on=on, **brought)
    return {error.field: error.message for error in raised.value.errors}


def test_the_frozen_plan_says_which_stage_acts() -> None:
    plan = made(LOOK, act())
    assert [stage.acts for stage in plan.stages] == [None, True]
    assert Plan.model_validate_json(plan.dump()) == plan


def test_code_that_does_not_know_the_field_refuses_the_plan() -> None:
    older = {**made(LOOK, act()).stages[1].model_dump(mode="json"), "newer": True}
    with pytest.raises(ValidationError, match="newer"):
        StagePlan.model_validate(older)


@pytest.mark.parametrize(("of_server", "of_agent"), [("All", "Approve"), ("Approve", "All"), ("Approve", "Approve")])
def test_people_decide_where_the_stricter_policy_says_so(of_server: str, of_agent: str) -> None:
    assert made(LOOK, act(), of=actor(of_agent), on=of_server).stages[1].acts


def test_an_agent_whose_calls_nobody_approves_is_refused() -> None:
    (message,) = errors(LOOK, act(), of=actor("All")).values()
    assert message == (
        "agent actor of stage act (kind Action) may call tools of kube without the approval of people; set toolPolicy: "
        "Approve on the Agent or on the MCPServer"
    )


@pytest.mark.parametrize("policy", [None, "ReadOnly"])
def test_an_agent_that_can_only_read_is_refused(policy: str | None) -> None:
    found = errors(LOOK, act(), of=actor(policy))
    assert "has no tool that people can approve" in found["spec.stages[1].agents[0]"]


def test_an_agent_without_servers_is_refused() -> None:
    found = errors(LOOK, act(), of=agent("actor", toolPolicy="Approve"))
    assert "has no tool that people can approve" in found["spec.stages[1].agents[0]"]


def test_a_sub_agent_may_not_act_without_people_either() -> None:
    free = agent("helper", mcpServers=selected("kube"), toolPolicy="All", description="helps")
    asked = {"name": "actor", "subAgents": [{"agentRef": {"name": "helper"}}]}
    objects = [provider(), TRIAGE, actor(), free, server(toolPolicy="All"), chain(stages=[LOOK, act(asked)])]
    with pytest.raises(PlanInvalid) as raised:
        plan_of(objects)
    (error,) = raised.value.errors
    assert "agent helper of stage act (kind Action) may call tools of kube without the approval" in error.message


@pytest.mark.parametrize("first", [(), ({"name": "changes", "kind": "Changes"},)])
def test_it_needs_a_stage_before_it_whose_agents_investigate(first: tuple[dict[str, Any], ...]) -> None:
    if not first:
        with pytest.raises(ValidationError, match="cannot be the first"):
            made(act(), LOOK)
        return
    found = errors(*first, act(), LOOK)
    why = "stage act acts on a finding, but no earlier stage has one; put a stage of kind Agents before it"
    assert found == {"spec.stages[1].kind": why}
    assert made(*first, LOOK, act()).stages[2].acts


def test_tools_that_an_alert_brings_are_held_to_the_same() -> None:
    assert made(LOOK, act(), mcpServers=selected("kube")).stages[1].acts
    found = errors(LOOK, act(), of=actor("Approve"), on="ReadOnly", mcpServers=selected("kube"))
    assert "has no tool that people can approve" in found["spec.stages[1].agents[0]"]
