"""InvestigationQuota: what the runs of a namespace may spend in a period, and what happens when it is spent.

Decision: limits may change at any time, and what is spent stays. A quota that cannot be read keeps the limits that it
had before.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Lenient, Model, Time, ValidationRule
from tarsy.resources.v1alpha1.common import MESSAGE_COLUMN, READY_COLUMNS, ConfigStatus

HardCount = Annotated[int, Field(ge=0, le=1_000_000_000_000, json_schema_extra={"format": "int64"})]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Percent = Annotated[int, Field(ge=0, le=100)]
Amounts = Annotated[str, StringConstraints(max_length=128)]
Dollars = Annotated[str, StringConstraints(max_length=32)]


class QuotaHard(Model):
    """Limits of all runs of the namespace in one period."""

    RULES = (
        ValidationRule(
            "has(self.dollars) || has(self.tokens) || has(self.investigations)",
            "set at least one of dollars, tokens and investigations",
            lambda self: [self.dollars, self.tokens, self.investigations] != [None, None, None],
        ),
    )

    dollars: Annotated[float, Field(ge=0, le=1_000_000_000)] | None = Field(
        default=None,
        description="US dollars of all model calls. Requires rates on every LLMProvider: a call of unknown cost is "
        "refused.",
    )
    tokens: HardCount | None = Field(default=None, description="Input and output tokens of all model calls.")
    investigations: HardCount | None = Field(
        default=None, description="Investigations that start, replays included. Questions do not count."
    )


class QuotaShare(Model):
    """Percent of each limit that one kind of work may use."""

    questions: Percent = Field(default=50, description="Percent for questions about investigations (ChatMessages).")
    replays: Percent = Field(default=50, description="Percent for replays, samples of EvalRuns included.")
    schedules: Percent = Field(default=50, description="Percent for investigations of AlertSchedules.")


class InvestigationQuotaSpec(Model):
    """Limits, and the behaviour when one is reached."""

    period: Literal["Hour", "Day", "Week", "Month"] = Field(
        description="Calendar period after which counting starts anew. Periods follow UTC; weeks begin on Monday."
    )
    hard: QuotaHard = Field(
        description="Limits of a period. A model call first reserves its worst case, and is refused if spent and "
        "reserved amounts together would exceed a limit. Usage above the reservation counts as spent too."
    )
    warn_at: Annotated[int, Field(ge=1, le=100)] = Field(
        default=80, description="Percent of a limit at which the condition Warned becomes True."
    )
    on_exceeded: Literal["Queue", "Reject", "TriageOnly"] = Field(
        default="Queue",
        description="What happens to investigations that exceed the quota. Queue: they wait for the next period. "
        "Reject: they fail with the reason QuotaExceeded. TriageOnly: only the stages of kind Changes run, "
        "without a model.",
    )
    share: QuotaShare = Field(
        default=QuotaShare(), description="Limits work that can wait, so that the rest of the quota is left for alerts."
    )


class QuotaSpent(Lenient):
    """Usage in the current period."""

    dollars: Dollars = Field(default="0", description="US dollars of model calls that have ended.")
    tokens: Count = Field(default=0, description="Tokens of model calls that have ended.")
    investigations: Count = Field(default=0, description="Investigations that have started.")
    summary: Amounts = Field(default="", description="The amounts that are limited, in one line.")


class QuotaReserved(Lenient):
    """Worst case of the model calls that are under way."""

    dollars: Dollars = Field(default="0", description="US dollars.")
    tokens: Count = Field(default=0, description="Tokens.")
    summary: Amounts = Field(default="", description="The amounts that are limited, in one line.")


class QuotaInForce(Lenient):
    """The limits in force."""

    dollars: Dollars | None = Field(default=None, description="US dollars.")
    tokens: Count | None = Field(default=None, description="Tokens.")
    investigations: Count | None = Field(default=None, description="Investigations.")
    summary: Amounts = Field(default="", description="The limits in one line.")


class InvestigationQuotaStatus(ConfigStatus):
    """Usage in the current period, at most a few seconds old."""

    period_start: Time | None = Field(default=None, description="Start of the current period.")
    period_end: Time | None = Field(default=None, description="End of the current period.")
    spent: QuotaSpent | None = Field(default=None, description="Usage in the current period.")
    reserved: QuotaReserved | None = Field(
        default=None,
        description="Worst case of the model calls in progress. Their actual usage replaces it when they end.",
    )
    hard: QuotaInForce | None = Field(default=None, description="The limits in force.")
    refusals: Count | None = Field(
        default=None, description="Model calls that were not made in the current period because they did not fit."
    )


class InvestigationQuota(Resource[InvestigationQuotaSpec, InvestigationQuotaStatus]):
    """Limits the spending of the investigations of its namespace in a period. All quotas of a namespace apply."""

    KIND: ClassVar[str] = "InvestigationQuota"
    PLURAL: ClassVar[str] = "investigationquotas"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tquota",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Period", ".spec.period", description="Calendar period, in UTC."),
        Column("Spent", ".status.spent.summary", description="Usage in the current period."),
        Column("Reserved", ".status.reserved.summary", description="Worst case of the calls in progress."),
        Column("Limit", ".status.hard.summary", description="The limits in force."),
        Column(
            "Exceeded", '.status.conditions[?(@.type=="Exceeded")].status', description="Whether a limit is exhausted."
        ),
        AGE,
        Column("On exceeded", ".spec.onExceeded", description="What happens to runs that exceed the quota.", wide=True),
        Column("Ends", ".status.periodEnd", description="End of the current period.", wide=True),
        *(Column(one.name, one.path, one.type, one.description, wide=True) for one in READY_COLUMNS),
        MESSAGE_COLUMN,
    )

    kind: Literal["InvestigationQuota"] = "InvestigationQuota"
    spec: InvestigationQuotaSpec
    status: InvestigationQuotaStatus = InvestigationQuotaStatus()
