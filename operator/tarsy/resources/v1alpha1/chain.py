"""Chain: stages, and the alert types they handle."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.brief_names import MAX_BRIEF
from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import AlertType, Model, ObjectName, Unique, ValidationRule, clipped
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
from tarsy.resources.v1alpha1.stage import Stage

Revision = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$", min_length=16, max_length=16)]
"""The first 16 hexadecimal digits of the digest of a revision."""


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
        description="When a new revision serves new runs. Immediate: at once. WhenPassed: after it has passed an "
        "EvalRun of the suite. Until then, new runs use the revision in status.servingRevision."
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
        description="Whether agents learn of earlier investigations of the same incident, workload or changed "
        "object, or with words in common. Off: they do not. Hint: their prompt contains at most three lines "
        "about them, marked as history and not as evidence."
    )
    scope: Literal["Namespace", "Granted"] = Field(
        default="Namespace",
        description="Namespaces of these investigations. Namespace: that of the run. Granted: also those whose "
        "InvestigationDefaults grant it by allowedPrecedentNamespaces. The author of the run must be allowed to read "
        "each of them.",
    )


class ChainSpec(Model):
    """Stages of the chain and settings common to all of them."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.stages[0].kind) || self.stages[0].kind != 'Action'",
            "a stage of kind Action acts on a finding, so it cannot be the first; put a stage of kind Agents before it",
            lambda self: not self.stages[0].acts,
            field="stages",
        ),
    )

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
        description="Runbook for alerts without one. For runs in another namespace, that namespace can override it: "
        "first with the key runbook.md of a ConfigMap named tarsy-runbook-CHAIN with the label "
        "tarsy.dev/runbook, then with its default runbook.",
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
        default=None, description="When a new revision of the chain serves new runs. Defaults to immediately."
    )
    precedents: PrecedentSettings | None = Field(
        default=None, description="Use of earlier investigations as hints. Off by default."
    )
    pre_approved: tuple[PreApproval, ...] = Field(
        default=(),
        max_length=MAX_PRE_APPROVED,
        description="Calls that count as approved. The author of an entry needs the verb approve on its MCPServer.",
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
        default=None, description="Revision that new runs use, if spec.promotion is set."
    )
    candidate_revision: Revision | None = Field(
        default=None, description="Revision of the current objects, where it does not serve yet."
    )
    calibration: Annotated[str, clipped(96), StringConstraints(max_length=96)] | None = Field(
        default=None,
        description="Right and reviewed findings by confidence, such as High 12/20, Low 5/9.",
    )


class Chain(Resource[ChainSpec, ChainStatus]):
    """Stages of agents that investigate an alert, one stage after the other."""

    KIND: ClassVar[str] = "Chain"
    PLURAL: ClassVar[str] = "chains"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tchain",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Alert types", ".status.alertTypes", description="Alert types that this chain handles."),
        Column(
            "Serving", ".status.servingRevision", description="Revision that new runs use, if spec.promotion is set."
        ),
        Column(
            "Promoted",
            '.status.conditions[?(@.type=="Promoted")].reason',
            description="Reason why the newest revision serves or does not serve, if spec.promotion is set.",
        ),
        AGE,
        Column("Description", ".spec.description", description="Purpose of the chain.", wide=True),
        NOTIFY_COLUMN,
        Column("Right", ".status.calibration", description="Right and reviewed findings, by confidence.", wide=True),
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
