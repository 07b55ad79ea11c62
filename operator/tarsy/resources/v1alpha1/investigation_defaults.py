"""InvestigationDefaults: the defaults of a namespace.

Decision: one object per namespace, always named `default`, so it is never unclear which one applies.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import AlertType, Model, ObjectName, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import (
    FALLBACK,
    MESSAGE_COLUMN,
    READY_COLUMNS,
    AcceptanceSeconds,
    Budget,
    Concurrency,
    ConfigStatus,
    ExecutiveSummarySettings,
    Fallback,
    Iterations,
    LocalRunbook,
    Loop,
    RunbookHost,
    Strategy,
    SuccessPolicy,
    SummarizationSettings,
    Timeouts,
)
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces

DEFAULTS_NAME = "default"


class InvestigationDefaultsSpec(Model):
    """Defaults of the namespace."""

    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of all agents.")
    default_alert_type: AlertType | None = Field(
        default=None,
        description="Alert type of alerts that arrive for this namespace without one: over HTTP, through `kubectl "
        "tarsy alerts submit --text`, or from a sender whose AlertRoute sets none. Alert objects always have a "
        "type.",
    )
    default_chain: ObjectName | None = Field(
        default=None,
        description="Name of the Chain for Alerts of this namespace that name no Chain and whose type no Chain "
        "handles. It takes an Alert five minutes after its creation.",
    )
    strategy: Strategy | None = Field(default=None, description="Strategy of all agents.")
    max_iterations: Iterations | None = Field(default=None, description="Maximum iterations of all agents.")
    success_policy: SuccessPolicy | None = Field(
        default=None,
        description="Success policy of stages. Any: one agent must succeed. All: every agent must succeed.",
    )
    runbook: LocalRunbook | None = Field(default=None, description="Runbook for alerts without one.")
    runbook_hosts: Annotated[tuple[RunbookHost, ...], Unique("host")] = Field(
        default=(),
        max_length=32,
        description="Hosts from which alerts may name runbooks by URL, in addition to the operator's own list.",
    )
    alert_masking: Masking | None = Field(
        default=None, description="Masking of alerts and runbooks. Defaults to the masking of tool servers."
    )
    model_output_masking: Masking | None = Field(
        default=None,
        description="Masking of model output before users and the record see it. Defaults to the masking of tool "
        "servers.",
    )
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    timeouts: Timeouts | None = Field(default=None, description="Time limits of runs.")
    loop: Loop | None = Field(default=None, description="Limits of the agent loop.")
    budget: Budget | None = Field(default=None, description="Usage limits of a run, where its chain sets none.")
    acceptance_timeout_seconds: AcceptanceSeconds | None = Field(
        default=None,
        description="Seconds that an Investigation or a ChatMessage waits for acceptance before it ends as "
        "NotAccepted. Defaults to 3600. Alerts wait for a Chain without this limit.",
    )
    max_concurrent: Concurrency | None = Field(default=None, description="Maximum concurrent runs in this namespace.")
    executive_summary: ExecutiveSummarySettings | None = Field(
        default=None, description="Settings of the short summary written when an investigation finishes."
    )
    summarization: SummarizationSettings | None = Field(
        default=None, description="Settings of the summaries of tool results that are too long for the conversation."
    )
    allowed_precedent_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Other namespaces whose runs may use the investigations of this namespace as precedents, if "
        "their author may read them. Defaults to none.",
    )


class InvestigationDefaults(Resource[InvestigationDefaultsSpec, ConfigStatus]):
    """Defaults of a namespace, in the one object named default."""

    KIND: ClassVar[str] = "InvestigationDefaults"
    PLURAL: ClassVar[str] = "investigationdefaults"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tdefaults",)
    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"self.metadata.name == '{DEFAULTS_NAME}'",
            "metadata.name of InvestigationDefaults must be default; a namespace has only this one",
            lambda self: self.metadata.name == DEFAULTS_NAME,
        ),
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Provider", ".spec.llmProvider", description="LLMProvider of all agents."),
        Column("Strategy", ".spec.strategy", description="Strategy of all agents."),
        AGE,
        MESSAGE_COLUMN,
    )

    kind: Literal["InvestigationDefaults"] = "InvestigationDefaults"
    spec: InvestigationDefaultsSpec = InvestigationDefaultsSpec()
    status: ConfigStatus = ConfigStatus()
