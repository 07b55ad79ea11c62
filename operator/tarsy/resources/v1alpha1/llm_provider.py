"""LLMProvider: where a model is, and how it is called.

Decision: the key is optional, because local servers (vLLM, Ollama) are first-class and want none.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import HttpUrl, Model, Rule
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    AllowedNamespaces,
    ConfigStatus,
    Dollars,
    NativeTools,
    Seconds,
    SecretKeyRef,
)


class Rates(Model):
    """What the model costs, in US dollars for a million tokens; thinking is paid as output."""

    input_per_million: Dollars = Field(description="Tokens sent to it.")
    output_per_million: Dollars = Field(description="Tokens it answers, with its thinking.")
    cached_input_per_million: Dollars | None = Field(
        default=None, description="Tokens sent that the provider had cached; as inputPerMillion when not set."
    )


class Thinking(Model):
    """How much the model thinks before it answers, in the one measure that its provider knows."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.budget) ? 1 : 0) + (has(self.level) ? 1 : 0) + (has(self.effort) ? 1 : 0) == 1",
            "set exactly one of budget, level and effort",
            lambda self: [self.budget, self.level, self.effort].count(None) == 2,
        ),
    )

    budget: int | None = Field(
        default=None,
        ge=-1,
        le=1_000_000,
        description="Tokens (Claude; Gemini up to 2.5, where 0 is none at all and -1 leaves it to the model).",
    )
    level: Literal["minimal", "low", "medium", "high"] | None = Field(
        default=None, description="A level (Gemini 3 and newer)."
    )
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        default=None, description="An effort, in the provider's own words (OpenAI, Claude, Grok)."
    )


class VertexAI(Model):
    """Where in Vertex AI the model is, and as whom it is asked."""

    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:-]*$", min_length=1, max_length=128)] = Field(
        description="Id or number of the Google Cloud project that pays."
    )
    location: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", min_length=1, max_length=63)] = Field(
        default="global", description="Region (europe-west1), us, eu, or global."
    )
    credentials: Literal["Secret", "WorkloadIdentity"] = Field(
        default="Secret",
        description="Secret: apiKeySecretRef holds the key file (JSON) of a service account, or an API key. "
        "WorkloadIdentity: no key, the Google identity of the operator's pods, which must be lent to this namespace "
        "(tarsy run --workload-identity-for).",
    )


class Limits(Model):
    """How much the provider takes of all investigations together, on all workers; calls beyond that wait."""

    max_concurrent: int | None = Field(default=None, ge=1, le=10_000, description="Calls at once.")
    requests_per_minute: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Calls in any 60 seconds, tries that were refused included."
    )
    tokens_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000_000,
        description="Tokens in any 60 seconds, sent and answered, expected before a call and corrected after it. A "
        "call that needs more than all of them goes alone.",
    )


class Timeouts(Model):
    """Time limits of its calls, in seconds. They count before those of a Chain and of InvestigationDefaults."""

    silence_seconds: Seconds | None = Field(
        default=None,
        description="Before the answer begins: from the start of a call, or the server's last sign of life (a status "
        "of 200, a comment in the stream), to its next one. 120 when not set, 300 with a baseURL.",
    )
    first_token_seconds: Seconds | None = Field(
        default=None,
        description="From the start of a call to the first piece of the answer of a server that shows life. Not set: "
        "as the Chain says, else 240, or 600 with a baseURL.",
    )
    stall_seconds: Seconds | None = Field(
        default=None,
        description="Between two signs of life once the answer has begun. Not set: as the Chain says, else 60, or 120 "
        "with a baseURL.",
    )
    call_seconds: Seconds | None = Field(
        default=None,
        description="One call from its start to its end. Not set: as the Chain says (modelCallSeconds), else 300, or "
        "900 with a baseURL. An iteration may last a minute longer, unless the Chain sets iterationSeconds.",
    )


class LLMProviderSpec(Model):
    """Which model, and how it is called."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.backend) || self.backend != 'openai-native' || self.type == 'openai'",
            "openai-native speaks the API of type openai only; leave backend out",
            lambda self: self.backend != "openai-native" or self.type == "openai",
            field="backend",
        ),
        Rule(
            "has(self.vertexai) == (self.type == 'vertexai')",
            "type vertexai needs vertexai (with the project), and other types have none",
            lambda self: (self.vertexai is not None) == (self.type == "vertexai"),
            field="vertexai",
        ),
        Rule(
            "!has(self.vertexai) || has(self.apiKeySecretRef) || has(self.baseURL) || "
            "(has(self.vertexai.credentials) && self.vertexai.credentials == 'WorkloadIdentity')",
            "vertexai needs apiKeySecretRef, or credentials: WorkloadIdentity in vertexai",
            lambda self: (
                self.vertexai is None
                or self.vertexai.credentials != "Secret"
                or self.api_key_secret_ref is not None
                or self.base_url is not None
            ),
            field="apiKeySecretRef",
        ),
        Rule(
            "!has(self.vertexai) || !has(self.vertexai.credentials) || "
            "self.vertexai.credentials != 'WorkloadIdentity' || (!has(self.apiKeySecretRef) && !has(self.baseURL))",
            "WorkloadIdentity has no key and goes to Google only: leave apiKeySecretRef and baseURL out",
            lambda self: (
                self.vertexai is None
                or self.vertexai.credentials != "WorkloadIdentity"
                or (self.api_key_secret_ref is None and self.base_url is None)
            ),
            field="vertexai",
        ),
    )

    type: Literal["openai", "google", "vertexai", "anthropic", "xai"] = Field(
        description="Whose API is spoken: openai, and all that is compatible; google: Gemini; vertexai: Gemini on "
        "Google Cloud; anthropic: Claude; xai: Grok. All but openai need the package of that extra "
        "(tarsy-operator[anthropic]; google for vertexai too) beside the operator."
    )
    backend: Literal["openai-native", "langchain"] | None = Field(
        default=None,
        description="The client that speaks to it. Not set: the type's own, which keeps a model's reasoning "
        "(openai-native costs far less CPU than langchain). langchain goes through LangChain and the provider's "
        "package; strategies that need Gemini's own client have it all the same.",
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="Name of the model.")
    api_key_secret_ref: SecretKeyRef | None = Field(
        default=None, description="The API key; not set for servers that want none."
    )
    base_url: HttpUrl | None = Field(
        default=None, alias="baseURL", description="Where the API is; the provider's own address when not set."
    )
    vertexai: VertexAI | None = Field(default=None, description="Project and location, for type vertexai.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="How freely the model chooses its words; its default when not set."
    )
    max_output_tokens: int | None = Field(default=None, ge=1, le=10_000_000, description="Most tokens of one answer.")
    context_window: int | None = Field(
        default=None, ge=1024, le=100_000_000, description="How many tokens the model can read at once."
    )
    thinking: Thinking | None = Field(
        default=None,
        description="How much it thinks. Not set: Gemini 2.5 Pro 32768 tokens, 2.5 Flash 24576, newer ones level high; "
        "others as their provider does.",
    )
    native_tools: NativeTools | None = Field(
        default=None, description="Its native tools that are on where neither agent nor alert says otherwise."
    )
    rates: Rates | None = Field(
        default=None,
        description="What it costs; not set: the list price of a well-known model at its maker's own address, else "
        "unknown, and budgets in dollars refuse it.",
    )
    limits: Limits | None = Field(
        default=None,
        description="How much it takes at once and in a minute; a change counts at once, for runs in progress too. No "
        "limit when not set.",
    )
    timeouts: Timeouts | None = Field(default=None, description="How long its calls may take.")
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Which other namespaces may use it; none when not set."
    )


class LLMProvider(Resource[LLMProviderSpec, ConfigStatus]):
    """A model of a provider, with its address and key."""

    KIND: ClassVar[str] = "LLMProvider"
    PLURAL: ClassVar[str] = "llmproviders"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("llmp",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Type", ".spec.type", description="Whose API is spoken."),
        Column("Model", ".spec.model", description="Name of the model."),
        AGE,
        Column(
            "Serving",
            '.status.conditions[?(@.type=="Serving")].status',
            description="Whether it answered the last calls of runs.",
            wide=True,
        ),
        Column("URL", ".spec.baseURL", description="Where the API is.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["LLMProvider"] = "LLMProvider"
    status: ConfigStatus = ConfigStatus()
