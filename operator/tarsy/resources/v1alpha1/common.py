"""What several kinds share: references, MCP selections, timeouts, strategies, grants to other namespaces.

Decision: a setting that is absent stays None, it is never written as its default, because the plan resolves defaults
through several objects and must tell "not set here" from "set to the default here".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import Column, Status
from tarsy.resources.schema import (
    LABEL_KEY,
    LABEL_VALUE,
    DataKey,
    HostPort,
    HttpUrl,
    LabelName,
    Model,
    ObjectName,
    Rule,
    ToolName,
    Uid,
    Unique,
)

Strategy = Literal["react", "native-thinking", "langchain", "synthesis", "synthesis-native-thinking", "single-call"]
LoopStrategy = Literal["react", "native-thinking", "langchain"]
SuccessPolicy = Literal["Any", "All"]
DesiredState = Literal["Running", "Concluded", "Cancelled"]
ToolPolicy = Literal["ReadOnly", "All"]
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
    """The condition types of DESIGN section 3."""

    READY = "Ready"
    AVAILABLE = "Available"
    VERIFIED = "Verified"
    SERVING = "Serving"
    NOTIFICATIONS_READY = "NotificationsReady"
    REACH_BOUND = "ReachBound"
    ACCEPTED = "Accepted"
    FINISHED = "Finished"
    SUCCEEDED = "Succeeded"
    EVIDENCE_DEGRADED = "EvidenceDegraded"
    BUDGET_EXCEEDED = "BudgetExceeded"


class NameRef(Model):
    """A reference by name."""

    name: ObjectName = Field(description="Name of the object.")


class ObjectRef(Model):
    """A reference by name to one certain object of that name, if a uid is given."""

    name: ObjectName = Field(description="Name of the object, in the same namespace.")
    uid: Uid | None = Field(
        default=None, description="Its metadata.uid; when set, another object of the same name does not count."
    )


class Author(Model):
    """Who created an object, as the API server authenticated them."""

    username: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(description="Their name.")
    uid: Annotated[str, StringConstraints(max_length=256)] | None = Field(
        default=None, description="Their uid, where authentication knows one."
    )
    groups: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP)], ...],
        Field(max_length=MAX_GROUPS),
    ] = Field(default=(), description="Their groups.")


STAMPED = "Who created this, set by admission; leave it out. What it may use is what they may use."


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
    """Where a value comes from that may not be written here."""

    secret_key_ref: SecretKeyRef = Field(description="The key of a Secret that holds the value.")


class McpSelection(Model):
    """An MCP server, and which of its tools."""

    name: ServerName = Field(description="Name of the MCPServer.")
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=128), Unique()] | None = Field(
        default=None, description="Only these of its tools; all when not set."
    )


McpSelections = Annotated[tuple[McpSelection, ...], Field(max_length=32), Unique("name")]


class Runbook(Model):
    """A text that tells the agents how to go about the alert; exactly one source."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.inline) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.url) ? 1 : 0) == 1",
            "set exactly one of inline, configMapKeyRef and url",
            lambda self: [self.inline, self.config_map_key_ref, self.url].count(None) == 2,
        ),
    )

    inline: Annotated[str, StringConstraints(min_length=1, max_length=32_768)] | None = Field(
        default=None, description="The text itself."
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="A key of a ConfigMap in the same namespace that holds the text."
    )
    url: HttpUrl | None = Field(default=None, description="Where the text is; the administrator allows hosts.")


class LocalRunbook(Model):
    """A text that tells the agents how to go about an alert; exactly one source, none of them remote."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.inline) != has(self.configMapKeyRef)",
            "set exactly one of inline and configMapKeyRef",
            lambda self: (self.inline is None) != (self.config_map_key_ref is None),
        ),
    )

    inline: Annotated[str, StringConstraints(min_length=1, max_length=32_768)] | None = Field(
        default=None, description="The text itself."
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="A key of a ConfigMap in the same namespace that holds the text."
    )


class Timeouts(Model):
    """Time limits of a run, in seconds."""

    investigation_seconds: Seconds | None = Field(default=None, description="The whole run, from its start.")
    iteration_seconds: Seconds | None = Field(
        default=None, description="One iteration of an agent: a model call and the tool calls it asks for."
    )
    model_call_seconds: Seconds | None = Field(default=None, description="One model call.")
    tool_call_seconds: Seconds | None = Field(default=None, description="One tool call.")
    first_token_seconds: Seconds | None = Field(
        default=None, description="From the start of a model call to the first thing it answers."
    )
    stall_seconds: Seconds | None = Field(default=None, description="Between two pieces of a model's streamed answer.")
    conclusion_seconds: Seconds | None = Field(
        default=None,
        description="Each model call after a person asked the run to conclude, waits for its turn included; 60 when "
        "not set. A run whose model gives no conclusion in this time ends with what is on record.",
    )


class Loop(Model):
    """How the loop of an agent goes on, and when it stops."""

    consecutive_timeouts: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="So many timeouts in a row end an agent; 2 when not set."
    )
    empty_answers: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="So many times an empty answer is asked for again; 2 when not set."
    )
    repeat_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = Field(
        default=None,
        description="Seconds in which a tool call that only reads, made again with the same arguments, is answered "
        "from the record, with its age. A model that asks once more gets one fresh result. 120 when not set.",
    )
    repeats_in_a_row: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="After so many of those an agent must conclude; 3 when not set."
    )
    context_tokens: Annotated[int, Field(ge=1024, le=100_000_000)] | None = Field(
        default=None, description="The window of an LLMProvider that does not say its own; 131072 when not set."
    )
    finding_repairs: Annotated[int, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="How often a finding without its structure, or given before any tool call, is sent back to its "
        "model, for each of the two reasons; 1 when not set.",
    )


class Budget(Model):
    """What a whole run may use. Reaching one of these makes it conclude out of what it knows."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="All tokens of all model calls, as the providers count them."
    )
    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        alias="costUSD",
        description="US dollars of all model calls; every LLMProvider of the run must have rates.",
    )
    tool_calls: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Calls of tools, of all agents together."
    )
    minutes: Annotated[float, Field(ge=0.1, le=1440)] | None = Field(
        default=None, description="Minutes from the start of the run."
    )


class NativeTools(Model):
    """Tools of the model's provider, on or off; where one is not set, the level below says."""

    google_search: bool | None = Field(default=None, description="Search with Google.")
    code_execution: bool | None = Field(default=None, description="Run code at the provider.")
    url_context: bool | None = Field(default=None, description="Read pages by URL at the provider.")


class FallbackEntry(Model):
    """A model to change to when the one before it fails."""

    llm_provider: ObjectName = Field(description="Name of the LLMProvider.")
    strategy: LoopStrategy | None = Field(
        default=None,
        description="Strategy to use with it; the agent's own when not set. For agents without tools it decides "
        "the backend only.",
    )


# Tri-state on purpose: not set leaves the level below, an empty list clears it.
Fallback = Annotated[tuple[FallbackEntry, ...], Field(max_length=8)]
FALLBACK = "Models to change to, in order, when a provider fails; an empty list: none."


class RunbookHost(Model):
    """A host that runbooks may be fetched from."""

    host: HostPort = Field(
        description="The host, with its port if that is not the usual one; github.com stands for its raw form too. "
        "Only https, and only public addresses, unless the operator was started with --runbook-host for it."
    )
    token_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="A token sent to this host and no other. All that it can read is open to whoever creates alerts "
        "here: take one that can read runbooks and nothing else.",
    )


class ExecutiveSummarySettings(Model):
    """The short summary that is made of a finished investigation."""

    enabled: bool | None = Field(default=None, description="Whether one is made; it is, when nothing says otherwise.")
    llm_provider: ObjectName | None = Field(
        default=None, description="Name of the LLMProvider that writes it; the chain's when not set."
    )


class SummarizationSettings(Model):
    """The summaries of results of tools that are too long for a conversation."""

    llm_provider: ObjectName | None = Field(
        default=None, description="Name of the LLMProvider that writes them; that of each agent when not set."
    )


class LabelRequirement(Model):
    """A requirement on one label."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
            ": !has(self.values) || size(self.values) == 0",
            "values must be set for the operators In and NotIn, and only for them",
            lambda self: (self.operator in ("In", "NotIn")) == bool(self.values),
            field="values",
        ),
    )

    key: Annotated[str, StringConstraints(min_length=1, max_length=317, pattern=LABEL_KEY)] = Field(
        description="The label's key."
    )
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="How the label relates to values.")
    values: Annotated[tuple[Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)], ...], Unique()] = (
        Field(default=(), max_length=64, description="The values, for In and NotIn.")
    )


class LabelSelector(Model):
    """Selects by labels; all its parts must hold, and an empty one selects everything."""

    match_labels: dict[str, Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)]] = Field(
        default_factory=dict, max_length=32, description="Labels with exactly these values."
    )
    match_expressions: tuple[LabelRequirement, ...] = Field(
        default=(), max_length=32, description="Requirements on labels."
    )


class AllowedNamespaces(Model):
    """Which other namespaces may use this object."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(self.from == 'Selector') == has(self.selector)",
            "selector must be set when from is Selector, and only then",
            lambda self: (self.from_ == "Selector") == (self.selector is not None),
            field="selector",
        ),
    )

    from_: Literal["None", "Selector", "All"] = Field(
        default="None", alias="from", description="None: only its own; Selector: those with the labels; All."
    )
    selector: LabelSelector | None = Field(default=None, description="Selects namespaces by their labels.")


class ConfigStatus(Status):
    """Whether the object, and all it names, can be used."""


READY_COLUMNS = (
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether it can be used."),
    Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', description="Why it can be used, or not."),
)
NOTIFY_COLUMN = Column(
    "Notify",
    '.status.conditions[?(@.type=="NotificationsReady")].reason',
    description="Whether the Secrets that spec.notify names can be read; empty when it names none.",
    wide=True,
)
MESSAGE_COLUMN = Column(
    "Message",
    '.status.conditions[?(@.type=="Ready")].message',
    description="Why it can be used, or not.",
    wide=True,
)


def immutable(what: str, *fields: str) -> tuple[Rule, ...]:
    """A rule for each field (JSON names): once the object exists, it stays as it is."""
    return tuple(
        Rule(
            f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            f"{field} cannot be changed; create a new {what}",
            field=field,
            reason="FieldValueForbidden",
        )
        for field in fields
    )


DESIRED_STATE_ONLY_FORWARD = Rule(
    "oldSelf.desiredState == 'Running' || self.desiredState == 'Cancelled' "
    "|| self.desiredState == oldSelf.desiredState",
    "desiredState goes only forward: Running, Concluded, Cancelled; to run again, create a new object",
    field="desiredState",
    reason="FieldValueForbidden",
)
