"""Defines the part of a plan that describes a model of a provider."""

from enum import StrEnum

from pydantic import Field

from tarsy.plan.model._reference import FrozenModel, ObjectRef, SecretKey


class Backend(StrEnum):
    """Client library for model calls.

    A strategy names a family of backends. In the family of `langchain`, a type's own client is used by default.
    """

    LANGCHAIN = "langchain"
    OPENAI_NATIVE = "openai-native"
    GOOGLE_NATIVE = "google-native"


class LongRates(FrozenModel):
    """Price of a whole call whose input has more than `above` tokens, in US dollars per million tokens."""

    above: int
    input: float
    output: float
    cached: float | None = None


class PlannedRates(FrozenModel):
    """Price of a model in US dollars per million tokens; thinking is billed as output."""

    input: float
    output: float
    cached: float | None = None
    """Price of cached input; None: as `input`."""
    long: LongRates | None = None
    as_of: str | None = None
    """Date of the bundled price list; None when the provider object sets the rates."""


class PlannedThinking(FrozenModel):
    """Thinking effort of a model, in the one measure that it accepts: tokens, a level, or an effort."""

    budget: int | None = None
    level: str | None = None
    effort: str | None = None


class Vertex(FrozenModel):
    """Location of a model in Vertex AI."""

    project: str
    location: str
    own_identity: bool = False
    """Whether calls use the identity of the pod that makes them, without a key."""


class CallLimits(FrozenModel):
    """Limits of a provider over all runs: concurrent calls, calls and tokens per minute; None is no limit."""

    max_concurrent: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class CallTimeouts(FrozenModel):
    """Time limits of a model call, in seconds."""

    silence: float
    """Between two signs of life of the server, before the response begins."""
    first_token: float
    """From the start of a call to the first piece of its response, while the server shows signs of life."""
    stall: float
    """Between two signs of life, after the response has begun."""
    call: float
    """The whole call."""
    iteration: float
    """The call and the tools that it asks for."""


class ProviderPlan(FrozenModel):
    """One model of one provider."""

    ref: ObjectRef
    type: str
    backend: Backend = Backend.LANGCHAIN
    """The client for the strategy that uses it; plans without this field were made for LangChain."""
    model: str
    base_url: str | None = None
    vertexai: Vertex | None = None
    api_key: SecretKey | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    context_window: int | None = None
    thinking: PlannedThinking | None = None
    """None: the default of the model."""
    rates: PlannedRates | None = None
    """None: the cost of a call is unknown, not zero."""
    limits: CallLimits | None = None
    """Limits of this generation; the newest known generation counts, for all runs (`store.slots`)."""
    cache_marks: bool = Field(default=True, exclude_if=lambda marks: marks)
    """Whether requests are marked for a prompt cache that needs it. Older workers leave plans without marks alone."""
    timeouts: CallTimeouts | None = None
    """Resolved field by field (`plan.timeouts`); plans without this field use those of the run's limits."""
