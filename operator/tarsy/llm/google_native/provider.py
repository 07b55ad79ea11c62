"""Implements `LLMClient` for Gemini by google-genai (types `google` and `vertexai`, backend google-native).

Importing this is cheap: the SDK is an optional package (extra `google`) and takes a second of CPU, so it is imported
in a thread when the first call is made. The adapter is stateless: thought signatures travel in the provider state of
the messages, so the next call may be made by another process. Errors leave here as `ModelError` with neither cause
nor context, because the SDK's own texts may quote the key.
"""

import asyncio
import importlib
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import TYPE_CHECKING

from tarsy.llm.call_errors import FailedCall
from tarsy.llm.extras import OptionalPackage
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import makers
from tarsy.llm.protocol import Chunk, GenerateRequest, LifeChunk, ModelError, ModelErrorCode, NoticeChunk
from tarsy.llm.reach import ANYWHERE, server_of
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types import provider_type

if TYPE_CHECKING:
    from tarsy.llm.google_native.client import Gemini, Http

GOOGLE_GENAI = OptionalPackage("google.genai", extra="google")
_IMPORTING = threading.Lock()  # packages with import cycles do not like to be imported from two threads at once


class GoogleNativeProvider:
    """An `LLMClient` for one model of one provider with one key; it neither retries nor keeps time.

    Args:
        provider: the model, its server and its settings.
        key: the API key, None for servers that need none. Environment variables are never asked.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        connect_seconds: for the connection and the TLS handshake.
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
        destinations: Destinations = ANYWHERE,
    ) -> None:
        self._server = server_of(provider, makers(provider), destinations)
        self._provider = provider
        self._access = GoogleAccess(provider, key or None, lent_to=lent_to)
        self._connect_seconds = connect_seconds
        self._subject = f"provider {provider.ref.name} (model {provider.model})"
        self._building = asyncio.Lock()
        self._open: tuple[Gemini, Http] | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer: text as it comes; tool calls, usage and the end when the stream has ended properly.

        Native tools are left out where the model cannot have them beside function tools; a notice tells people.
        """
        both = request.native_tools and request.tools
        if both and not provider_type(self._provider.type).combines_tools(self._provider.model):
            model = self._provider.model
            text = f"Model {model} cannot combine native tools with the tools of MCP servers: its native tools are off."
            yield NoticeChunk("NativeToolsOff", text)
        await self._load()
        from tarsy.llm.google_native.errors import classify_google_error
        from tarsy.llm.google_native.response import GeminiResponse

        answer = GeminiResponse(request, self._provider.model, makers=self._server.makers)
        failure: ModelError | None = None
        try:
            client = await self._client()
            async with aclosing(client.stream(request)) as responses:
                async for response in responses:
                    told = False
                    for chunk in answer.read(response):
                        told = True
                        yield chunk
                    if not told:
                        yield LifeChunk()
        except Exception as error:
            failure = classify_google_error(
                error, FailedCall(self._subject, self._access.secret, answer.started, self._server.makers)
            )
        if failure is not None and not answer.finish_reason:
            raise failure
        for chunk in answer.end(self._subject):
            yield chunk

    async def aclose(self) -> None:
        """Closes the HTTP connections."""
        async with self._building:
            opened, self._open = self._open, None
        if opened is not None:
            client, http = opened
            await client.aclose()
            await http.aclose()

    async def _load(self) -> None:
        if self._open is None and not await asyncio.to_thread(_importable):
            raise ModelError(ModelErrorCode.INVALID_REQUEST, f"{self._subject}: {GOOGLE_GENAI.remedy}", retryable=False)

    async def _client(self) -> "Gemini":
        from tarsy.llm.google_native.client import Gemini, Http

        if self._open is None:
            async with self._building:
                if self._open is None:
                    http = Http(self._access, self._server, self._connect_seconds)
                    try:
                        client = await asyncio.to_thread(Gemini, self._provider, http)
                    except BaseException:
                        await http.aclose()
                        raise
                    self._open = client, http
        return self._open[0]


def _importable() -> bool:
    """Whether the SDK is there; imported then, with all that needs it."""
    with _IMPORTING:
        try:
            importlib.import_module("tarsy.llm.google_native.response")
            importlib.import_module("tarsy.llm.google_native.errors")
            importlib.import_module("tarsy.llm.google_native.client")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "google":
                raise
            return False
    return True
