"""Investigation: one run of one chain over one alert. Its status is in `investigation_status`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import (
    SHA256,
    LabelName,
    Model,
    Uid,
    ValidationRule,
)
from tarsy.resources.v1alpha1.alert import AlertContent
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
from tarsy.resources.v1alpha1.investigation_status import InvestigationStatus

OnMiss = Literal["Refuse", "Live", "Simulate"]


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
