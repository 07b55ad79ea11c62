"""Stages of a Chain: the agents of a step with their sub-agents, or what rules compute.

Decision: a stage lists agents or repeats one of them (replicas), never both, so an agent's execution has one index.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import LabelName, Model, ObjectName, ValidationRule
from tarsy.resources.v1alpha1.common import (
    FALLBACK,
    Fallback,
    Iterations,
    McpSelections,
    NameRef,
    Strategy,
    SuccessPolicy,
)
from tarsy.resources.v1alpha1.escalation import Escalation
from tarsy.resources.v1alpha1.skill import SkillSelections

DEFAULT_DISPATCHES = 10
"""Maximum dispatches of an agent that sets none."""

CONCURRENT_SUB_AGENTS = 3
"""Maximum sub-agents that run at the same time, of an agent that sets none."""


class SubAgent(Model):
    """An agent that another agent may dispatch."""

    agent_ref: NameRef = Field(description="Agent in the namespace of the chain. It needs a description.")
    max_dispatches: Annotated[int, Field(ge=1, le=50)] | None = Field(
        default=None, description="Maximum dispatches of this agent. Defaults to those of all agents together."
    )


class SubAgentLimits(Model):
    """Limits of all sub-agents that one agent dispatches."""

    concurrent: Annotated[int, Field(ge=1, le=10)] | None = Field(
        default=None,
        description=f"Maximum sub-agents that run at the same time. Others wait. Defaults to {CONCURRENT_SUB_AGENTS}.",
    )
    dispatches: Annotated[int, Field(ge=1, le=50)] | None = Field(
        default=None, description=f"Maximum dispatches in all. Defaults to {DEFAULT_DISPATCHES}."
    )
    depth: Annotated[int, Field(ge=1, le=1)] | None = Field(
        default=None, description="Levels of sub-agents. Only 1: a sub-agent dispatches none."
    )


class StageAgent(Model):
    """An agent of a stage and its overrides for this stage."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.subAgentLimits) || (has(self.subAgents) && size(self.subAgents) > 0)",
            "subAgentLimits needs subAgents; list them, or remove the limits",
            lambda self: self.sub_agent_limits is None or len(self.sub_agents) > 0,
            field="subAgentLimits",
        ),
        ValidationRule(
            "!has(self.subAgents) || self.subAgents.all(one, "
            "self.subAgents.exists_one(other, other.agentRef.name == one.agentRef.name))",
            "subAgents must name each agent once",
            lambda self: len({one.agent_ref.name for one in self.sub_agents}) == len(self.sub_agents),
            field="subAgents",
        ),
        ValidationRule(
            "!has(self.subAgents) || self.subAgents.all(one, !has(one.maxDispatches) || one.maxDispatches <= "
            "(has(self.subAgentLimits) && has(self.subAgentLimits.dispatches) ? self.subAgentLimits.dispatches : "
            f"{DEFAULT_DISPATCHES}))",
            f"maxDispatches must not exceed subAgentLimits.dispatches (default {DEFAULT_DISPATCHES})",
            lambda self: all((one.max_dispatches or 0) <= self.most_dispatches for one in self.sub_agents),
            field="subAgents",
        ),
    )

    name: ObjectName = Field(description="Name of the Agent.")
    display_name: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None, description="Name of the agent in the timeline. Defaults to its name."
    )
    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of the agent.")
    strategy: Strategy | None = Field(default=None, description="Strategy of the agent.")
    max_iterations: Iterations | None = Field(default=None, description="Maximum iterations of the agent.")
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers of the agent.")
    skills: SkillSelections | None = Field(default=None, description="Skills of the agent, instead of its own.")
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    sub_agents: tuple[SubAgent, ...] = Field(
        default=(),
        max_length=10,
        description="Agents that this agent may dispatch while it investigates. They follow the settings of chain and "
        "stage, and the alert's selection of tools.",
    )
    sub_agent_limits: SubAgentLimits | None = Field(default=None, description="Limits of the sub-agents.")

    @property
    def most_dispatches(self) -> int:
        """Maximum dispatches of the agent."""
        set_ = self.sub_agent_limits.dispatches if self.sub_agent_limits is not None else None
        return DEFAULT_DISPATCHES if set_ is None else set_


class Synthesis(Model):
    """Settings of the synthesis, which merges the results of several agents."""

    agent: ObjectName | None = Field(default=None, description="Name of the Agent that performs the synthesis.")
    strategy: Strategy | None = Field(default=None, description="Strategy of the synthesis. Defaults to synthesis.")
    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of the synthesis.")


class ChangesSettings(Model):
    """Settings of a stage of kind Changes."""

    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount in the namespace of the run with which the objects are read. Without it, the stage "
        "reads nothing.",
    )
    window_seconds: Annotated[int, Field(ge=60, le=604_800)] = Field(
        default=14_400, description="Seconds before the onset during which changes count."
    )
    stop_when: Literal["Never", "Certain"] = Field(
        default="Never",
        description="Condition under which the run ends after this stage, without calling a model. Certain: a rule "
        "found a certain fault in the alert's target.",
    )


_CHANGES = "(has(self.kind) && self.kind == 'Changes')"
_ACTION = "(has(self.kind) && self.kind == 'Action')"
_OF_AGENTS = ("successPolicy", "maxIterations", "mcpServers", "fallback", "synthesis", "escalate")
"""Fields of a stage that only agents need."""


class Stage(Model):
    """One step of a chain: agents that run in parallel, or rules that examine the objects of the cluster."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"{_CHANGES} || (has(self.agents) && size(self.agents) > 0)",
            "agents must name at least one agent, unless kind is Changes",
            lambda self: self.reads_changes or len(self.agents) > 0,
            field="agents",
        ),
        ValidationRule(
            "self.replicas == 1 || !has(self.agents) || size(self.agents) <= 1",
            "replicas above 1 need exactly one agent; list the agents, or repeat one of them",
            lambda self: self.replicas == 1 or len(self.agents) <= 1,
            field="replicas",
        ),
        ValidationRule(
            f"!{_CHANGES} || ((!has(self.agents) || size(self.agents) == 0) && self.replicas == 1 && "
            + " && ".join(f"!has(self.{name})" for name in _OF_AGENTS)
            + ")",
            f"a stage of kind Changes calls no model; remove agents, replicas, {', '.join(_OF_AGENTS)}",
            lambda self: not self.reads_changes or not self.sets_agents,
            field="kind",
        ),
        ValidationRule(
            f"{_CHANGES} || !has(self.changes)",
            "changes belongs to a stage of kind Changes; set kind: Changes, or remove it",
            lambda self: self.reads_changes or self.changes is None,
            field="changes",
        ),
        ValidationRule(
            f"!{_ACTION} || ((!has(self.agents) || size(self.agents) <= 1) && self.replicas == 1 && "
            "!has(self.synthesis) && !has(self.escalate))",
            "a stage of kind Action has exactly one agent, so that no action is taken twice; list one agent, and "
            "remove replicas, synthesis and escalate",
            lambda self: not self.acts or (len(self.agents) <= 1 and not self.repeats),
            field="kind",
        ),
    )

    name: LabelName = Field(description="Name of the stage, unique in the chain.")
    kind: Literal["Agents", "Changes", "Action"] | None = Field(
        default=None,  # a default of the schema would be in every stored Chain, which older releases refuse to read
        description="Work of the stage. Agents: agents investigate. Changes: rules find faults in the objects of the "
        "namespace and rank recent changes, without a model. Action: one agent acts on the finding of the "
        "earlier stages through calls that people approve; it does not change the finding. Defaults to Agents.",
    )
    agents: tuple[StageAgent, ...] = Field(
        default=(), max_length=10, description="Agents of the stage, at least one. Several agents run in parallel."
    )
    changes: ChangesSettings | None = Field(default=None, description="Settings of a stage of kind Changes.")
    replicas: int = Field(default=1, ge=1, le=10, description="Number of parallel runs of the agent.")
    success_policy: SuccessPolicy | None = Field(
        default=None, description="Success policy. Any: one agent must succeed. All: every agent must succeed."
    )
    max_iterations: Iterations | None = Field(default=None, description="Maximum iterations of the stage's agents.")
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers of the stage's agents.")
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    synthesis: Synthesis | None = Field(
        default=None,
        description="How the agents' results are merged. Synthesis always runs when a stage has more than one agent.",
    )
    escalate: Escalation | None = Field(
        default=None,
        description="Runs the stage once more with another provider, if its finding calls for it. The second finding "
        "replaces the first.",
    )

    @property
    def reads_changes(self) -> bool:
        """Whether the stage is of kind Changes."""
        return self.kind == "Changes"

    @property
    def acts(self) -> bool:
        """Whether the stage is of kind Action."""
        return self.kind == "Action"

    @property
    def repeats(self) -> bool:
        """Whether its agents run several times, or others merge what they found."""
        return self.replicas != 1 or self.synthesis is not None or self.escalate is not None

    @property
    def investigates(self) -> bool:
        """Whether agents of the stage investigate."""
        return not self.reads_changes and not self.acts

    @property
    def sets_agents(self) -> bool:
        """Whether a field is set that only agents need."""
        settings = (self.success_policy, self.max_iterations, self.mcp_servers, self.fallback, self.synthesis)
        return bool(self.agents) or self.replicas != 1 or any(one is not None for one in (*settings, self.escalate))
