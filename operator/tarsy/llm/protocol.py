"""Defines the protocol between the engine and any model: a request in, a stream of chunks out.

A provider is a thin, stateless adapter. It neither retries nor keeps time nor records: retries wrap
it (`llm.retry`), time and the record belong to the engine. Chunks are a closed union; whoever matches on them ends
with `assert_never`. Errors are raised as `ModelError`, never yielded, so a consumer cannot overlook one.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tarsy.llm.message_forms import MessageForms
from tarsy.record.messages import Message, ToolCall, ToolDefinition
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Some text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingChunk:
    """Some of the model's reasoning, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """One complete tool call (assembled by the provider from its pieces)."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class CodeExecutionChunk:
    """Code that the provider itself ran for the model, with what it printed (a native tool)."""

    code: str
    output: str
    language: str = ""


class GroundingKind(StrEnum):
    """The native tool by which a provider looked something up for the model."""

    SEARCH = "search"
    URL_CONTEXT = "url_context"


@dataclass(frozen=True, slots=True)
class GroundingSource:
    """A page that an answer rests on."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class GroundingChunk:
    """Results that the provider itself looked up for the model: its queries, and the pages it found or read."""

    kind: GroundingKind
    queries: tuple[str, ...] = ()
    sources: tuple[GroundingSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ActivityChunk:
    """The provider sends data that is handed on when complete, such as a tool call's arguments."""


@dataclass(frozen=True, slots=True)
class LifeChunk:
    """The server has shown that it works on the call, and nothing of the answer yet: a status of 200, a comment."""


@dataclass(frozen=True, slots=True)
class NoticeChunk:
    """A notice about a call that is not part of its response: a CamelCase `reason` and a sentence."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class WaitChunk:
    """The call waits for its turn, because its provider's `limit` (a field) of `allowed` is reached, until `over`.

    Made by `llm.limits`, never by a provider. What a consumer waits for begins anew when the wait is over.
    """

    limit: str
    allowed: int
    over: bool = False


@dataclass(frozen=True, slots=True)
class RetryChunk:
    """Nothing of the answer has come yet and the call is made again in `seconds`, because of `error`.

    Made by `llm.retry`, never by a provider. What a consumer waits for begins anew.
    """

    error: "ModelError"
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """The call's usage; at most one a call, last one wins."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class EndChunk:
    """The provider closed the answer properly: why it stopped, and what it wants back next time.

    A stream that ends without this chunk was cut: the consumer treats it as a partial stream. `response_id` and
    `response_model` are the provider's own names of the answer and of the model that gave it; empty: not told.
    """

    finish_reason: str
    provider_state: dict[str, Any] | None = None
    response_id: str = ""
    response_model: str = ""


Chunk = (
    TextChunk
    | ThinkingChunk
    | ToolCallChunk
    | CodeExecutionChunk
    | GroundingChunk
    | ActivityChunk
    | LifeChunk
    | NoticeChunk
    | WaitChunk
    | RetryChunk
    | UsageChunk
    | EndChunk
)


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A request to a model: the whole conversation and the tools that are bound to the call.

    Without tools, or with `may_call` False, the model must answer in text. Tools that may not be called are sent all
    the same, with the choice `none`: the request then begins like the ones before it, which prompt caches need.
    `native_tools` are tools of the provider that are on. `execution` identifies the agent execution to the provider's
    logs; `agent` names the agent. `tokens` is what the call is expected to use, its answer included. `stop` are texts
    that end the answer, sent only to models that are known to accept them. `forms` is what clients made of earlier
    requests of the same conversation.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = field(default=())
    execution: str = ""
    agent: str = ""
    native_tools: tuple[str, ...] = ()
    tokens: int = 0
    may_call: bool = True
    stop: tuple[str, ...] = ()
    forms: MessageForms = field(default_factory=MessageForms, compare=False, repr=False)

    @property
    def offers_tools(self) -> bool:
        """Whether the model may call a tool."""
        return self.may_call and bool(self.tools)


class LLMClient(Protocol):
    """One model of one provider with one key."""

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer; cancelling the consumer closes the connection at once.

        Raises ModelError: classified, without credentials in its text.
        """
        ...

    async def aclose(self) -> None:
        """Closes connections; the client is not used afterwards."""
        ...


class ModelErrorCode(StrEnum):
    """Reason of a failed model call; the CamelCase values are used as condition reasons."""

    CREDENTIALS = "CredentialsRejected"
    CREDENTIALS_MISSING = "CredentialsMissing"
    INVALID_REQUEST = "InvalidRequest"
    NOT_FOUND = "ModelNotFound"
    CONTEXT_TOO_LONG = "ContextTooLong"
    CONTENT_FILTER = "ContentFiltered"
    RATE_LIMIT = "RateLimited"
    SERVER = "ModelServerError"
    CONNECTION = "ModelUnreachable"
    TIMEOUT = "ModelTimeout"
    ITERATION_TIMEOUT = "IterationTimeout"
    SILENT = "ServerSilent"
    FIRST_TOKEN_TIMEOUT = "FirstTokenTimeout"
    STALL = "StreamStalled"
    CONCLUSION_TIMEOUT = "ConclusionTimeout"
    EMPTY = "EmptyAnswer"
    PARTIAL_STREAM = "PartialStream"


class ModelError(Exception):
    """A model call failed.

    Decision: one argument for each fact about the failure, although there are eight: an error is raised where only some
    of them are known.

    Args:
        code: The reason.
        message: A sentence with the remedy, for people. It contains the server's message only if the server is the
            vendor's own: the author of an LLMProvider must not read other addresses through it.
        retryable: Whether the same call may succeed later.
        retry_after: Seconds that the server asks to wait, if any.
        started: Whether a chunk was received; such a call is never silently retried.
        words: The server's message, for the trace.
        window: Context window in tokens, if the server states it (`llm.context_windows`).
        asked: Tokens of the request, if the server states them.
    """

    def __init__(
        self,
        code: ModelErrorCode,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        started: bool = False,
        words: str = "",
        window: int | None = None,
        asked: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.started = started
        self.words = words
        self.window = window
        self.asked = asked
