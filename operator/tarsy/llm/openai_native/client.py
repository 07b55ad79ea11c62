"""Implements `LLMClient` for chat completions over aiohttp.

Why not an SDK: 200 streamed tokens cost the openai client 27 to 30 ms of CPU and LangChain on it 62 to 75, this one
about one; and it hands on the reasoning of compatible servers, which they drop. Redirects are not followed, since a
key must not travel to where nobody sent it; proxies and keys of the environment are never asked, the system's CAs
(`SSL_CERT_FILE`) are. Nothing a server sends is kept without a limit. Where many answers stream side by side, each is
read a few tens of times a second: a step for every token of every stream costs more than all else that is done with it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

import aiohttp
from yarl import URL

from tarsy.llm.call_errors import FailedCall
from tarsy.llm.error_responses import NOT_A_STREAM
from tarsy.llm.openai_native.errors import classify_openai_error, no_stream, response_error
from tarsy.llm.openai_native.reading import NativeReading
from tarsy.llm.openai_native.request import BLOCK_BYTES, body
from tarsy.llm.openai_native.sse import EventParser
from tarsy.llm.protocol import Chunk, GenerateRequest, LifeChunk, ModelError
from tarsy.llm.reach import ANYWHERE, server_of
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types.openai import OPENAI_URL

LONGEST_EVENT = 8 << 20
_ERROR_BYTES = 64 << 10
_ERROR_SECONDS = 10.0
_LEFTOVER_BYTES = 64 << 10
_LEFTOVER_SECONDS = 0.25
_FEW = 8
_GATHER_SECONDS = 0.025


class OpenAINativeProvider:
    """An `LLMClient` for one model of one provider with one key; it neither retries nor keeps time.

    Args:
        provider: the model, its server and its settings; `/chat/completions` is appended to its `base_url`, which
            therefore usually ends in `/v1`.
        key: the API key, None for servers that need none; then no Authorization header is sent.
        connect_seconds: for name, connection and TLS handshake together.
        longest_event: bytes; the most one event may have.
        gather_seconds: how long a stream's text is gathered where more than a few stream side by side.
        destinations: where URLs may lead.

    Raises:
        ModelError: INVALID_REQUEST: the server may not be asked.
    """

    def __init__(
        self,
        provider: ProviderPlan,
        key: str | None,
        *,
        connect_seconds: float = 10.0,
        longest_event: int = LONGEST_EVENT,
        gather_seconds: float = _GATHER_SECONDS,
        destinations: Destinations = ANYWHERE,
    ) -> None:
        self._server = server_of(provider, OPENAI_URL, destinations)
        url = URL(self._server.url)
        self._url = url.with_path(f"{url.raw_path.rstrip('/')}/chat/completions", encoded=True, keep_query=True)
        self._provider = provider
        self._key = key or None
        self._timeout = aiohttp.ClientTimeout(
            total=None,
            connect=connect_seconds,
            sock_connect=connect_seconds,
            sock_read=None,  # whoever asks keeps the time: this would be a timer set anew with every packet
        )
        self._longest_event = longest_event
        self._gather = gather_seconds
        self._streams = 0
        self._subject = f"provider {provider.ref.name} (model {provider.model})"
        self._session: aiohttp.ClientSession | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer: text as it comes; tool calls, usage and the end when the stream has ended properly.

        Whatever the server sends beside it is a sign of life.
        """
        call = FailedCall(self._subject, self._key, started=False, makers=self._server.makers)
        reading = NativeReading(self._provider, request, self._key, makers=self._server.makers)
        response: aiohttp.ClientResponse | None = None
        failure: ModelError | None = None
        self._streams += 1
        try:
            try:
                response = await self._post(body(self._provider, request))
                await _must_be_a_stream(response, call)
                yield LifeChunk()
                parser = EventParser(self._longest_event)
                while not reading.done and (block := await response.content.readany()):
                    told = False
                    for chunk in reading.read(parser.feed(block)):
                        told = True
                        yield chunk
                    if not told:
                        yield LifeChunk()  # a comment, or the first half of an event
                    if self._streams > _FEW and not reading.done:
                        await asyncio.sleep(self._gather)
                if not reading.done:
                    for chunk in reading.read(parser.end()):
                        yield chunk
                await _leftovers(response.content)
            except Exception as error:
                failure = classify_openai_error(error, replace(call, started=reading.started))
        finally:
            self._streams -= 1
            if response is not None:
                response.close()  # a connection whose answer was read to its end has gone back to the others before
        if failure is not None and not reading.finish_reason:
            raise failure
        for chunk in reading.end(self._subject):
            yield chunk

    async def aclose(self) -> None:
        """Closes the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, content: Sequence[bytes]) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=PinnedConnector(self._server.host, self._server.judge, limit=0, keepalive_timeout=30.0),
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": "text/event-stream", "Accept-Encoding": "identity", "User-Agent": "tarsy"},
            )
        size = sum(map(len, content))
        headers = {"Content-Type": "application/json", "Content-Length": str(size)}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return await self._session.post(
            self._url,
            data=b"".join(content) if size < BLOCK_BYTES else _one_by_one(content),
            headers=headers,
            allow_redirects=False,
        )


async def _one_by_one(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _must_be_a_stream(response: aiohttp.ClientResponse, call: FailedCall) -> None:
    if not response.ok or response.status >= 300:
        raise response_error(response, await _beginning(response.content), call)
    if response.content_type in NOT_A_STREAM:
        raise no_stream(response, await _beginning(response.content), call)


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """Reads the beginning of an error body; a slow or broken body is cut, not an error of its own."""
    found = bytearray()
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            while len(found) < _ERROR_BYTES and (block := await content.readany()):
                found += block
    except (TimeoutError, aiohttp.ClientError):
        pass
    return bytes(found[:_ERROR_BYTES])


async def _leftovers(content: aiohttp.StreamReader) -> None:
    """Reads what little may follow the end, so that the connection can be used again."""
    size = 0
    if not content.at_eof():
        try:
            async with asyncio.timeout(_LEFTOVER_SECONDS):
                while size < _LEFTOVER_BYTES and (block := await content.readany()):
                    size += len(block)
        except (TimeoutError, aiohttp.ClientError):
            return
