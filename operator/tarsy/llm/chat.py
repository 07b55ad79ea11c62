"""Implements the parts that all chat models of LangChain share: HTTP client, stream, reading of chunks.

Loaded at first use (`llm.langchain`), because LangChain takes a second to import. The SDKs read a dozen environment
variables, some of them even when an argument is given (`OPENAI_CUSTOM_HEADERS`, `ANTHROPIC_CUSTOM_HEADERS`), so the
last word is a request hook: only headers of a short list leave the process, and the key is set there. The transport
judges where it connects to, knows no proxies and honours `SSL_CERT_FILE`; redirects are not followed, since a key must
not travel to where nobody sent it.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast

import httpx2
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langsmith.run_helpers import tracing_context

from tarsy.llm.answer import ResponseReading
from tarsy.llm.call_errors import FailedCall
from tarsy.llm.error_responses import NOT_A_STREAM, not_a_stream
from tarsy.llm.langchain import ChatModelSettings
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
)
from tarsy.llm.sdk_errors import classify_sdk_error
from tarsy.llm.text import encodable
from tarsy.outbound.address_check import AddressCheck
from tarsy.outbound.transport import PinnedTransport
from tarsy.record.usage import Usage

_HEADERS = frozenset(
    ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent")
)


class ChatResponse(ResponseReading):
    """The chunks of LangChain, read; a provider's own says what differs."""

    def read(self, piece: AIMessageChunk) -> Iterator[Chunk]:
        """Yields the chunks that can be handed on at once."""
        self.started = True
        text, thinking = self.words(piece)
        if thinking:
            yield ThinkingChunk(encodable(thinking))
        if text := self.text.add(text):
            yield TextChunk(text)
        if piece.tool_call_chunks:
            yield ActivityChunk()
        for call in piece.tool_call_chunks:
            index = call["index"]
            self.calls.add(
                index=index if isinstance(index, int) else None,
                id=call["id"],
                name=call["name"],
                arguments=self.arguments(call["args"] or ""),
            )
        if (used := usage_of(piece)) is not None:
            self.usage = self.count(used)
        self.finish_reason = self.reason(piece) or self.finish_reason
        if not self.response_model:
            told = piece.response_metadata
            self.identify(told.get("id"), told.get("model_name") or told.get("model"))

    def words(self, piece: AIMessageChunk) -> tuple[str, str]:
        """Text and reasoning of a chunk; `content_blocks` is costly and only needed where content is not plain text."""
        if isinstance(piece.content, str):
            return piece.content, ""
        blocks: list[Any] = list(piece.content_blocks)
        text = "".join(block.get("text", "") for block in blocks if block["type"] == "text")
        return text, "".join(block.get("reasoning", "") for block in blocks if block["type"] == "reasoning")

    def arguments(self, text: str) -> str:
        """Some of a call's arguments, as the model wrote them."""
        return text

    def count(self, told: Usage) -> Usage:
        """Returns the usage so far, given what a chunk reports: the last report is the total."""
        return told

    def reason(self, piece: AIMessageChunk) -> str:
        """Returns why the response ended, in OpenAI's terms; empty while it goes on."""
        return piece.response_metadata.get("finish_reason") or ""


class ChatModel(Protocol):
    """One model on one server with one key, behind LangChain."""

    def answer(self, request: GenerateRequest) -> ChatResponse:
        """Returns the reader of the response to a request."""
        ...

    def stream(self, request: GenerateRequest) -> AsyncGenerator[AIMessageChunk, None]:
        """Streams LangChain's chunks, none for an empty stream; raises whatever the SDKs raise."""
        ...

    def classify(self, error: Exception, *, subject: str, started: bool) -> ModelError:
        """Turns what a call raised into a ModelError.

        Args:
            error: as the SDK raised it.
            subject: provider and model, the beginning of the message.
            started: whether anything of the response was received before.
        """
        ...

    async def aclose(self) -> None:
        """Closes the connections."""
        ...


class HttpChat:
    """The part that chat models on our HTTP client share.

    Args:
        settings: the provider, its server and the limits.
        authorize: sets the headers that the API wants beyond those of HTTP: only these are sent.
    """

    def __init__(self, settings: ChatModelSettings, authorize: Callable[[httpx2.Headers], None]) -> None:
        self._settings = settings
        self._provider = settings.provider
        self._http = http_client(
            authorize,
            settings.server.judge,
            connect_seconds=settings.connect_seconds,
            read_seconds=settings.read_seconds,
        )

    def classify(self, error: Exception, *, subject: str, started: bool) -> ModelError:
        """Turns the error of a call into a ModelError.

        Args:
            error: as the SDK raised it.
            subject: provider and model, the beginning of the message.
            started: whether anything of the response was received before.
        """
        call = FailedCall(subject, self._settings.key, started, self._settings.server.makers)
        return classify_sdk_error(error, call)

    async def aclose(self) -> None:
        """Closes the HTTP client."""
        await self._http.aclose()


async def stream(
    model: BaseChatModel, messages: Sequence[BaseMessage], **options: Any
) -> AsyncGenerator[AIMessageChunk, None]:
    """LangChain's chunks, none for an empty stream; raises whatever the SDKs raise.

    A request that LangChain refuses to make is a ModelError of its own: it would be refused every time.
    """
    chunks = cast("AsyncGenerator[AIMessageChunk, None]", model.astream(list(messages), **options))
    async with aclosing(chunks):
        try:
            # LangChain decides about tracing once, before the first chunk.
            with tracing_context(enabled=False):
                first = await anext(chunks)
        except ValueError as error:
            if str(error) == "No generation chunks were returned":
                return
            if type(error) is ValueError:
                raise ModelError(ModelErrorCode.INVALID_REQUEST, str(error), retryable=False) from None
            raise
        yield first
        async for chunk in chunks:
            yield chunk


def http_client(
    authorize: Callable[[httpx2.Headers], None], judge: AddressCheck, *, connect_seconds: float, read_seconds: float
) -> httpx2.AsyncClient:
    """The client for one server.

    Args:
        authorize: sets the headers that the API wants beyond those of HTTP: only these are sent.
        judge: decides about the addresses of the server.
        connect_seconds: for the connection and the TLS handshake.
        read_seconds: the longest silence.
    """

    async def only_ours(request: httpx2.Request) -> None:
        for name in {name.lower() for name in request.headers} - _HEADERS:
            del request.headers[name]
        request.headers["content-type"] = "application/json"
        authorize(request.headers)

    return httpx2.AsyncClient(
        transport=PinnedTransport(
            judge, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0)
        ),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(read_seconds, connect=connect_seconds),
        event_hooks={"request": [only_ours], "response": [_must_be_a_stream]},
    )


def usage_of(chunk: AIMessageChunk) -> Usage | None:
    """The usage a chunk reports; the details carry the service tier in front of their names.

    No tokens at all is what LangChain makes of a server that reports nothing.
    """
    if (reported := chunk.usage_metadata) is None or not (reported["input_tokens"] or reported["output_tokens"]):
        return None
    return Usage(
        input_tokens=reported["input_tokens"],
        output_tokens=reported["output_tokens"],
        thinking_tokens=_detail(reported.get("output_token_details"), "reasoning"),
        cached_tokens=_detail(reported.get("input_token_details"), "cache_read"),
        cache_write_tokens=_cache_writes(reported.get("input_token_details")),
    )


def _cache_writes(details: Any) -> int:
    """Tokens written to the cache: in all, or by how long they are kept, which replaces the sum."""
    kept = [count for key, count in (details or {}).items() if key.endswith("ephemeral_5m_input_tokens") and count]
    kept += [count for key, count in (details or {}).items() if key.endswith("ephemeral_1h_input_tokens") and count]
    return sum(kept) or _detail(details, "cache_creation")


def _detail(details: Any, name: str) -> int:
    return sum(count for key, count in (details or {}).items() if key == name or key.endswith(f"_{name}"))


async def _must_be_a_stream(response: httpx2.Response) -> None:
    """A web page or a whole completion instead of a stream: said so, where the SDK would see an empty answer."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and kind in NOT_A_STREAM:
        raise ModelError(
            ModelErrorCode.INVALID_REQUEST,
            not_a_stream(response.status_code, kind),
            retryable=False,
        )
