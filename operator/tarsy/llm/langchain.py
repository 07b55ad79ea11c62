"""Models behind LangChain: `type: openai`, which is OpenAI and every server that speaks its chat completions.

Importing this is cheap: LangChain and the SDK (a second of CPU) are imported in a thread when the first call is made.
Errors leave here as `ModelError` with neither cause nor context, because the SDKs' own texts may quote the key.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from tarsy.llm.names import ToolNames
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.text import TextJoiner, encodable
from tarsy.llm.toolcalls import ToolCallAssembler
from tarsy.plan.model import ProviderPlan
from tarsy.record.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

    from tarsy.llm.chat_openai import OpenAIChat

_IMPORTING = threading.Lock()  # packages with import cycles do not like to be imported from two threads at once


def preload() -> None:
    """Imports LangChain and the SDK now, so that the first call need not; blocking, for a thread."""
    with _IMPORTING:
        import tarsy.llm.chat_openai
        import tarsy.llm.errors  # noqa: F401


class LangChainProvider:
    """An `LLMClient` for one model of one provider with one key; it neither retries nor keeps the engine's time.

    Args:
        provider: the model, its server and its settings; `base_url` is taken as given.
        key: the API key, None for servers that need none. Environment variables are never asked.
        connect_seconds: for the connection and the TLS handshake.
        read_seconds: the longest silence; a last resort behind the engine's own limits.
    """

    def __init__(
        self, provider: ProviderPlan, key: str | None, *, connect_seconds: float = 10.0, read_seconds: float = 600.0
    ) -> None:
        self._provider = provider
        self._key = key or None
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._subject = f"provider {provider.ref.name} (model {provider.model})"
        self._building = asyncio.Lock()
        self._chat: OpenAIChat | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer: text as it comes; tool calls, usage and the end when the stream has ended properly."""
        from_model = _Answer(request)
        failure: ModelError | None = None
        try:
            chat = await self._open()
            async with aclosing(chat.stream(request.messages, request.tools)) as pieces:
                async for piece in pieces:
                    for chunk in from_model.read(piece):
                        yield chunk
        except Exception as error:
            failure = self._classified(error, started=from_model.started)
        if failure is not None and not from_model.finish_reason:
            raise failure
        for chunk in from_model.end(self._subject):
            yield chunk

    async def aclose(self) -> None:
        """Closes the HTTP connections."""
        async with self._building:
            chat, self._chat = self._chat, None
        if chat is not None:
            await chat.aclose()

    async def _open(self) -> "OpenAIChat":
        if self._chat is None:
            async with self._building:
                if self._chat is None:
                    self._chat = await asyncio.to_thread(self._build)
        return self._chat

    def _build(self) -> "OpenAIChat":
        with _IMPORTING:
            from tarsy.llm.chat_openai import OpenAIChat
        return OpenAIChat(
            self._provider, self._key, connect_seconds=self._connect_seconds, read_seconds=self._read_seconds
        )

    def _classified(self, error: Exception, *, started: bool) -> ModelError:
        from tarsy.llm.errors import classify

        return classify(error, subject=self._subject, secret=self._key, started=started)


class _Answer:
    """One answer as it is read: what only the end of the stream can tell is kept until then."""

    def __init__(self, request: GenerateRequest) -> None:
        earlier = (call.name for message in request.messages for call in message.tool_calls)
        names = ToolNames([*earlier, *(tool.name for tool in request.tools)])
        self._calls = ToolCallAssembler(names, f"{request.execution}/{len(request.messages)}")
        self._text = TextJoiner()
        self._usage: Usage | None = None
        self.started = False
        self.finish_reason = ""

    def read(self, piece: "AIMessageChunk") -> Iterator[Chunk]:
        from tarsy.llm.chat_openai import text_of, usage_of

        self.started = True
        text, thinking = text_of(piece)
        if thinking:
            yield ThinkingChunk(encodable(thinking))
        if text := self._text.add(text):
            yield TextChunk(text)
        for call in piece.tool_call_chunks:
            index = call["index"]
            self._calls.add(
                index=index if isinstance(index, int) else None,
                id=call["id"],
                name=call["name"],
                arguments=call["args"],
            )
        self._usage = usage_of(piece) or self._usage
        self.finish_reason = piece.response_metadata.get("finish_reason") or self.finish_reason

    def end(self, subject: str) -> Iterator[Chunk]:
        """What follows the text; raises ModelError when the answer did not end as an answer ends."""
        if text := self._text.end():
            yield TextChunk(text)
        calls = self._calls.calls() if self.finish_reason else ()
        for call in calls:
            yield ToolCallChunk(call)
        if self._usage is not None:
            yield UsageChunk(self._usage)
        match self.finish_reason:
            case "":
                code, why = ModelErrorCode.PARTIAL_STREAM, "the stream ended in the middle of the answer"
            case "content_filter":
                code, why = ModelErrorCode.CONTENT_FILTER, "the server's content filter stopped the answer"
            case "tool_calls" if not calls:
                code, why = ModelErrorCode.SERVER, "the server announced tool calls but none came that can be read"
            case reason:
                yield EndChunk(reason)
                return
        retryable = code is not ModelErrorCode.CONTENT_FILTER
        raise ModelError(code, f"{subject}: {why}", retryable=retryable, started=self.started)
