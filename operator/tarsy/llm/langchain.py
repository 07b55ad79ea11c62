"""Models behind LangChain: OpenAI and every server that speaks its chat completions, Claude, Grok, and Gemini,
by its own API or Vertex AI.

Importing this is cheap: LangChain and the SDKs (a second of CPU) are imported in a thread when the first call is made,
and those that are optional packages only for their own type. Errors leave here as `ModelError` with neither cause nor
context, because the SDKs' own texts may quote the key.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import TYPE_CHECKING

from tarsy.llm import extras
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import makers as google_url
from tarsy.llm.protocol import Chunk, GenerateRequest, LifeChunk, ModelError, ModelErrorCode
from tarsy.llm.reach import ADDRESSES, ANYWHERE, server_of
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel, ChatResponse

_GOOGLES = ("google", "vertexai")
_IMPORTING = threading.Lock()  # packages with import cycles do not like to be imported from two threads at once


class LangChainProvider:
    """An `LLMClient` for one model of one provider with one key; it neither retries nor keeps the engine's time.

    Args:
        provider: the model, its server and its settings; `base_url` is taken as given.
        key: the API key, None for servers that need none. Environment variables are never asked.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        connect_seconds: for the connection and the TLS handshake.
        read_seconds: the longest silence; a last resort behind the engine's own limits.
        destinations: where URLs may lead.

    Raises:
        ModelError: INVALID_REQUEST: the server may not be asked.
    """

    def __init__(
        self,
        provider: ProviderPlan,
        key: str | None,
        *,
        lent_to: Collection[str] = (),
        connect_seconds: float = 10.0,
        read_seconds: float = 86_400.0,
        destinations: Destinations = ANYWHERE,
    ) -> None:
        google = provider.type in _GOOGLES
        self._server = server_of(provider, google_url(provider) if google else ADDRESSES[provider.type], destinations)
        self._provider = provider
        self._key = key or None
        self._access = GoogleAccess(provider, self._key, lent_to=lent_to) if google else None
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._subject = f"provider {provider.ref.name} (model {provider.model})"
        self._building = asyncio.Lock()
        self._chat: ChatModel | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer: text as it comes; tool calls, usage and the end when the stream has ended properly."""
        answer: ChatResponse | None = None
        failure: ModelError | None = None
        try:
            chat = await self._open()
            answer = chat.answer(request)
            async with aclosing(chat.stream(request)) as pieces:
                async for piece in pieces:
                    told = False
                    for chunk in answer.read(piece):
                        told = True
                        yield chunk
                    if not told:
                        yield LifeChunk()
        except Exception as error:
            failure = self._classified(error, started=answer is not None and answer.started)
        if failure is not None and not (answer and answer.finish_reason):
            raise failure
        if answer is not None:
            for chunk in answer.end(self._subject):
                yield chunk

    async def aclose(self) -> None:
        """Closes the HTTP connections."""
        async with self._building:
            chat, self._chat = self._chat, None
        if chat is not None:
            await chat.aclose()

    async def _open(self) -> "ChatModel":
        if self._chat is None:
            async with self._building:
                if self._chat is None:
                    if (missing := extras.missing_extra(self._provider)) is not None:
                        raise ModelError(ModelErrorCode.INVALID_REQUEST, missing, retryable=False)
                    make = self._gemini(self._access) if self._access else asyncio.to_thread(self._build)
                    self._chat = await make
        return self._chat

    async def _gemini(self, access: GoogleAccess) -> "ChatModel":
        await asyncio.to_thread(_import_google)
        from tarsy.llm.chat_google import GoogleChat
        from tarsy.llm.google_native.client import Http

        http = Http(access, self._server, self._connect_seconds)  # belongs to this loop
        try:
            return await asyncio.to_thread(GoogleChat, self._provider, http)
        except BaseException:
            await http.aclose()
            raise

    def _build(self) -> "ChatModel":
        waits = {"connect_seconds": self._connect_seconds, "read_seconds": self._read_seconds}
        with _IMPORTING:
            match self._provider.type:
                case "anthropic":
                    from tarsy.llm.chat_anthropic import AnthropicChat

                    return AnthropicChat(self._provider, self._key, self._server, **waits)
                case _:
                    from tarsy.llm.chat_openai import OpenAIChat

                    return OpenAIChat(self._provider, self._key, self._server, **waits)

    def _classified(self, error: Exception, *, started: bool) -> ModelError:
        if self._access is not None and not isinstance(error, ModelError):
            from tarsy.llm.chat_google import classify_chat_error
        else:
            from tarsy.llm.errors import classify_error as classify_chat_error

        secret = self._access.secret if self._access else self._key
        return classify_chat_error(
            error, subject=self._subject, secret=secret, started=started, makers=self._server.makers
        )


def _import_google() -> None:
    with _IMPORTING:
        import tarsy.llm.chat_google  # noqa: F401
