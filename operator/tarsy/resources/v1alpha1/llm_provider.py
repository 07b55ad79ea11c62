"""LLMProvider: a model, its endpoint and its settings.

Decision: the key is optional, because local servers (vLLM, Ollama) are first-class and need none.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import HttpUrl, Model, ValidationRule
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    ConfigStatus,
    Dollars,
    NativeTools,
    Seconds,
    SecretKeyRef,
)
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces

ProviderTypeName = Literal["openai", "google", "vertexai", "anthropic", "xai"]
"""The values of `spec.type`, each described in `tarsy.plan.provider_types`."""


class Rates(Model):
    """Price of the model in US dollars per million tokens. Thinking tokens count as output."""

    input_per_million: Dollars = Field(description="Price of input tokens.")
    output_per_million: Dollars = Field(description="Price of output tokens, including thinking.")
    cached_input_per_million: Dollars | None = Field(
        default=None, description="Price of cached input tokens. Defaults to inputPerMillion."
    )


class Thinking(Model):
    """Thinking effort of the model, in the one unit that its provider supports."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.budget) ? 1 : 0) + (has(self.level) ? 1 : 0) + (has(self.effort) ? 1 : 0) == 1",
            "set exactly one of budget, level and effort",
            lambda self: [self.budget, self.level, self.effort].count(None) == 2,
        ),
    )

    budget: int | None = Field(
        default=None,
        ge=-1,
        le=1_000_000,
        description="Thinking budget in tokens (Claude; Gemini up to 2.5, where 0 disables thinking and -1 lets "
        "the model decide).",
    )
    level: Literal["minimal", "low", "medium", "high"] | None = Field(
        default=None, description="Thinking level (Gemini 3 and newer)."
    )
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        default=None, description="Reasoning effort, in the provider's own values (OpenAI, Claude, Grok)."
    )


class VertexAI(Model):
    """Location of the model in Vertex AI, and the identity used to call it."""

    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:-]*$", min_length=1, max_length=128)] = Field(
        description="Id or number of the Google Cloud project that is billed."
    )
    location: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", min_length=1, max_length=63)] = Field(
        default="global", description="Region (europe-west1), us, eu, or global."
    )
    credentials: Literal["Secret", "WorkloadIdentity"] = Field(
        default="Secret",
        description="Secret: apiKeySecretRef holds the key file (JSON) of a service account, or an API key. "
        "WorkloadIdentity: no key; calls use the Google identity of the operator's pods, which the "
        "administrator must allow for this namespace (tarsy run --workload-identity-for).",
    )


class Limits(Model):
    """Limits of the calls of all investigations together, on all workers. Calls above a limit wait."""

    max_concurrent: int | None = Field(default=None, ge=1, le=10_000, description="Maximum concurrent calls.")
    requests_per_minute: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Maximum calls in any 60 seconds, including rejected attempts."
    )
    tokens_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000_000,
        description="Maximum input and output tokens in any 60 seconds. Tokens are estimated before a call and "
        "corrected after it. A call that needs more than the limit runs alone.",
    )


class Timeouts(Model):
    """Time limits of model calls, in seconds. They override those of a Chain and of InvestigationDefaults."""

    silence_seconds: Seconds | None = Field(
        default=None,
        description="Limit between signs of life before the response begins: from the start of a call, or from "
        "the server's last sign of life (a status of 200, a comment in the stream), to the next one. "
        "Defaults to 120, or to 300 with a baseURL.",
    )
    first_token_seconds: Seconds | None = Field(
        default=None,
        description="Limit from the start of a call to the first chunk of the response, while the server shows "
        "signs of life. Defaults to the Chain's value, else 240, or 600 with a baseURL.",
    )
    stall_seconds: Seconds | None = Field(
        default=None,
        description="Limit between two signs of life after the response has begun. Defaults to the Chain's "
        "value, else 60, or 120 with a baseURL.",
    )
    call_seconds: Seconds | None = Field(
        default=None,
        description="Limit of one call. Defaults to the Chain's modelCallSeconds, else 300, or 900 with a "
        "baseURL. An iteration may take one minute longer, unless the Chain sets iterationSeconds.",
    )


class LLMProviderSpec(Model):
    """The model and its call settings."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.backend) || self.backend != 'openai-native' || self.type == 'openai'",
            "openai-native speaks the API of type openai only; leave backend out",
            lambda self: self.backend != "openai-native" or self.type == "openai",
            field="backend",
        ),
        ValidationRule(
            "has(self.vertexai) == (self.type == 'vertexai')",
            "set vertexai (with the project) for type vertexai, and for no other type",
            lambda self: (self.vertexai is not None) == (self.type == "vertexai"),
            field="vertexai",
        ),
        ValidationRule(
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
        ValidationRule(
            "!has(self.vertexai) || !has(self.vertexai.credentials) || "
            "self.vertexai.credentials != 'WorkloadIdentity' || (!has(self.apiKeySecretRef) && !has(self.baseURL))",
            "WorkloadIdentity uses no key and only Google's own endpoint: leave apiKeySecretRef and baseURL out",
            lambda self: (
                self.vertexai is None
                or self.vertexai.credentials != "WorkloadIdentity"
                or (self.api_key_secret_ref is None and self.base_url is None)
            ),
            field="vertexai",
        ),
    )

    type: ProviderTypeName = Field(
        description="API type. openai: OpenAI and compatible servers. google: Gemini. vertexai: Gemini on Google "
        "Cloud. anthropic: Claude. xai: Grok. All types except openai require the matching extra of "
        "the operator's package (tarsy-operator[anthropic]; google also for vertexai)."
    )
    backend: Literal["openai-native", "langchain"] | None = Field(
        default=None,
        description="Client library for the calls. Defaults to the native client of the type, which preserves "
        "the model's reasoning (openai-native uses far less CPU than langchain). langchain uses "
        "LangChain and the provider's package; strategies that require Gemini's own client use it "
        "regardless.",
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="Name of the model.")
    api_key_secret_ref: SecretKeyRef | None = Field(
        default=None, description="API key. Leave it out for servers that need none."
    )
    base_url: HttpUrl | None = Field(
        default=None, alias="baseURL", description="Base URL of the API. Defaults to the provider's own."
    )
    vertexai: VertexAI | None = Field(default=None, description="Project and location, for type vertexai.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Sampling temperature. Defaults to the model's own."
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, le=10_000_000, description="Maximum tokens of one response."
    )
    context_window: int | None = Field(
        default=None, ge=1024, le=100_000_000, description="Context window of the model in tokens."
    )
    thinking: Thinking | None = Field(
        default=None,
        description="Thinking effort of the model. Defaults to 32768 tokens for Gemini 2.5 Pro, 24576 for 2.5 "
        "Flash, level high for newer Gemini models, and the provider's default for all others.",
    )
    native_tools: NativeTools | None = Field(
        default=None, description="Native tools that are enabled unless the agent or the alert sets otherwise."
    )
    rates: Rates | None = Field(
        default=None,
        description="Price of the model. Defaults to the list price for well-known models at their vendor's own "
        "endpoint. Otherwise the price is unknown, and the provider cannot be used with a budget in "
        "dollars.",
    )
    prompt_caching: Literal["Automatic", "Disabled"] | None = Field(
        default=None,
        description="Whether requests are marked for the provider's prompt cache, where its API needs marks (type "
        "anthropic). Disabled: no marks. Other providers cache by themselves in any case. Defaults to Automatic.",
    )
    limits: Limits | None = Field(
        default=None,
        description="Concurrency and rate limits. Changes apply immediately, also to runs in progress. Defaults "
        "to no limit.",
    )
    timeouts: Timeouts | None = Field(default=None, description="Time limits of calls.")
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Other namespaces that may use this provider. Defaults to none."
    )


class LLMProvider(Resource[LLMProviderSpec, ConfigStatus]):
    """A model of an LLM provider, with its endpoint and key."""

    KIND: ClassVar[str] = "LLMProvider"
    PLURAL: ClassVar[str] = "llmproviders"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("llmp",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Type", ".spec.type", description="API type."),
        Column("Model", ".spec.model", description="Name of the model."),
        AGE,
        Column(
            "Serving",
            '.status.conditions[?(@.type=="Serving")].status',
            description="Whether the provider answered the last calls of runs.",
            wide=True,
        ),
        Column("URL", ".spec.baseURL", description="Base URL of the API.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["LLMProvider"] = "LLMProvider"
    status: ConfigStatus = ConfigStatus()
