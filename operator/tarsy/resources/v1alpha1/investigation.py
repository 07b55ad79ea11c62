"""Investigation: one run of one chain over one alert.

Decision: its status has a fixed upper size (64 KiB as the API server stores it). Every text in it is therefore
truncated when it is set, instead of refused. It holds summaries and a pointer to the record, never the content of the
record.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import (
    SHA256,
    AlertType,
    LabelName,
    Lenient,
    Model,
    ObjectName,
    Time,
    Uid,
    ValidationRule,
    clipped,
)
from tarsy.resources.v1alpha1.alert import AlertContent, Severity
from tarsy.resources.v1alpha1.common import (
    DESIRED_STATE_ONLY_FORWARD,
    STAMPED,
    WEEK_SECONDS,
    AcceptanceSeconds,
    Author,
    Budget,
    ConfigMapKeyRef,
    DesiredState,
    NameRef,
    ObjectRef,
    TtlSeconds,
    immutable,
)

Phase = Literal["Pending", "Queued", "Running", "Concluding", "Succeeded", "Failed", "Cancelled", "TimedOut"]
StagePhase = Literal["Pending", "Running", "Succeeded", "Failed", "Cancelled", "TimedOut"]
StageKind = Literal["Investigation", "Synthesis", "ExecutiveSummary", "Action"]
OnMiss = Literal["Refuse", "Live", "Simulate"]
Confidence = Literal["High", "Medium", "Low", "Inconclusive"]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
MAX_STAGES = 20


class ReplayOverrides(Model):
    """Differences of a replay from the recorded run."""

    chain_ref: NameRef | None = Field(
        default=None,
        description="Chain to run instead of the recorded one. Looked up first in this namespace. Required with "
        "cassetteRef, unless a Chain of this namespace or the library handles the type of its alert.",
    )
    llm_provider_ref: NameRef | None = Field(
        default=None, description="LLMProvider that all agents use instead of their own. Their fallbacks are not used."
    )


class EvalCaseRef(Model):
    """A stored case of an EvalSuite. EvalRuns set it."""

    suite_uid: Uid = Field(description="metadata.uid of the EvalSuite.")
    name: LabelName = Field(description="Name of the case.")
    digest: Annotated[str, StringConstraints(min_length=64, max_length=64, pattern=SHA256)] = Field(
        description="Digest of the stored recording."
    )


class Replay(Model):
    """Recorded run to replay: its tool calls are answered from the record. No tool that changes anything is called."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.of) ? 1 : 0) + (has(self.cassetteRef) ? 1 : 0) + (has(self.evalCase) ? 1 : 0) == 1",
            "set exactly one of of (the name of a finished Investigation), cassetteRef (a key of a ConfigMap) and "
            "evalCase (a stored case of an EvalSuite)",
            lambda self: [self.of, self.cassette_ref, self.eval_case].count(None) == 2,
        ),
    )

    of: ObjectRef | None = Field(
        default=None,
        description="Finished Investigation to replay. The author needs permission to get investigations/trace of it.",
    )
    cassette_ref: ConfigMapKeyRef | None = Field(
        default=None,
        description="Key of a ConfigMap with a cassette, in data or binaryData. The author needs permission to get "
        "the ConfigMap.",
    )
    eval_case: EvalCaseRef | None = Field(
        default=None,
        description="Stored case of an EvalSuite in the same namespace. The author needs the permissions that its "
        "source requires.",
    )
    overrides: ReplayOverrides | None = Field(default=None, description="Differences from the recorded run.")
    on_miss: OnMiss | None = Field(
        default=None,
        description="Answer to a tool call that is not recorded. Refuse: an error. Live: the tool server is asked, if "
        "the tool is known to be read-only. Simulate: the agent's model makes up an answer, if the tool is known to "
        "be read-only; no citation of it holds. Defaults to Refuse.",
    )
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = Field(
        default=None,
        description="Number of this sample among several replays of the same record. It has no effect on the replay.",
    )


class InvestigationSpec(Model):
    """Alert to investigate and desired state of the run."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.replay) || has(self.alertRef) != has(self.alert)",
            "set exactly one of alertRef (the name of an Alert) and alert (the alert itself); retryOf alone is not "
            "enough: copy the alert of the Investigation that it names",
            lambda self: self.replay is not None or (self.alert_ref is None) != (self.alert is None),
        ),
        ValidationRule(
            "!has(self.replay) || !(has(self.alertRef) || has(self.alert) || has(self.chainRef) || "
            "has(self.llmProviderRef) || has(self.retryOf))",
            "with replay, leave out alertRef, alert, chainRef, llmProviderRef and retryOf: the alert is the recorded "
            "one, and another chain or provider goes into replay.overrides",
            lambda self: (
                self.replay is None
                or not any((self.alert_ref, self.alert, self.chain_ref, self.llm_provider_ref, self.retry_of))
            ),
            field="replay",
        ),
        DESIRED_STATE_ONLY_FORWARD,
        *immutable(
            "Investigation",
            "alertRef",
            "alert",
            "chainRef",
            "llmProviderRef",
            "retryOf",
            "replay",
            "budget",
            "author",
            "acceptanceTimeoutSeconds",
        ),
    )

    alert_ref: ObjectRef | None = Field(default=None, description="Alert to investigate.")
    alert: AlertContent | None = Field(default=None, description="Inline alert, instead of an Alert object.")
    chain_ref: NameRef | None = Field(
        default=None, description="Chain to run, regardless of the alert. Looked up first in this namespace."
    )
    llm_provider_ref: NameRef | None = Field(
        default=None,
        description="LLMProvider of the chain's namespace that all agents use instead of their own. Its author must "
        "be allowed to use it.",
    )
    retry_of: ObjectRef | None = Field(default=None, description="Investigation that this one reruns.")
    replay: Replay | None = Field(
        default=None,
        description="Recorded run to replay, instead of an alert. A replay sends no notifications, does not count as "
        "an incident, and appears in lists and reports only on request.",
    )
    budget: Budget | None = Field(
        default=None, description="Usage limits of the run. If the chain sets a lower limit, the lower one applies."
    )
    author: Author | None = Field(default=None, description=STAMPED)
    desired_state: DesiredState = Field(
        default="Running",
        description="Desired state. Running: run to the end. Concluded: stop now and summarize the information "
        "available. Cancelled: stop. It can only move forward.",
    )
    acceptance_timeout_seconds: AcceptanceSeconds | None = Field(
        default=None,
        description="Seconds to wait for a run that cannot be accepted (its plan has an error, a permission is "
        "missing) before it ends as NotAccepted. Defaults to the value of InvestigationDefaults, else 3600.",
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS, description="Seconds from the end of the run to the deletion of this object."
    )


class StageSummary(Lenient):
    """Summary of one stage of the run."""

    name: LabelName = Field(description="Name of the stage.")
    kind: StageKind = Field(default="Investigation", description="Kind of the stage.")
    phase: StagePhase = Field(description="Phase of the stage.")
    agents: int = Field(default=0, ge=0, description="Number of agents.")
    started_at: Time | None = Field(default=None, description="Time at which the stage started.")
    finished_at: Time | None = Field(default=None, description="Time at which the stage ended.")
    message: Annotated[str, clipped(256), StringConstraints(max_length=256)] | None = Field(
        default=None, description="Explanation of the outcome."
    )
    acted: Literal["Yes", "No"] | None = Field(
        default=None,
        description="Whether an approved call was sent, according to the record. Only for stages of kind Action.",
    )
    model_says_acted: Literal["Yes", "No", "Unknown"] | None = Field(
        default=None,
        description="Whether an action was taken, according to the model. If this contradicts acted, message says "
        "so. Only for stages of kind Action.",
    )


class UsageSummary(Lenient):
    """Usage of the run so far."""

    model_calls: Count = Field(default=0, description="Number of model calls.")
    tool_calls: Count = Field(default=0, description="Number of tool calls.")
    input_tokens: Count = Field(default=0, description="Tokens sent to models.")
    output_tokens: Count = Field(default=0, description="Tokens generated by models.")
    thinking_tokens: Count = Field(default=0, description="Tokens spent on thinking.")
    total_tokens: Count = Field(default=0, description="Total tokens, as counted by the providers.")
    cost_usd: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of all model calls in US dollars, at the rates of their LLMProviders. A trailing + "
        "(0.0123+) marks a lower bound, because the cost of some calls is unknown. Not set if no cost is known.",
    )


MAX_CHANGES_SHOWN = 4
"""Objects to change in Git that a status names; the finding in the record has all."""


class ManagedObjectSummary(Lenient):
    """An object whose change was refused, because it is applied from Git or from a chart."""

    object: Annotated[str, clipped(120), StringConstraints(max_length=120)] = Field(
        default="", description="Kind, namespace and name."
    )
    managed_by: Annotated[str, clipped(120), StringConstraints(max_length=120)] = Field(
        default="", description="Tool that applies it, with the label or annotation that shows this."
    )


class FindingSummary(Lenient):
    """Summary of the finding."""

    summary: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] = Field(
        default="", description="Text of the finding, shortened."
    )
    confidence: Confidence | None = Field(
        default=None, description="Confidence of the agents in the finding, limited by the strength of their evidence."
    )
    shown_confidence: Annotated[str, clipped(48), StringConstraints(max_length=48)] | None = Field(
        default=None,
        description="Confidence for display, with the count of right findings if the Chain is not Calibrated: High "
        "(12 of 20 right).",
    )
    claims: Count | None = Field(default=None, description="Number of claims in the finding. Not set if it makes none.")
    supported_claims: Count | None = Field(
        default=None, description="Number of claims with a citation that was found in the record."
    )
    integrity: Literal["K", "A", "X"] | None = Field(
        default=None,
        description="Strongest class of the evidence. K: only the control plane writes it. A: workloads can write "
        "all of it. X: anyone outside the cluster can.",
    )
    change_in_git: tuple[ManagedObjectSummary, ...] | None = Field(
        default=None,
        max_length=MAX_CHANGES_SHOWN,
        description="First objects to change in Git: the run proposed to change them in the cluster, which was "
        "refused because the change would be reverted. The finding in the record contains the change.",
    )


class RungSummary(Lenient):
    """Tool calls of a replay by the origin of their answers."""

    exact: Count = Field(default=0, description="Recorded with the same arguments.")
    normalised: Count = Field(default=0, description="Recorded with arguments that mean the same.")
    derived: Count = Field(default=0, description="Computed from a recorded answer that contains more.")
    wildcard: Count | None = Field(
        default=None, description="Recorded for all arguments, so those of the call were not checked."
    )
    miss: Count = Field(default=0, description="Not recorded. Includes uses of the model provider's own tools.")
    live: Count = Field(default=0, description="Answered by a tool server during the replay.")


class ReplaySummary(Lenient):
    """How far a replay kept to its record."""

    coverage: Annotated[str, StringConstraints(max_length=8)] = Field(
        default="", description="Share of tool calls that the record answered, such as 0.92."
    )
    rungs: RungSummary | None = Field(default=None, description="Tool calls by the origin of their answers.")
    unused_calls: Count | None = Field(default=None, description="Recorded calls that were not used.")
    divergence: Annotated[str, clipped(512), StringConstraints(max_length=512)] = Field(
        default="", description="First tool call that differs from the recorded ones. Not set if none does."
    )


class LastError(Lenient):
    """Last error of the run."""

    reason: Annotated[str, clipped(64), StringConstraints(max_length=64)] = Field(
        default="", description="Kind of error, as one CamelCase word."
    )
    message: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] = Field(
        default="", description="Description of the error and its remedy."
    )


class RecordRef(Lenient):
    """A reference to the full record of the run."""

    id: Uid = Field(description="Id of the run in the database.")
    seal: Annotated[str, clipped(64), StringConstraints(max_length=64)] | None = Field(
        default=None,
        description="Head of the chain of seals at recordRevision, as hex. `kubectl tarsy verify` checks the record "
        "against it.",
    )


class ParkedSummary(Lenient):
    """Why a run waits without a worker."""

    reason: Annotated[str, StringConstraints(max_length=16)] = Field(
        description="Approval (people decide about a tool call), ProviderLimit (rate limit of an LLM provider) or "
        "Quota (an InvestigationQuota has no room)."
    )
    since: Time = Field(description="Time at which the run was parked.")
    until: Time = Field(description="Latest time at which it continues.")
    message: Annotated[str, clipped(48), StringConstraints(max_length=48)] = Field(
        default="", description="Reason for the wait, truncated. The condition Finished contains the full text."
    )


class InvestigationStatus(Status):
    """Progress and outcome of the run."""

    phase: Phase | None = Field(
        default=None,
        description="Phase for display: Pending (not accepted yet), Queued (waiting for a worker), Running (also "
        "while it waits for people, see parked), Concluding (asked to stop and summarize), Succeeded, Failed, "
        "Cancelled, TimedOut.",
    )
    parked: ParkedSummary | None = Field(
        default=None, description="Set while the run waits for people or for a provider's rate limit."
    )
    waited_seconds: Count | None = Field(
        default=None, description="Total seconds for which the run was parked. They count towards no limit."
    )
    alert_type: AlertType | None = Field(default=None, description="Type of the alert.")
    severity: Severity | None = Field(default=None, description="Severity of the alert, if it has one.")
    chain: ObjectName | None = Field(default=None, description="Name of the chain of this run.")
    chain_namespace: LabelName | None = Field(default=None, description="Namespace of the chain of this run.")
    plan_hash: Annotated[str, StringConstraints(max_length=80)] | None = Field(
        default=None, description="Hash of the plan, frozen when the run was accepted."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="Number of times a worker has claimed the run. More than 1 after a crash."
    )
    progress: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Finished and total stages, such as 2/3."
    )
    current_stage: LabelName | None = Field(default=None, description="Name of the current stage.")
    stages: tuple[StageSummary, ...] = Field(
        default=(), max_length=MAX_STAGES, description="Summaries of the last 20 stages."
    )
    usage: UsageSummary | None = Field(default=None, description="Usage of the run so far.")
    finding: FindingSummary | None = Field(default=None, description="Summary of the finding.")
    outcome: Literal["Settled", "Recurred", "ChangedAndSettled"] | None = Field(
        default=None,
        description="Outcome of the alert after the finding. Settled: it was resolved and did not fire again. "
        "Recurred: it fired again. ChangedAndSettled: an object that the finding blames was changed, and then "
        "the alert settled. Not set until it is known, and for alerts that no sender resolves.",
    )
    replay: ReplaySummary | None = Field(
        default=None, description="How closely a finished replay followed its record. Not set for other runs."
    )
    retried_by: ObjectRef | None = Field(default=None, description="Latest investigation that reruns this one.")
    last_error: LastError | None = Field(default=None, description="Last error of the run.")
    queued_at: Time | None = Field(default=None, description="Time at which the run was queued.")
    started_at: Time | None = Field(default=None, description="Time at which a worker first claimed the run.")
    finished_at: Time | None = Field(default=None, description="Time at which the run ended.")
    duration: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Duration from start to end, such as 2m13s."
    )
    record: RecordRef | None = Field(default=None, description="Reference to the full record of the run.")
    record_revision: Count | None = Field(default=None, description="Revision of the record that this status reflects.")


class Investigation(Resource[InvestigationSpec, InvestigationStatus]):
    """One run of one chain over one alert. To wait for it: kubectl wait --for=condition=Finished inv/NAME."""

    KIND: ClassVar[str] = "Investigation"
    PLURAL: ClassVar[str] = "investigations"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("inv",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Alert type", ".status.alertType", description="Type of the alert."),
        Column("Severity", ".status.severity", description="Severity of the alert."),
        Column("Chain", ".status.chain", description="Chain of this run."),
        Column("Phase", ".status.phase", description="Phase of the run."),
        Column("Progress", ".status.progress", description="Finished and total stages."),
        Column(
            "Confidence",
            ".status.finding['shownConfidence','confidence']",
            description="Confidence of the agents in the finding. If the Chain is not Calibrated, High is shown with "
            "its count of right findings.",
        ),
        Column("Tokens", ".status.usage.totalTokens", "integer", "Total tokens so far."),
        Column(
            "Cost", ".status.usage.costUSD", description="Cost so far in US dollars. A trailing + marks a lower bound."
        ),
        AGE,
        Column(
            "Waits for", ".status.parked.reason", description="Reason why the run waits without a worker.", wide=True
        ),
        Column("Stage", ".status.currentStage", description="Current stage.", wide=True),
        Column("Duration", ".status.duration", description="Duration from start to end.", wide=True),
        Column(
            "Reason",
            '.status.conditions[?(@.type=="Succeeded")].reason',
            description="Outcome of the run, or NotAccepted while it waits.",
            wide=True,
        ),
        Column("Outcome", ".status.outcome", description="Outcome of the alert after the finding.", wide=True),
        Column("Retry of", ".spec.retryOf.name", description="Investigation that this one reruns.", wide=True),
        Column("Retried by", ".status.retriedBy.name", description="Latest investigation that reruns it.", wide=True),
        Column("Author", ".spec.author.username", description="User on whose behalf the run acts.", wide=True),
        Column("Finding", ".status.finding.summary", description="Summary of the finding.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.alertRef.name", ".spec.chainRef.name")

    kind: Literal["Investigation"] = "Investigation"
    status: InvestigationStatus = InvestigationStatus()
