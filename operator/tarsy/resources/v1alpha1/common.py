"""Defines the types that several kinds share: references, MCP selections, timeouts, strategies.

Decision: a setting that is absent stays None and is never written as its default. The plan resolves defaults through
several objects and must tell "not set here" from "set to the default here".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import Column, Status
from tarsy.resources.schema import (
    DataKey,
    HostPort,
    HttpUrl,
    LabelName,
    Model,
    ObjectName,
    ToolName,
    Uid,
    Unique,
    ValidationRule,
)
from tarsy.resources.v1alpha1.git_source import GitSource

Strategy = Literal["react", "native-thinking", "langchain", "synthesis", "synthesis-native-thinking", "single-call"]
LoopStrategy = Literal["react", "native-thinking", "langchain"]
SuccessPolicy = Literal["Any", "All"]
DesiredState = Literal["Running", "Concluded", "Cancelled"]
ToolPolicy = Literal["ReadOnly", "Approve", "All"]
WEEK_SECONDS = 604_800
YEAR_SECONDS = 31_536_000
MAX_GROUPS = 256
MAX_GROUP = 512

Iterations = Annotated[int, Field(ge=1, le=200)]
Seconds = Annotated[int, Field(ge=1, le=86_400)]
Concurrency = Annotated[int, Field(ge=1, le=1000)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
TtlSeconds = Annotated[int, Field(ge=0, le=YEAR_SECONDS)]
AcceptanceSeconds = Annotated[int, Field(ge=1, le=WEEK_SECONDS)]
ServerName = Annotated[LabelName, StringConstraints(max_length=40)]


class ConditionType(StrEnum):
    """Condition types of all kinds."""

    READY = "Ready"
    AVAILABLE = "Available"
    VERIFIED = "Verified"
    NEEDS_APPROVAL = "NeedsApproval"
    EVIDENCE_DECLARED = "EvidenceDeclared"
    TOOLS_CHANGED = "ToolsChanged"
    SERVING = "Serving"
    NOTIFICATIONS_READY = "NotificationsReady"
    REACH_BOUND = "ReachBound"
    PROMOTED = "Promoted"
    CALIBRATED = "Calibrated"
    ACCEPTED = "Accepted"
    FINISHED = "Finished"
    SUCCEEDED = "Succeeded"
    EVIDENCE_DEGRADED = "EvidenceDegraded"
    BUDGET_EXCEEDED = "BudgetExceeded"
    COMPLETE = "Complete"
    PASSED = "Passed"
    DECIDED = "Decided"
    EXECUTED = "Executed"
    APPROVALS_ENFORCED = "ApprovalsEnforced"
    FIRED = "Fired"
    SCORING = "Scoring"
    WARNED = "Warned"
    EXCEEDED = "Exceeded"


class NameRef(Model):
    """A reference to an object by name."""

    name: ObjectName = Field(description="Name of the object.")


class ObjectRef(Model):
    """A reference to an object by name, and optionally by uid."""

    name: ObjectName = Field(description="Name of the object, in the same namespace.")
    uid: Uid | None = Field(
        default=None, description="metadata.uid of the object. If set, another object of the same name does not match."
    )


class Author(Model):
    """The user who created an object, as authenticated by the API server."""

    username: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(description="Username.")
    uid: Annotated[str, StringConstraints(max_length=256)] | None = Field(
        default=None, description="User id, if the authenticator provides one."
    )
    groups: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP)], ...],
        Field(max_length=MAX_GROUPS),
    ] = Field(default=(), description="Groups of the user.")


STAMPED = (
    "The user who created this object. Set by admission; leave it out. The run may use only "
    "objects that this user may use."
)


class ConfigMapKeyRef(Model):
    """A key of a ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap, in the same namespace.")
    key: DataKey = Field(description="Key in the ConfigMap's data.")


class SecretKeyRef(Model):
    """A key of a Secret in the same namespace."""

    name: ObjectName = Field(
        description='Name of the Secret, in the same namespace, with the label tarsy.dev/credentials: "true".'
    )
    key: DataKey = Field(description="Key in the Secret's data.")


class SecretSource(Model):
    """The source of a sensitive value."""

    secret_key_ref: SecretKeyRef = Field(description="Key of the Secret that holds the value.")


class McpSelection(Model):
    """An MCP server and the tools selected from it."""

    name: ServerName = Field(description="Name of the MCPServer.")
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=128), Unique()] | None = Field(
        default=None, description="Tools to select. Defaults to all tools of the server."
    )


McpSelections = Annotated[tuple[McpSelection, ...], Field(max_length=32), Unique("name")]


class Runbook(Model):
    """Text that guides the agents through an alert. Set exactly one source."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.inline) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.url) ? 1 : 0) "
            "+ (has(self.git) ? 1 : 0) == 1",
            "set exactly one of inline, configMapKeyRef, url and git",
            lambda self: [self.inline, self.config_map_key_ref, self.url, self.git].count(None) == 3,
        ),
    )

    inline: Annotated[str, StringConstraints(min_length=1, max_length=32_768)] | None = Field(
        default=None, description="Runbook text."
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="Key of a ConfigMap in the same namespace that holds the text."
    )
    url: HttpUrl | None = Field(default=None, description="URL of the text. The administrator allows the hosts.")
    git: GitSource | None = Field(
        default=None, description="File of a commit in a public Git repository, of at most 256 KiB."
    )


class LocalRunbook(Model):
    """Text that guides the agents through an alert, from a local source. Set exactly one source."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.inline) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.git) ? 1 : 0) == 1",
            "set exactly one of inline, configMapKeyRef and git",
            lambda self: [self.inline, self.config_map_key_ref, self.git].count(None) == 2,
        ),
    )

    inline: Annotated[str, StringConstraints(min_length=1, max_length=32_768)] | None = Field(
        default=None, description="Runbook text."
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="Key of a ConfigMap in the same namespace that holds the text."
    )
    git: GitSource | None = Field(
        default=None, description="File of a commit in a public Git repository, of at most 256 KiB."
    )


class Timeouts(Model):
    """Time limits of a run, in seconds."""

    investigation_seconds: Seconds | None = Field(default=None, description="Limit of the whole run, from its start.")
    iteration_seconds: Seconds | None = Field(
        default=None, description="Limit of one agent iteration: a model call and the tool calls it requests."
    )
    model_call_seconds: Seconds | None = Field(default=None, description="Limit of one model call.")
    tool_call_seconds: Seconds | None = Field(default=None, description="Limit of one tool call.")
    first_token_seconds: Seconds | None = Field(
        default=None, description="Limit from the start of a model call to the first token of the response."
    )
    stall_seconds: Seconds | None = Field(default=None, description="Limit between two chunks of a streamed response.")
    conclusion_seconds: Seconds | None = Field(
        default=None,
        description="Limit of each model call after a user asked the run to conclude, including time spent in "
        "the queue. Defaults to 60. If the model gives no conclusion in this time, the run ends with "
        "the results on record.",
    )


class Loop(Model):
    """Limits of the agent loop."""

    consecutive_timeouts: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Consecutive timeouts after which an agent fails. Defaults to 2."
    )
    empty_answers: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="Number of retries after an empty response. Defaults to 2."
    )
    repeat_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = Field(
        default=None,
        description="Seconds during which a repeated read-only tool call with the same arguments is answered "
        "from the record, marked with its age. If the model asks once more, it gets one fresh "
        "result. Defaults to 120.",
    )
    repeats_in_a_row: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Consecutive repeated tool calls after which an agent must conclude. Defaults to 3."
    )
    context_tokens: Annotated[int, Field(ge=1024, le=100_000_000)] | None = Field(
        default=None,
        description="Context window assumed for an LLMProvider that does not declare one. Defaults to 131072.",
    )
    finding_repairs: Annotated[int, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="Number of times a finding is returned to the model for correction. Counts separately for a "
        "finding without the required structure and for a finding given before any tool call. "
        "Defaults to 1.",
    )


class Budget(Model):
    """Usage limits of a whole run. A run that reaches one of them concludes from the information it has."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="Total tokens of all model calls, as counted by the providers."
    )
    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of all model calls in US dollars. Requires rates on every LLMProvider of the run.",
    )
    tool_calls: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Total tool calls of all agents."
    )
    minutes: Annotated[float, Field(ge=0.1, le=1440)] | None = Field(
        default=None, description="Minutes since the start of the run."
    )


class NativeTools(Model):
    """Tools built into the model provider. A tool that is not set inherits from the next level."""

    google_search: bool | None = Field(default=None, description="Enable Google Search.")
    code_execution: bool | None = Field(default=None, description="Enable code execution at the provider.")
    url_context: bool | None = Field(default=None, description="Enable fetching of web pages by URL at the provider.")


class FallbackEntry(Model):
    """A model to use when the previous one fails."""

    llm_provider: ObjectName = Field(description="Name of the LLMProvider.")
    strategy: LoopStrategy | None = Field(
        default=None,
        description="Strategy to use with this provider. Defaults to the agent's own. For agents without tools, "
        "it selects only the backend.",
    )


# Tri-state on purpose: not set leaves the level below, an empty list clears it.
Fallback = Annotated[tuple[FallbackEntry, ...], Field(max_length=8)]
FALLBACK = "Models to try, in order, when a provider fails. An empty list disables fallback."


class RunbookHost(Model):
    """A host from which runbooks may be fetched."""

    host: HostPort = Field(
        description="Host name, with the port if it is not the default one. github.com includes its raw content "
        "host. Only https URLs with public addresses are allowed, unless the operator runs with "
        "--runbook-host for this host."
    )
    token_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Access token sent only to this host. Everyone who may create alerts in this namespace can "
        "read everything the token can read: use a token that can read runbooks only.",
    )


class ExecutiveSummarySettings(Model):
    """Settings of the short summary written when an investigation finishes."""

    enabled: bool | None = Field(default=None, description="Whether to write a summary. Enabled by default.")
    llm_provider: ObjectName | None = Field(
        default=None,
        description="Name of the LLMProvider that writes the summary. Defaults to the provider of the chain.",
    )


class SummarizationSettings(Model):
    """Settings of the summaries of tool results that are too long for the conversation."""

    llm_provider: ObjectName | None = Field(
        default=None,
        description="Name of the LLMProvider that writes the summaries. Defaults to the provider of each agent.",
    )


class ConfigStatus(Status):
    """Readiness of the object and of all objects it references."""


READY_COLUMNS = (
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether the object can be used."),
    Column(
        "Reason", '.status.conditions[?(@.type=="Ready")].reason', description="Reason why the object is ready or not."
    ),
)
NOTIFY_COLUMN = Column(
    "Notify",
    '.status.conditions[?(@.type=="NotificationsReady")].reason',
    description="Whether the Secrets referenced by spec.notify can be read. Empty when it references none.",
    wide=True,
)
MESSAGE_COLUMN = Column(
    "Message",
    '.status.conditions[?(@.type=="Ready")].message',
    description="Explains why the object is ready or not.",
    wide=True,
)


def immutable(what: str, *fields: str) -> tuple[ValidationRule, ...]:
    """Returns one rule for each field that forbids changing it.

    Args:
        what: kind of the object, for the message.
        fields: JSON names of the fields.
    """
    return tuple(
        ValidationRule(
            f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            f"{field} cannot be changed; create a new {what}",
            field=field,
            reason="FieldValueForbidden",
        )
        for field in fields
    )


DESIRED_STATE_ONLY_FORWARD = ValidationRule(
    "oldSelf.desiredState == 'Running' || self.desiredState == 'Cancelled' "
    "|| self.desiredState == oldSelf.desiredState",
    "desiredState can only move forward: Running, Concluded, Cancelled; to run again, create a new object",
    field="desiredState",
    reason="FieldValueForbidden",
)
