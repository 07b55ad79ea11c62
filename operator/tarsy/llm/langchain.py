"""Implements `LLMClient` with LangChain's chat models.

Importing this is cheap: LangChain and the SDKs (a second of CPU) are imported in a thread when the first call is made,
and those that are optional packages only for their own type (`tarsy.llm.providers`). Errors leave here as `ModelError`
with neither cause nor context, because the SDKs' own texts may quote the key.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tarsy.llm.call_errors import FailedCall
from tarsy.llm.extras import OptionalPackage
from tarsy.llm.protocol import Chunk, GenerateRequest, LifeChunk, ModelError, ModelErrorCode
from tarsy.llm.reach import ANYWHERE, ModelServer, server_of
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan

if TYPE_CHECKING:
    from tarsy.llm.chat import ChatModel, ChatResponse

_T = TypeVar("_T")
_IMPORTING = threading.Lock()  # packages with import cycles do not like to be imported from two threads at once


@dataclass(frozen=True, slots=True)
class ChatModelSettings:
    """The settings that a chat model is built from.

    Args:
        provider: The model, its server and its settings.
        key: The API key, None for servers that need none.
        server: The server, with the check of its addresses.
        lent_to: Namespaces whose providers may use this pod's own identity with Google.
        connect_seconds: Limit for the connection and the TLS handshake.
        read_seconds: Limit between two reads; a last resort behind the engine's own limits.
    """

    provider: ProviderPlan
    key: str | None
    server: ModelServer
    lent_to: Collection[str]
    connect_seconds: float
    read_seconds: float


@dataclass(frozen=True, slots=True)
class ChatSpec:
    """LangChain's chat model for one type of provider.

    Args:
        address: Returns the address of the vendor's API for a provider.
        open: Imports and builds the chat model.
        package: The optional package that it needs.
    """

    address: Callable[[ProviderPlan], str]
    open: Callable[[ChatModelSettings], Awaitable["ChatModel"]]
    package: OptionalPackage | None = None


class LangChainProvider:
    """An `LLMClient` for one model of one provider with one key; it neither retries nor keeps the engine's time.

    Args:
        provider: the model, its server and its settings; `base_url` is taken as given.
        key: the API key, None for servers that need none. Environment variables are never read.
        chat: the chat model of the provider's type.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        connect_seconds: for the connection and the TLS handshake.
        read_seconds: between two reads; a last resort behind the engine's own limits.
        destinations: where URLs may lead.

    Raises:
        ModelError: INVALID_REQUEST: the server's address is not allowed.
    """

    def __init__(
        self,
        provider: ProviderPlan,
        key: str | None,
        chat: ChatSpec,
        *,
        lent_to: Collection[str] = (),
        connect_seconds: float = 10.0,
        read_seconds: float = 86_400.0,
        destinations: Destinations = ANYWHERE,
    ) -> None:
        server = server_of(provider, chat.address(provider), destinations)
        self._settings = ChatModelSettings(provider, key or None, server, lent_to, connect_seconds, read_seconds)
        self._spec = chat
        self._subject = f"provider {provider.ref.name} (model {provider.model})"
        self._building = asyncio.Lock()
        self._chat: ChatModel | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer: text as it comes; tool calls, usage and the end when the stream has ended properly."""
        chat: ChatModel | None = None
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
            failure = self._classified(error, chat, started=answer is not None and answer.started)
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
                    package = self._spec.package
                    if package is not None and (missing := package.missing()) is not None:
                        raise ModelError(ModelErrorCode.INVALID_REQUEST, missing, retryable=False)
                    self._chat = await self._spec.open(self._settings)
        return self._chat

    def _classified(self, error: Exception, chat: "ChatModel | None", *, started: bool) -> ModelError:
        if chat is not None:
            return chat.classify(error, subject=self._subject, started=started)
        from tarsy.llm.sdk_errors import classify_sdk_error

        call = FailedCall(self._subject, self._settings.key, started, self._settings.server.makers)
        return classify_sdk_error(error, call)


async def build_in_thread(build: Callable[[], _T]) -> _T:
    """Runs a function that imports LangChain in a thread, one at a time."""

    def locked() -> _T:
        with _IMPORTING:
            return build()

    return await asyncio.to_thread(locked)
