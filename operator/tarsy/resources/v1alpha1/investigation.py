"""Investigation: one run of one chain over one alert.

Decision: its status has a fixed upper size (64 KiB as the API server stores it), so every text in it is cut when it
is set instead of refused, and it holds summaries and a pointer to the record, never what the record holds.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import AlertType, LabelName, Lenient, Model, ObjectName, Rule, Time, Uid, clipped
from tarsy.resources.v1alpha1.alert import AlertContent, Severity
from tarsy.resources.v1alpha1.common import (
    DESIRED_STATE_ONLY_FORWARD,
    STAMPED,
    WEEK_SECONDS,
    AcceptanceSeconds,
    Author,
    Budget,
    DesiredState,
    NameRef,
    ObjectRef,
    TtlSeconds,
    immutable,
)

Phase = Literal["Pending", "Queued", "Running", "Concluding", "Succeeded", "Failed", "Cancelled", "TimedOut"]
StagePhase = Literal["Pending", "Running", "Succeeded", "Failed", "Cancelled", "TimedOut"]
StageKind = Literal["Investigation", "Synthesis", "ExecutiveSummary"]
Confidence = Literal["High", "Medium", "Low", "Inconclusive"]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
MAX_STAGES = 20


class InvestigationSpec(Model):
    """What is investigated, and what shall become of the run."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.alertRef) != has(self.alert)",
            "set exactly one of alertRef (the name of an Alert) and alert (the alert itself); retryOf alone brings no "
            "alert: copy that of the Investigation that it names",
            lambda self: (self.alert_ref is None) != (self.alert is None),
        ),
        DESIRED_STATE_ONLY_FORWARD,
        *immutable(
            "Investigation", "alertRef", "alert", "chainRef", "retryOf", "budget", "author", "acceptanceTimeoutSeconds"
        ),
    )

    alert_ref: ObjectRef | None = Field(default=None, description="The Alert to investigate.")
    alert: AlertContent | None = Field(default=None, description="The alert itself, instead of an Alert object.")
    chain_ref: NameRef | None = Field(
        default=None, description="The chain to run, whatever the alert says; first in this namespace."
    )
    retry_of: ObjectRef | None = Field(default=None, description="The Investigation that this one runs again.")
    budget: Budget | None = Field(
        default=None, description="What the run may use; where its chain says less, that counts."
    )
    author: Author | None = Field(default=None, description=STAMPED)
    desired_state: DesiredState = Field(
        default="Running",
        description="Running; Concluded: stop now and summarize what is known; Cancelled. Only forward.",
    )
    acceptance_timeout_seconds: AcceptanceSeconds | None = Field(
        default=None,
        description="Seconds that a run which cannot be accepted (its plan is wrong, a right is missing) waits for "
        "that to be mended; then it ends as NotAccepted. That of InvestigationDefaults when not set, else 3600.",
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds from the end of the run to the object's deletion."
    )


class StageSummary(Lenient):
    """A stage of the run in brief."""

    name: LabelName = Field(description="Name of the stage.")
    kind: StageKind = Field(default="Investigation", description="What the stage does.")
    phase: StagePhase = Field(description="Where it is.")
    agents: int = Field(default=0, ge=0, description="How many agents it has.")
    started_at: Time | None = Field(default=None, description="When it started.")
    finished_at: Time | None = Field(default=None, description="When it ended.")
    message: Annotated[str, clipped(256), StringConstraints(max_length=256)] | None = Field(
        default=None, description="Why it ended as it did."
    )


class UsageSummary(Lenient):
    """What the run used so far."""

    model_calls: Count = Field(default=0, description="Calls of models.")
    tool_calls: Count = Field(default=0, description="Calls of tools.")
    input_tokens: Count = Field(default=0, description="Tokens sent to models.")
    output_tokens: Count = Field(default=0, description="Tokens answered by models.")
    thinking_tokens: Count = Field(default=0, description="Tokens that models spent on thinking.")
    total_tokens: Count = Field(default=0, description="All tokens, as the providers count them.")
    cost_usd: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None,
        alias="costUSD",
        description="US dollars of all model calls, at the rates of their LLMProviders; 0.0123+ is at least so much: "
        "of some calls the cost is not known. Not set when nothing is known.",
    )


class FindingSummary(Lenient):
    """The finding in brief."""

    summary: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] = Field(
        default="", description="What was found."
    )
    confidence: Confidence | None = Field(
        default=None, description="How sure the agents are of it, as far as their evidence carries that."
    )
    claims: Count | None = Field(default=None, description="Statements of the finding; not set when it makes none.")
    supported_claims: Count | None = Field(
        default=None, description="Statements with a citation that was found in the record."
    )


class LastError(Lenient):
    """The last error of the run."""

    reason: Annotated[str, clipped(64), StringConstraints(max_length=64)] = Field(
        default="", description="The kind of error, in one CamelCase word."
    )
    message: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] = Field(
        default="", description="What happened, and what to do about it."
    )


class RecordRef(Lenient):
    """Where the full record of the run is."""

    id: Uid = Field(description="The run's id in the database.")


class InvestigationStatus(Status):
    """How the run goes."""

    phase: Phase | None = Field(
        default=None,
        description="For people: Pending (not accepted yet), Queued (waits for a worker), Running, Concluding "
        "(told to stop and summarize), Succeeded, Failed, Cancelled, TimedOut.",
    )
    alert_type: AlertType | None = Field(default=None, description="The type of the alert.")
    severity: Severity | None = Field(default=None, description="The severity of the alert, where it has one.")
    chain: ObjectName | None = Field(default=None, description="Name of the chain that runs.")
    chain_namespace: LabelName | None = Field(default=None, description="Namespace of the chain that runs.")
    plan_hash: Annotated[str, StringConstraints(max_length=80)] | None = Field(
        default=None, description="Hash of the plan that was frozen when the run was accepted."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="How many times a worker has taken the run up; more than 1 after a crash."
    )
    progress: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Finished stages of all, such as 2/3."
    )
    current_stage: LabelName | None = Field(default=None, description="Name of the stage that runs.")
    stages: tuple[StageSummary, ...] = Field(
        default=(), max_length=MAX_STAGES, description="The stages in brief; the last 20 of them."
    )
    usage: UsageSummary | None = Field(default=None, description="What the run used so far.")
    finding: FindingSummary | None = Field(default=None, description="The finding in brief.")
    last_error: LastError | None = Field(default=None, description="The last error of the run.")
    queued_at: Time | None = Field(default=None, description="When it was queued.")
    started_at: Time | None = Field(default=None, description="When a worker first took it up.")
    finished_at: Time | None = Field(default=None, description="When it ended.")
    duration: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="From start to end, such as 2m13s."
    )
    record: RecordRef | None = Field(default=None, description="Where the full record of the run is.")
    record_revision: Count | None = Field(
        default=None, description="The revision of the record that this status was computed from."
    )


class Investigation(Resource[InvestigationSpec, InvestigationStatus]):
    """One run of one chain over one alert. Wait for it: kubectl wait --for=condition=Finished inv/NAME."""

    KIND: ClassVar[str] = "Investigation"
    PLURAL: ClassVar[str] = "investigations"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("inv",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Alert type", ".status.alertType", description="The type of the alert."),
        Column("Severity", ".status.severity", description="How severe the alert is."),
        Column("Chain", ".status.chain", description="The chain that runs."),
        Column("Phase", ".status.phase", description="Where the run is."),
        Column("Progress", ".status.progress", description="Finished stages of all."),
        Column("Confidence", ".status.finding.confidence", description="How sure the agents are of what was found."),
        Column("Tokens", ".status.usage.totalTokens", "integer", "All tokens so far."),
        Column("Cost", ".status.usage.costUSD", description="US dollars so far; with a +: at least."),
        AGE,
        Column("Stage", ".status.currentStage", description="The stage that runs.", wide=True),
        Column("Duration", ".status.duration", description="From start to end.", wide=True),
        Column(
            "Reason",
            '.status.conditions[?(@.type=="Succeeded")].reason',
            description="How it ended, or NotAccepted while it waits.",
            wide=True,
        ),
        Column("Author", ".spec.author.username", description="Whose run it is.", wide=True),
        Column("Finding", ".status.finding.summary", description="What was found.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.alertRef.name", ".spec.chainRef.name")

    kind: Literal["Investigation"] = "Investigation"
    status: InvestigationStatus = InvestigationStatus()
