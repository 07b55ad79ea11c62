"""InvestigationDefaults: what holds in a namespace where nothing nearer says otherwise.

Decision: one a namespace, and its name is `default`, so there is never a question of which one counts.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Model, ObjectName, Rule
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    Concurrency,
    ConfigStatus,
    ExecutiveSummarySettings,
    Iterations,
    LocalRunbook,
    Strategy,
    SuccessPolicy,
    Timeouts,
)

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
    timeouts: Timeouts | None = Field(default=None, description="Time limits of runs.")
    max_concurrent: Concurrency | None = Field(
        default=None, description="How many runs there may be at once in this namespace."
    )
    executive_summary: ExecutiveSummarySettings | None = Field(
        default=None, description="The short summary at the end of runs."
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
