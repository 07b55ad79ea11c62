"""Wraps google-genai: nothing from the environment, no retries, our HTTP session.

Gemini's own API and Vertex AI, which differ in address, path and what lets a request in (`access`). Loaded at first use
(`google_native.provider`), because the SDK takes a second to import. Without retry options it would make a failed
connection again by itself after up to ten seconds, so it gets options for one attempt. It takes keys, addresses and
proxies from the environment where it is told none, so it is told all of them, and the last word is a middleware of our
session: only headers of a short list leave the process. Redirects are not followed, since a key must not travel to
where nobody sent it. There is no total timeout: the engine keeps the time.
"""

import itertools
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import aiohttp
from google import genai
from google.genai import types

from tarsy.llm.error_responses import NOT_A_STREAM, not_a_stream
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import address
from tarsy.llm.google_native.conversation import config_of, contents_of
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.llm.reach import ModelServer
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.model import ProviderPlan

_CALL = "x-tarsy-call"  # never leaves the process
_HEADERS = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    )
)


class Gemini:
    """One model on one server.

    Args:
        provider: `base_url` is the API's address; a version at its end is used instead of the usual one.
        http: closed by whoever made it.
    """

    def __init__(self, provider: ProviderPlan, http: "Http") -> None:
        self._provider = provider
        self._http = http
        self._client = sdk(provider, http)

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[types.GenerateContentResponse, None]:
        """Streams the SDK's responses; raises whatever it raises."""
        config = config_of(request, self._provider)
        with self._http.call() as headers:
            config.http_options = types.HttpOptions(headers=headers)
            stream = await self._client.aio.models.generate_content_stream(
                model=self._provider.model,
                contents=cast("list[Any]", contents_of(request, self._provider.model)),
                config=config,
            )
            async for response in stream:
                yield response

    async def aclose(self) -> None:
        """Closes what the SDK opened beside our session."""
        await self._client.aio.aclose()
        self._client.close()


def sdk(provider: ProviderPlan, http: "Http") -> genai.Client:
    """The SDK's client for one server, on our session, which knows the key.

    Args:
        provider: `base_url` is the API's address; a version at its end is used instead of the usual one.
        http: closed by whoever made it.
    """
    base_url, version = address(provider, http.server.url)
    vertex = provider.vertexai
    return genai.Client(
        vertexai=vertex is not None,
        project=vertex.project if vertex else None,
        location=vertex.location if vertex else None,
        api_key="none",
        http_options=types.HttpOptions(
            base_url=base_url,
            api_version=version,
            retry_options=types.HttpRetryOptions(attempts=1),
            aiohttp_client=http.session,
            async_client_args={"ssl": ssl.create_default_context(), "allow_redirects": False},
        ),
    )


class Http:
    """The session that all requests of one client go through; made in the loop that uses it.

    Args:
        access: what lets requests in.
        server: where they go.
        connect_seconds: for the connection and the TLS handshake.
    """

    def __init__(self, access: GoogleAccess, server: ModelServer, connect_seconds: float) -> None:
        self.access = access
        self.server = server
        self._numbers = itertools.count()
        self._answers: dict[str, aiohttp.ClientResponse] = {}
        self.session = aiohttp.ClientSession(
            connector=_Connector(server, connect_seconds),
            trust_env=False,
            middlewares=(self._only_ours,),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @contextmanager
    def call(self) -> Iterator[dict[str, str]]:
        """Headers for one request, whose connection is closed when the context is left before the answer's end.

        The SDK's iterators hold each other in a cycle, so leaving them would leave the connection to the collector.
        """
        number = str(next(self._numbers))
        try:
            yield {_CALL: number}
        finally:
            if (response := self._answers.pop(number, None)) is not None:
                response.close()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self.session.close()

    async def _only_ours(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        number = request.headers.get(_CALL, "")
        for name in {name.lower() for name in request.headers} - _HEADERS:
            del request.headers[name]
        request.headers.update(await self.access.headers())
        response = await handler(request)
        self._answers[number] = response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status == 200 and kind in NOT_A_STREAM:
            raise ModelError(ModelErrorCode.INVALID_REQUEST, not_a_stream(response.status, kind), retryable=False)
        return response


class _Connector(PinnedConnector):
    """Bounds the connection only: the SDK gives every request a timeout of its own, which has no such part."""

    def __init__(self, server: ModelServer, connect_seconds: float) -> None:
        super().__init__(server.host, server.judge, limit=0, keepalive_timeout=30.0)
        self._connect_seconds = connect_seconds

    async def connect(
        self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """Connects as usual, but within `connect_seconds`.

        Args:
            req: the request that needs a connection.
            traces: trace hooks of aiohttp for the request.
            timeout: ignored; it is the SDK's, which does not limit the time to connect.
        """
        return await super().connect(req, traces, aiohttp.ClientTimeout(sock_connect=self._connect_seconds))
