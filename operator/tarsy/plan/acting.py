"""Checks stages of kind Action: they act on a finding, and only by calls that people approve."""

from collections.abc import Sequence

from tarsy.plan.errors import FieldPath
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan
from tarsy.plan.policy import ToolPolicy
from tarsy.resources.v1alpha1.stage import Stage


def report_order(stages: Sequence[Stage], at: FieldPath, look: Lookup) -> None:
    """Reports stages of kind Action that no stage of kind Agents comes before.

    Args:
        stages: of the chain.
        at: their field.
        look: takes the errors.
    """
    found = False
    for index, stage in enumerate(stages):
        found = found or stage.investigates
        if stage.acts and not found:
            look.report(
                at[index] / "kind",
                f"stage {stage.name} acts on a finding, but no earlier stage has one; put a stage of kind Agents "
                f"before it",
            )


def report_policies(stage: Stage, agents: Sequence[AgentPlan], at: FieldPath, look: Lookup) -> None:
    """Reports agents of a stage of kind Action whose calls are not all decided by people.

    Args:
        stage: as declared.
        agents: those of the stage, without their sub-agents.
        at: field of the stage.
        look: takes the errors.
    """
    for index, agent in enumerate(agents):
        field = (at / "agents")[index]
        for member in agent.with_sub_agents:
            free = [server.name for server in member.servers if server.policy is ToolPolicy.ALL]
            if free:
                look.report(
                    field,
                    f"agent {member.name} of stage {stage.name} (kind Action) may call tools of {', '.join(free)} "
                    "without the approval of people; set toolPolicy: Approve on the Agent or on the MCPServer",
                )
        if not any(server.policy is not ToolPolicy.READ_ONLY for server in agent.servers):
            look.report(
                field,
                f"agent {agent.name} of stage {stage.name} (kind Action) has no tool that people can approve; give it "
                "an MCPServer with toolPolicy: Approve, and set toolPolicy: Approve on the Agent too",
            )
