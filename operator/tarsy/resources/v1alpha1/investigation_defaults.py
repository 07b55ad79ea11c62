"""InvestigationDefaults: what holds in a namespace where nothing nearer says otherwise.

Decision: one a namespace, and its name is `default`, so there is never a question of which one counts.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Model, ObjectName, Rule, Unique
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

DEFAULTS_NAME = "default"


class InvestigationDefaultsSpec(Model):
    """The defaults of the namespace."""

    llm_provider: ObjectName | None = Field(default=None, description="Name of the LLMProvider of agents.")
    strategy: Strategy | None = Field(default=None, description="Strategy of agents.")
    max_iterations: Iterations | None = Field(default=None, description="Limit of iterations of agents.")
    success_policy: SuccessPolicy | None = Field(
        default=None, description="Of stages. Any: one agent must succeed; All: each must."
    )
    runbook: LocalRunbook | None = Field(default=None, description="How to go about an alert that brings no runbook.")
    runbook_hosts: Annotated[tuple[RunbookHost, ...], Unique("host")] = Field(
        default=(),
        max_length=32,
        description="Hosts that alerts may name runbooks of by URL, beside the operator's own.",
    )
    alert_masking: Masking | None = Field(
        default=None, description="What is taken out of alerts and runbooks; as for tool servers when not set."
    )
    model_output_masking: Masking | None = Field(
        default=None,
        description="What is taken out of what models say, before people and the record get it; as for tool servers "
        "when not set.",
    )
    fallback: Fallback | None = Field(default=None, description=FALLBACK)
    timeouts: Timeouts | None = Field(default=None, description="Time limits of runs.")
    loop: Loop | None = Field(default=None, description="How the loops of agents go on, and when they stop.")
    budget: Budget | None = Field(default=None, description="What a run may use, where its chain does not say.")
    acceptance_timeout_seconds: AcceptanceSeconds | None = Field(
        default=None,
        description="Seconds that an Investigation or a ChatMessage which cannot be accepted waits for that to be "
        "mended, before it ends as NotAccepted; 3600 when not set. Alerts wait for a Chain without this limit.",
    )
    max_concurrent: Concurrency | None = Field(
        default=None, description="How many runs there may be at once in this namespace."
    )
    executive_summary: ExecutiveSummarySettings | None = Field(
        default=None, description="The short summary at the end of runs."
    )
    summarization: SummarizationSettings | None = Field(
        default=None, description="The summaries of results of tools that are too long for a conversation."
    )


class InvestigationDefaults(Resource[InvestigationDefaultsSpec, ConfigStatus]):
    """The defaults of a namespace, in the one object named default."""

    KIND: ClassVar[str] = "InvestigationDefaults"
    PLURAL: ClassVar[str] = "investigationdefaults"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tdefaults",)
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.metadata.name == '{DEFAULTS_NAME}'",
            "metadata.name of InvestigationDefaults must be default; a namespace has only this one",
            lambda self: self.metadata.name == DEFAULTS_NAME,
        ),
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Provider", ".spec.llmProvider", description="The LLMProvider of agents."),
        Column("Strategy", ".spec.strategy", description="Strategy of agents."),
        AGE,
        MESSAGE_COLUMN,
    )

    kind: Literal["InvestigationDefaults"] = "InvestigationDefaults"
    spec: InvestigationDefaultsSpec = InvestigationDefaultsSpec()
    status: ConfigStatus = ConfigStatus()
