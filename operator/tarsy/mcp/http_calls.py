"""Tool calls over streamable HTTP as one request each, on the session that the SDK opened.

The SDK opens the session, lists its tools, listens to it and closes it. A call made through the SDK takes four to five
times the CPU of the request itself: queues between tasks, three readings of each message, a general HTTP client. Here a
call is stamped by the SDK's session, so that both eras of the protocol send what the SDK would send, and goes out by
aiohttp, to addresses that are checked as all others are (`tarsy.outbound`).

Failures become the JSON-RPC errors that `tarsy.mcp.sdk_http` makes of them, with the same sentences.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import propagate
from yarl import URL

from tarsy.mcp.connection_errors import unconnected
from tarsy.mcp.http_failures import LARGEST_ANSWER, HttpFailure, answer_failure, too_large
from tarsy.outbound.address_check import AddressCheck, NotAllowed
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.place import Place

_FIRST_ID = 1_000_000
"""Ids of requests that cannot be those of the SDK, which counts from 1."""
_KEEPALIVE_SECONDS = 4.0
"""Seconds that an idle connection is kept: less than servers commonly keep theirs (uvicorn 5, Go's and nginx more)."""
_RESUMES = 2
_RESUME_SECONDS = 1.0
_CANCEL_SECONDS = 2.0
_CHUNK = 64 * 1024
_VERSION = "mcp-protocol-version"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ClientConnectionResetError, aiohttp.ConnectionTimeoutError)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a session's requests are sent.

    Args:
        place: Of the server.
        headers: Declared headers, credentials included.
        authorize: Returns the Authorization header of this moment; None where `headers` has all.
        tls: Verifies the server.
        check: Decides about addresses.
        connect_seconds: How long a connection may take to be made.
        session_id: Returns the id that the server gave the session; None where it gave none.
    """

    place: Place
    headers: Mapping[str, str] = field(repr=False)
    authorize: Callable[[], Awaitable[str]] | None
    tls: ssl.SSLContext
    check: AddressCheck
    connect_seconds: float
    session_id: Callable[[], str | None]


class HttpCalls:
    """Calls tools of one server; used by one session after the other, closed with the connection.

    Args:
        endpoint: Where and how requests are sent.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._url = URL(endpoint.place.url, encoded=True)
        self._http: aiohttp.ClientSession | None = None
        self._next = _FIRST_ID
        self._notices: set[asyncio.Task[None]] = set()

    async def call(self, session: ClientSession, params: dict[str, Any]) -> dict[str, Any]:
        """Sends `tools/call` and returns its result as it came.

        Args:
            session: The SDK's, which has been initialized.
            params: Of the request: name, arguments, `_meta`.

        Raises:
            MCPError: The server answered with an error, or the request failed; then its data has `sent`.
        """
        self._next += 1
        number = self._next
        message: dict[str, Any] = {"method": "tools/call", "params": params}
        options: dict[str, Any] = {}
        session._stamp(message, options)  # type: ignore[arg-type]
        stamped: dict[str, str] = options.get("headers", {})
        meta = params.setdefault("_meta", {})
        trace: dict[str, str] = {}
        propagate.inject(trace)
        meta.update(trace)
        headers = {**_ACCEPT, **stamped, **({"traceparent": trace["traceparent"]} if "traceparent" in trace else {})}
        body = orjson.dumps({"jsonrpc": "2.0", "id": number, **message})
        try:
            answer = await self._exchanged(body, headers, number)
        except asyncio.CancelledError:
            if stamped.get(_VERSION) not in MODERN_PROTOCOL_VERSIONS:  # from 2026 on, the closed request says it
                self._notify_cancelled(number, stamped)
            raise
        except HttpFailure as failure:
            raise failure.as_error() from failure
        if "error" in answer:
            error = answer["error"]
            if not isinstance(error, dict):
                error = {}
            code, text = error.get("code"), error.get("message")
            raise MCPError(code if isinstance(code, int) else -32603, str(text or ""), error.get("data"))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise MCPError(-32603, "the result is no object")
        return result

    async def aclose(self) -> None:
        """Closes the connections; notices of cancelled calls have a moment to leave."""
        if self._notices:
            _, late = await asyncio.wait(self._notices, timeout=_CANCEL_SECONDS)
            for task in late:
                task.cancel()
        if self._http is not None:
            await self._http.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._http is None:
            where = self._endpoint
            self._http = aiohttp.ClientSession(
                connector=PinnedConnector(
                    where.place.host, where.check, ssl=where.tls, limit=0, keepalive_timeout=_KEEPALIVE_SECONDS
                ),
                headers={"accept-encoding": "identity"} | dict(where.headers),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=where.connect_seconds),
                auto_decompress=False,
                trust_env=False,
                read_bufsize=_CHUNK,
            )
        return self._http

    async def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        where = self._endpoint
        whole = dict(headers)
        if session := where.session_id():
            whole["mcp-session-id"] = session
        if where.authorize is not None:
            whole["authorization"] = await where.authorize()
        return whole

    async def _exchanged(self, body: bytes, headers: Mapping[str, str], number: int) -> dict[str, Any]:
        """The response to a request.

        Raises HttpFailure: there is none.
        """
        url = self._endpoint.place.url
        resume: _Resume | None = None
        try:
            whole = await self._headers(headers)
            async with self._client().post(self._url, data=body, headers=whole, allow_redirects=False) as response:
                if response.status == 200 and response.content_type == "text/event-stream":
                    answer, resume = await self._from_stream(response, headers, number)
                    if answer is not None:
                        return answer
                else:
                    return await _from_body(response, url, "mcp-session-id" in whole)
        except NotAllowed as error:
            raise HttpFailure(str(error), sent=False) from error
        except _NEVER_SENT as error:
            raise HttpFailure(unconnected(error, url), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if resume is None:
                raise HttpFailure(f"the connection broke: {type(error).__name__}", sent=True) from error
        if resume is None or not resume.event:
            raise HttpFailure("the stream of events ended without a response", sent=True)
        return await self._resumed(resume, headers, number)

    async def _resumed(self, resume: "_Resume", headers: Mapping[str, str], number: int) -> dict[str, Any]:
        """The response from the rest of a stream that ended before it (`Last-Event-ID`)."""
        attempts = 0
        while attempts < _RESUMES:
            await asyncio.sleep(resume.seconds)
            whole = await self._headers({**headers, "last-event-id": resume.event})
            try:
                async with self._client().get(self._url, headers=whole, allow_redirects=False) as response:
                    if response.status != 200 or response.content_type != "text/event-stream":
                        attempts += 1
                        continue
                    answer, rest = await self._from_stream(response, headers, number)
                    if answer is not None:
                        return answer
                    attempts = 0 if rest.event else attempts + 1
                    resume = rest if rest.event else resume
            except (aiohttp.ClientError, TimeoutError, OSError):
                attempts += 1
        raise HttpFailure("the stream of events ended without a response, and could not be resumed", sent=True)

    async def _from_stream(
        self, response: aiohttp.ClientResponse, headers: Mapping[str, str], number: int
    ) -> tuple[dict[str, Any] | None, "_Resume"]:
        """The response among the events of a stream, None where it ended before; and from where to go on."""
        resume = _Resume()
        with contextlib.suppress(aiohttp.ClientPayloadError):
            async for data in _events(response, resume):
                try:
                    message = json.loads(data)
                except (ValueError, RecursionError):
                    raise HttpFailure("an event of its stream is no JSON", sent=True, lost=False) from None
                if not isinstance(message, dict):
                    continue
                if "result" in message or "error" in message:
                    if message.get("id") == number or message.get("id") is None:
                        return message, resume
                elif "id" in message and "method" in message:
                    await self._refuse(message, headers)
        return None, resume

    async def _refuse(self, request: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Answers a request of the server: a ping is returned, everything else is not offered."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        await self._post(orjson.dumps(answer), headers)

    def _notify_cancelled(self, number: int, headers: Mapping[str, str]) -> None:
        notice = {"requestId": number, "reason": "the caller does not wait any more"}
        body = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": notice})
        task = asyncio.create_task(self._post(body, {**_ACCEPT, **headers}), name="mcp cancelled")
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Sends a message to which there is no response; that it does not arrive has no consequence here."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, NotAllowed):
            async with asyncio.timeout(_CANCEL_SECONDS):
                whole = await self._headers(headers)
                async with self._client().post(self._url, data=body, headers=whole, allow_redirects=False):
                    pass


@dataclass(slots=True)
class _Resume:
    """From which event a stream goes on, and after how many seconds."""

    event: str = ""
    seconds: float = _RESUME_SECONDS


async def _from_body(response: aiohttp.ClientResponse, url: str, in_session: bool) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    is_json = kind.lower().startswith("application/json")
    body = b"".join([part async for part in _limited(response)]) if is_json else b""
    if (failure := answer_failure(response.status, kind, body, url, in_session=in_session)) is not None:
        raise failure
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        message = None
    if not isinstance(message, dict):
        raise HttpFailure("its answer is no JSON-RPC message", sent=True, lost=False)
    return message


async def _limited(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise too_large()
        yield part


async def _events(response: aiohttp.ClientResponse, resume: _Resume) -> AsyncIterator[bytes]:
    """The data of each `message` event of a stream (https://html.spec.whatwg.org, Server-sent events)."""
    data: list[bytes] = []
    unfinished: list[bytes] = []  # pieces of a line, joined once: an event may have megabytes
    size, kind = 0, b""
    async for part in response.content.iter_any():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise too_large()
        unfinished.append(part)
        if b"\n" not in part:
            continue
        *lines, rest = b"".join(unfinished).split(b"\n")
        unfinished = [rest]
        for line in lines:
            line = line.removesuffix(b"\r")
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if data and kind in (b"", b"message"):
                    yield b"\n".join(data)
                data, kind, size = [], b"", len(rest)
            elif name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value
            elif name == b"id" and b"\0" not in value:
                resume.event = value.decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit():
                resume.seconds = min(int(value) / 1000, 30.0)


def can_stamp(session: ClientSession) -> bool:
    """Whether this SDK's session stamps requests as `HttpCalls` needs it; otherwise calls go the SDK's way."""
    return callable(getattr(session, "_stamp", None))
