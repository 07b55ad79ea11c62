"""Chain: stages of agents, and the alert types they are for.

Decision: a stage lists agents or repeats one of them (replicas), never both, so an agent's execution has one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import AlertType, LabelName, Model, ObjectName, Rule, Unique, clipped
from tarsy.resources.v1alpha1.common import (
    FALLBACK,
    MESSAGE_COLUMN,
    NOTIFY_COLUMN,
    READY_COLUMNS,
    AllowedNamespaces,
    Budget,
    Concurrency,
    ConfigStatus,
    ExecutiveSummarySettings,
    Fallback,
    Iterations,
    Loop,
    McpSelections,
    Seconds,
    Strategy,
    SuccessPolicy,
    SummarizationSettings,
    Timeouts,
)
from tarsy.resources.v1alpha1.notify import Notify

MAX_BRIEF = 64
"""Characters of the alert types in a column."""


class StageAgent(Model):
    """An agent of a stage, and what is different for it here."""

    name: ObjectName = Field(description="Name of the Agent.")
    display_name: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None, description="How it is called in the timeline; its name when not set."
    )
    llm_provider: ObjectName | None = Field(default=None, description="Name of its LLMProvider.")
    strategy: Strategy | None = Field(default=None, description="Its strategy.")
    max_iterations: Iterations | None = Field(default=None, description="Its limit of iterations.")
    mcp_servers: McpSelections | None = Field(default=None, description="Its MCP servers.")
    fallback: Fallback | None = Field(default=None, description=FALLBACK)


class Synthesis(Model):
    """How the results of several agents become one."""

    agent: ObjectName | None = Field(default=None, description="Name of the Agent that does it.")
    strategy: Strategy | None = Field(default=None, description="Its strategy: synthesis when not set.")
    llm_provider: ObjectName | None = Field(default=None, description="Name of its LLMProvider.")


class Stage(Model):
    """One step of a chain: its agents run side by side."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.replicas == 1 || size(self.agents) == 1",
            "replicas above 1 need exactly one agent; list the agents, or repeat one of them",
            lambda self: self.replicas == 1 or len(self.agents) == 1,
            field="replicas",
        ),
    )

    name: LabelName = Field(description="Name of the stage, unique in the chain.")
    agents: tuple[StageAgent, ...] = Field(
        min_length=1, max_length=10, description="The agents; more than one run side by side."
    )
    replicas: int = Field(default=1, ge=1, le=10, description="How many times the one agent is run.")
    success_policy: SuccessPolicy | None = Field(
        default=None, description="Any: one agent must succeed; All: each must."
    )
    max_iterations: Iterations | None = Field(default=None, description="Limit of iterations of its agents.")
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers of its agents.")
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    synthesis: Synthesis | None = Field(
        default=None, description="How the results of several agents become one; it always happens."
    )


class ChatSettings(Model):
    """Follow-up questions to an investigation."""

    enabled: bool = Field(default=True, description="Whether questions are taken.")
    agent: ObjectName | None = Field(
        default=None, description="Name of the Agent that answers; chat-agent, or a built-in one, when not set."
    )
    strategy: Strategy | None = Field(default=None, description="Its strategy.")
    llm_provider: ObjectName | None = Field(default=None, description="Name of its LLMProvider.")
    max_iterations: Iterations | None = Field(default=None, description="Its limit of iterations.")
    mcp_servers: McpSelections | None = Field(
        default=None, description="Its MCP servers; the chain's when not set, else those of all its stages."
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="One answer, from its start; investigationSeconds of the run when not set."
    )
    budget: Budget | None = Field(default=None, description="What one answer may use.")


class ChainSpec(Model):
    """The stages, and what holds for all of them."""

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="What the chain is for."
    )
    alert_types: Annotated[tuple[AlertType, ...], Unique()] = Field(
        default=(), max_length=100, description="The alert types it is for; none: only where chainRef names it."
    )
    stages: Annotated[tuple[Stage, ...], Unique("name")] = Field(
        min_length=1, max_length=20, description="The stages, in order; each sees the results of those before."
    )
    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of its agents.")
    strategy: Strategy | None = Field(default=None, description="Strategy of its agents.")
    max_iterations: Iterations | None = Field(default=None, description="Limit of iterations of its agents.")
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers of its agents.")
    success_policy: SuccessPolicy | None = Field(
        default=None, description="Of its stages. Any: one agent must succeed; All: each must."
    )
    executive_summary: ExecutiveSummarySettings | None = Field(
        default=None, description="The short summary at the end."
    )
    summarization: SummarizationSettings | None = Field(
        default=None, description="The summaries of results of tools that are too long for a conversation."
    )
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    timeouts: Timeouts | None = Field(default=None, description="Time limits of a run.")
    loop: Loop | None = Field(default=None, description="How the loops of agents go on, and when they stop.")
    budget: Budget | None = Field(default=None, description="What a run may use.")
    max_concurrent: Concurrency | None = Field(
        default=None, description="How many runs of this chain there may be at once."
    )
    alert_tools: Literal["Allowed", "Denied"] = Field(
        default="Allowed", description="Whether an alert may bring MCP servers and native tools of its own."
    )
    chat: ChatSettings | None = Field(default=None, description="Follow-up questions to its investigations.")
    notify: Notify = Field(default=(), description="Who is told how its investigations end.")
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Which other namespaces may run it; none when not set."
    )
    allowed_provider_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Namespaces whose InvestigationDefaults may name LLMProviders for runs in which tools act with the "
        "rights of this chain's namespace; none when not set. Such a provider receives what those tools read.",
    )


class ChainStatus(ConfigStatus):
    """Whether the chain can be used, and what it is for."""

    alert_types: Annotated[str, clipped(MAX_BRIEF), StringConstraints(max_length=MAX_BRIEF)] | None = Field(
        default=None, description="For people: the alert types that it is for, in brief."
    )


def in_brief(names: Sequence[str], limit: int = MAX_BRIEF) -> str | None:
    """The first names, as many as fit into `limit` characters, and how many more there are; None without a name."""
    if not names:
        return None
    for count in range(len(names), 0, -1):
        more = f", +{len(names) - count}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= limit:
            return text
    more = f"…, +{len(names) - 1}" if len(names) > 1 else "…"
    return names[0][: limit - len(more)] + more


class Chain(Resource[ChainSpec, ChainStatus]):
    """Stages of agents that investigate an alert, one stage after the other."""

    KIND: ClassVar[str] = "Chain"
    PLURAL: ClassVar[str] = "chains"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tchain",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Alert types", ".status.alertTypes", description="The alert types it is for."),
        AGE,
        Column("Description", ".spec.description", description="What it is for.", wide=True),
        NOTIFY_COLUMN,
        Column(
            "Reach",
            '.status.conditions[?(@.type=="ReachBound")].reason',
            description="Whether its tools are held to the namespace of the run, in runs of other namespaces.",
            wide=True,
        ),
        MESSAGE_COLUMN,
    )

    kind: Literal["Chain"] = "Chain"
    status: ChainStatus = ChainStatus()
