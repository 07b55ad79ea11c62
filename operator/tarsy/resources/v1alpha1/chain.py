"""Chain: stages, and the alert types they handle.

Decision: a stage lists agents or repeats one of them (replicas), never both, so an agent's execution has one index.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.brief_names import MAX_BRIEF
from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import AlertType, LabelName, Model, ObjectName, Unique, ValidationRule, clipped
from tarsy.resources.v1alpha1.common import (
    FALLBACK,
    MESSAGE_COLUMN,
    NOTIFY_COLUMN,
    READY_COLUMNS,
    Author,
    Budget,
    Concurrency,
    ConfigStatus,
    ExecutiveSummarySettings,
    Fallback,
    Iterations,
    LocalRunbook,
    Loop,
    McpSelections,
    NameRef,
    Seconds,
    Strategy,
    SuccessPolicy,
    SummarizationSettings,
    Timeouts,
)
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces
from tarsy.resources.v1alpha1.notify import Notify
from tarsy.resources.v1alpha1.pre_approval import MAX_PRE_APPROVED, PreApproval
from tarsy.resources.v1alpha1.skill import SkillSelections

Revision = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$", min_length=16, max_length=16)]
"""The first 16 hexadecimal digits of the digest of a revision."""


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
        description="ServiceAccount in the namespace of the run that the objects are read with. Without it, the stage "
        "reads nothing.",
    )
    window_seconds: Annotated[int, Field(ge=60, le=604_800)] = Field(
        default=14_400, description="Time before the onset in which changes count."
    )
    stop_when: Literal["Never", "Certain"] = Field(
        default="Never",
        description="When the run ends with this stage, without asking a model. Certain: a rule found a fault of the "
        "alert's target that is certain.",
    )


_CHANGES = "(has(self.kind) && self.kind == 'Changes')"
_OF_AGENTS = ("successPolicy", "maxIterations", "mcpServers", "fallback", "synthesis")
"""Fields of a stage that only agents need."""


class Stage(Model):
    """One step of a chain: agents that run in parallel, or what rules compute from the objects of the cluster."""

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
            f"a stage of kind Changes asks no model; remove agents, replicas, {', '.join(_OF_AGENTS)}",
            lambda self: not self.reads_changes or not self.sets_agents,
            field="kind",
        ),
        ValidationRule(
            f"{_CHANGES} || !has(self.changes)",
            "changes belongs to a stage of kind Changes; set kind: Changes, or remove it",
            lambda self: self.reads_changes or self.changes is None,
            field="changes",
        ),
    )

    name: LabelName = Field(description="Name of the stage, unique in the chain.")
    kind: Literal["Agents", "Changes"] | None = Field(
        default=None,  # a default of the schema would be in every stored Chain, which older releases refuse to read
        description="What the stage does. Agents: agents investigate. Changes: rules find faults in the objects of the "
        "namespace, and what changed is ranked, without a model. Defaults to Agents.",
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

    @property
    def reads_changes(self) -> bool:
        """Whether the stage is of kind Changes."""
        return self.kind == "Changes"

    @property
    def sets_agents(self) -> bool:
        """Whether a field is set that only agents need."""
        settings = (self.success_policy, self.max_iterations, self.mcp_servers, self.fallback, self.synthesis)
        return bool(self.agents) or self.replicas != 1 or any(one is not None for one in settings)


class ChatSettings(Model):
    """Settings of follow-up questions to an investigation."""

    enabled: bool = Field(default=True, description="Whether users may ask follow-up questions.")
    agent: ObjectName | None = Field(
        default=None, description="Name of the Agent that answers. Defaults to chat-agent, or to a built-in agent."
    )
    strategy: Strategy | None = Field(default=None, description="Strategy of the agent.")
    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of the agent.")
    max_iterations: Iterations | None = Field(default=None, description="Maximum iterations of the agent.")
    mcp_servers: McpSelections | None = Field(
        default=None,
        description="MCP servers of the agent. Defaults to those of the chain, else to those of all its stages.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None,
        description="Time limit of one answer, from its start. Defaults to the run's investigationSeconds.",
    )
    budget: Budget | None = Field(default=None, description="Usage limits of one answer.")


class PromotionOverride(Model):
    """Lets one revision of the chain serve without a passed evaluation."""

    revision: Revision = Field(description="Revision to serve, as in status.candidateRevision.")
    author: Author | None = Field(
        default=None,
        description="The user who set this override. Set by admission; leave it out. The override counts only while "
        "this user has the verb promote on the Chain.",
    )


class Promotion(Model):
    """When a new revision of the chain serves."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.policy != 'WhenPassed' || has(self.suiteRef)",
            "policy WhenPassed needs suiteRef; name an EvalSuite, or use policy Immediate",
            lambda self: self.policy != "WhenPassed" or self.suite_ref is not None,
            field="suiteRef",
        ),
    )

    policy: Literal["Immediate", "WhenPassed"] = Field(
        description="When a new revision serves. Immediate: at once. WhenPassed: when an EvalRun of the suite passed "
        "with it. Until then new runs use the revision in status.servingRevision."
    )
    suite_ref: NameRef | None = Field(
        default=None, description="EvalSuite in the same namespace that a revision must pass."
    )
    override: PromotionOverride | None = Field(
        default=None, description="Revision that serves without a passed evaluation. Requires the verb promote."
    )


class PrecedentSettings(Model):
    """Whether agents are told about earlier investigations."""

    use: Literal["Off", "Hint"] = Field(
        description="Whether agents are told about earlier investigations of the same incident, workload or changed "
        "object, or with words in common. Off: they are not. Hint: at most three lines, as history that is no evidence."
    )
    scope: Literal["Namespace", "Granted"] = Field(
        default="Namespace",
        description="Namespaces of these investigations. Namespace: that of the run. Granted: also those whose "
        "InvestigationDefaults grant it by allowedPrecedentNamespaces. The author of the run must be allowed to read "
        "each of them.",
    )


class ChainSpec(Model):
    """Stages of the chain and settings common to all of them."""

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Purpose of the chain."
    )
    alert_types: Annotated[tuple[AlertType, ...], Unique()] = Field(
        default=(),
        max_length=100,
        description="Alert types that this chain handles. If empty, the chain runs only where a chainRef names it.",
    )
    stages: Annotated[tuple[Stage, ...], Unique("name")] = Field(
        min_length=1,
        max_length=20,
        description="Stages, in order. Each stage receives the results of the previous ones.",
    )
    runbook: LocalRunbook | None = Field(
        default=None,
        description="Runbook for alerts that bring none. For runs in another namespace, the default runbook of that "
        "namespace takes precedence, and before it the key runbook.md of a ConfigMap there that is named "
        "tarsy-runbook-CHAIN and has the label tarsy.dev/runbook.",
    )
    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of the chain's agents.")
    strategy: Strategy | None = Field(default=None, description="Strategy of the chain's agents.")
    max_iterations: Iterations | None = Field(default=None, description="Maximum iterations of the chain's agents.")
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers of the chain's agents.")
    success_policy: SuccessPolicy | None = Field(
        default=None,
        description="Success policy of the stages. Any: one agent must succeed. All: every agent must succeed.",
    )
    executive_summary: ExecutiveSummarySettings | None = Field(
        default=None, description="Settings of the short summary written when an investigation finishes."
    )
    summarization: SummarizationSettings | None = Field(
        default=None, description="Settings of the summaries of tool results that are too long for the conversation."
    )
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    timeouts: Timeouts | None = Field(default=None, description="Time limits of a run.")
    loop: Loop | None = Field(default=None, description="Limits of the agent loop.")
    budget: Budget | None = Field(default=None, description="Usage limits of a run.")
    max_concurrent: Concurrency | None = Field(default=None, description="Maximum concurrent runs of this chain.")
    alert_tools: Literal["Allowed", "Denied"] = Field(
        default="Allowed", description="Whether an alert may bring its own MCP servers and native tools."
    )
    chat: ChatSettings | None = Field(default=None, description="Settings of follow-up questions.")
    notify: Notify = Field(default=(), description="Notification targets for the investigations of this chain.")
    promotion: Promotion | None = Field(
        default=None, description="When a new revision of the chain serves. Defaults to at once."
    )
    precedents: PrecedentSettings | None = Field(
        default=None, description="Whether agents are told about earlier investigations. Defaults to not."
    )
    pre_approved: tuple[PreApproval, ...] = Field(
        default=(),
        max_length=MAX_PRE_APPROVED,
        description="Calls that count as approved. Whoever writes an entry needs the verb approve on its MCPServer.",
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Other namespaces that may run this chain. Defaults to none."
    )
    allowed_provider_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Namespaces whose InvestigationDefaults may name LLMProviders for runs in which tools act with "
        "the rights of this chain's namespace. Such a provider receives the data that those tools read. Defaults "
        "to none.",
    )


class ChainStatus(ConfigStatus):
    """Readiness of the chain, and the revision that serves."""

    alert_types: Annotated[str, clipped(MAX_BRIEF), StringConstraints(max_length=MAX_BRIEF)] | None = Field(
        default=None, description="Alert types of the chain, abbreviated for display."
    )
    serving_revision: Revision | None = Field(
        default=None, description="Revision that new runs use, where spec.promotion is set."
    )
    candidate_revision: Revision | None = Field(
        default=None, description="Revision of the current objects, where it does not serve yet."
    )
    calibration: Annotated[str, clipped(96), StringConstraints(max_length=96)] | None = Field(
        default=None,
        description="Findings that people called right, of all with a verdict, by confidence: High 12/20, Low 5/9.",
    )


class Chain(Resource[ChainSpec, ChainStatus]):
    """Stages of agents that investigate an alert, one stage after the other."""

    KIND: ClassVar[str] = "Chain"
    PLURAL: ClassVar[str] = "chains"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tchain",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Alert types", ".status.alertTypes", description="Alert types that this chain handles."),
        Column("Serving", ".status.servingRevision", description="Revision that new runs use, where promotion is set."),
        Column(
            "Promoted",
            '.status.conditions[?(@.type=="Promoted")].reason',
            description="Why the newest revision serves, or does not, where promotion is set.",
        ),
        AGE,
        Column("Description", ".spec.description", description="Purpose of the chain.", wide=True),
        NOTIFY_COLUMN,
        Column("Right", ".status.calibration", description="Right findings of the reviewed ones.", wide=True),
        Column(
            "Calibrated",
            '.status.conditions[?(@.type=="Calibrated")].status',
            description="Whether findings with confidence High were right often enough.",
            wide=True,
        ),
        Column(
            "Reach",
            '.status.conditions[?(@.type=="ReachBound")].reason',
            description="Whether tool calls of runs in other namespaces are bound to the namespace of the run.",
            wide=True,
        ),
        MESSAGE_COLUMN,
    )

    kind: Literal["Chain"] = "Chain"
    status: ChainStatus = ChainStatus()
