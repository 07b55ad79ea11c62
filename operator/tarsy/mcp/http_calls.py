"""Lists and calls tools over streamable HTTP by one request each, in the session that the SDK opened.

The SDK opens the session, listens to it and closes it. A request through the SDK takes four to five times the CPU of
the request itself: queues between tasks, three parses of each message, a general HTTP client. Here the SDK's session
stamps a request, so that both versions of the protocol send the same as the SDK, and aiohttp sends it, to addresses
that are checked like all others (`tarsy.outbound`).

Failures become the same JSON-RPC errors as in `tarsy.mcp.sdk_http`, with the same sentences.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import propagate
from opentelemetry.trace import get_current_span as current_span
from yarl import URL

from tarsy.mcp.connection_errors import unconnected
from tarsy.mcp.http_failures import LARGEST_ANSWER, HttpFailure, answer_failure, too_large
from tarsy.outbound.address_check import AddressCheck, NotAllowed
from tarsy.outbound.connector import PinnedConnector
from tarsy.outbound.http_transport import NEVER_SENT
from tarsy.outbound.server_sent_events import EventTooLarge, StreamPosition, parse_events
from tarsy.plan.place import Place

_FIRST_ID = 1_000_000
"""First request id; the ids of the SDK count from 1."""
_KEEPALIVE_SECONDS = 4.0
"""Seconds that an idle connection is kept: fewer than on common servers (uvicorn 5, Go and nginx more)."""
_RESUMES = 2
_RESUME_SECONDS = 1.0
_LONGEST_RESUME_SECONDS = 30.0
_CANCEL_SECONDS = 2.0
_CHUNK = 64 * 1024
_VERSION = "mcp-protocol-version"
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Settings of the requests of a session.

    Args:
        place: URL of the server.
        http: Sends the requests, to addresses that it checks.
        headers: Declared headers, credentials included.
        authorize: Returns the current Authorization header; None: `headers` is complete.
        session_id: Returns the id of the session; None if the server assigned none.
    """

    place: Place
    http: aiohttp.ClientSession
    headers: Mapping[str, str] = field(repr=False)
    authorize: Callable[[], Awaitable[str]] | None
    session_id: Callable[[], str | None]


def http_session(
    place: Place, check: AddressCheck, tls: ssl.SSLContext, connect_seconds: float
) -> aiohttp.ClientSession:
    """Returns a client of one server: it sends no cookies, follows no proxy of the environment, and decodes nothing.

    Args:
        place: URL of the server.
        check: Checks addresses.
        tls: TLS context that verifies the server.
        connect_seconds: Maximum seconds to connect.
    """
    return aiohttp.ClientSession(
        connector=PinnedConnector(place.host, check, ssl=tls, limit=0, keepalive_timeout=_KEEPALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=_CHUNK,
    )


class HttpCalls:
    """Lists and calls tools of one server; shared by successive sessions, closed with the connection.

    Args:
        endpoint: Settings of the requests.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._url = URL(endpoint.place.url, encoded=True)
        self._http = endpoint.http
        declared = {name.lower(): value for name, value in endpoint.headers.items()}
        self._headers_of_all = {"accept-encoding": "identity", **declared}
        self._next = _FIRST_ID
        self._notices: set[asyncio.Task[None]] = set()

    async def tools(self, session: ClientSession, cursor: str | None) -> types.ListToolsResult:
        """Returns a page of tools, without those that the protocol demands to be dropped.

        Args:
            session: The initialized session of the SDK.
            cursor: Of the page; None: the first one.

        Raises:
            MCPError: The server responded with an error, or the request failed.
            ValidationError: Its answer is no list of tools.
        """
        answer = await self.request(session, "tools/list", {} if cursor is None else {"cursor": cursor})
        page = types.ListToolsResult.model_validate(answer, by_name=False)
        return session._absorb_tool_listing(page, complete=cursor is None and page.next_cursor is None)

    async def request(self, session: ClientSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns the unparsed result.

        Args:
            session: The initialized session of the SDK.
            method: Of the request.
            params: Parameters of the request, `_meta` included.

        Raises:
            MCPError: The server responded with an error, or the request failed; then its data contains `sent`.
        """
        self._next += 1
        number = self._next
        message: dict[str, Any] = {"method": method, "params": params}
        options: dict[str, Any] = {}
        session._stamp(message, options)  # type: ignore[arg-type]
        stamped: dict[str, str] = options.get("headers", {})
        meta = params.setdefault("_meta", {})
        trace: dict[str, str] = {}
        propagate.inject(trace)
        told = {"mcp.protocol.version": stamped.get(_VERSION, ""), "jsonrpc.request.id": str(number)}
        current_span().set_attributes({name: value for name, value in told.items() if value})
        meta.update(trace)
        headers = {**_ACCEPT, **stamped, **({"traceparent": trace["traceparent"]} if "traceparent" in trace else {})}
        body = _encoded({"jsonrpc": "2.0", "id": number, **message})
        try:
            answer = await self._exchanged(body, headers, number)
        except asyncio.CancelledError:
            if stamped.get(_VERSION) not in MODERN_PROTOCOL_VERSIONS:  # since 2026, closing the request cancels it
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
            raise MCPError(-32603, "the result is not an object")
        return result

    async def aclose(self) -> None:
        """Waits briefly for cancellation notices."""
        if self._notices:
            _, late = await asyncio.wait(self._notices, timeout=_CANCEL_SECONDS)
            for task in late:
                task.cancel()

    async def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        where = self._endpoint
        whole = {**self._headers_of_all, **headers}
        if session := where.session_id():
            whole["mcp-session-id"] = session
        if where.authorize is not None:
            whole["authorization"] = await where.authorize()
        return whole

    async def _exchanged(self, body: bytes, headers: Mapping[str, str], number: int) -> dict[str, Any]:
        """Sends a request and returns its response. Raises HttpFailure without a response."""
        url = self._endpoint.place.url
        resume: StreamPosition | None = None
        try:
            whole = await self._headers(headers)
            async with self._http.post(self._url, data=body, headers=whole, allow_redirects=False) as response:
                if response.status == 200 and response.content_type == "text/event-stream":
                    answer, resume = await self._from_stream(response, headers, number)
                    if answer is not None:
                        return answer
                else:
                    return await _from_body(response, url, "mcp-session-id" in whole)
        except EventTooLarge as error:
            raise too_large() from error
        except NotAllowed as error:
            raise HttpFailure(str(error), sent=False) from error
        except NEVER_SENT as error:
            raise HttpFailure(unconnected(error, url), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if resume is None:
                raise HttpFailure(f"the connection broke: {type(error).__name__}", sent=True) from error
        if resume is None or not resume.id:
            raise HttpFailure("the stream of events ended without a response", sent=True)
        return await self._resumed(resume, headers, number)

    async def _resumed(self, resume: StreamPosition, headers: Mapping[str, str], number: int) -> dict[str, Any]:
        """Resumes an interrupted stream (`Last-Event-ID`), and returns the response."""
        attempts = 0
        while attempts < _RESUMES:
            pause = _RESUME_SECONDS if resume.retry_seconds is None else resume.retry_seconds
            await asyncio.sleep(min(pause, _LONGEST_RESUME_SECONDS))
            whole = await self._headers({**headers, "last-event-id": resume.id})
            try:
                async with self._http.get(self._url, headers=whole, allow_redirects=False) as response:
                    if response.status != 200 or response.content_type != "text/event-stream":
                        attempts += 1
                        continue
                    answer, rest = await self._from_stream(response, headers, number)
                    if answer is not None:
                        return answer
                    attempts = 0 if rest.id else attempts + 1
                    resume = rest if rest.id else resume
            except EventTooLarge as error:
                raise too_large() from error
            except (aiohttp.ClientError, TimeoutError, OSError):
                attempts += 1
        raise HttpFailure("the stream of events ended without a response, and could not be resumed", sent=True)

    async def _from_stream(
        self, response: aiohttp.ClientResponse, headers: Mapping[str, str], number: int
    ) -> tuple[dict[str, Any] | None, StreamPosition]:
        """Returns the response in a stream, None if the stream ended before it, and the event to resume from."""
        resume = StreamPosition()
        with contextlib.suppress(aiohttp.ClientPayloadError):
            async for event in parse_events(response.content.iter_any(), resume):
                if event.type != "message" or not event.data:  # without data it is only a place to resume from
                    continue
                try:
                    message = json.loads(event.data)
                except (ValueError, RecursionError):
                    raise HttpFailure("an event of its stream is not JSON", sent=True, lost=False) from None
                if not isinstance(message, dict):
                    continue
                if "result" in message or "error" in message:
                    if message.get("id") == number or message.get("id") is None:
                        return message, resume
                elif "id" in message and "method" in message:
                    await self._refuse(message, headers)
        return None, resume

    async def _refuse(self, request: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Responds to a request of the server: to a ping with a result, to others with an error."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        await self._post(_encoded(answer), headers)

    def _notify_cancelled(self, number: int, headers: Mapping[str, str]) -> None:
        notice = {"requestId": number, "reason": "the caller is no longer waiting"}
        body = _encoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": notice})
        task = asyncio.create_task(self._post(body, {**_ACCEPT, **headers}), name="mcp cancelled")
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Sends a message without a response, and ignores failures."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, NotAllowed):
            async with asyncio.timeout(_CANCEL_SECONDS):
                whole = await self._headers(headers)
                async with self._http.post(self._url, data=body, headers=whole, allow_redirects=False):
                    pass


async def _from_body(response: aiohttp.ClientResponse, url: str, in_session: bool) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    is_json = kind.lower().startswith("application/json")
    body = await _limited(response) if is_json else b""
    if (failure := answer_failure(response.status, kind, body, url, in_session=in_session)) is not None:
        raise failure
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise HttpFailure("its response is not a JSON-RPC message", sent=True, lost=False)
    return message


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        if (size := size + len(part)) > LARGEST_ANSWER:
            raise too_large()
        parts.append(part)
    return b"".join(parts)


def _encoded(message: dict[str, Any]) -> bytes:
    """Returns a message as JSON; the standard library's encoder takes integers of any size and lone surrogates."""
    return json.dumps(message, separators=(",", ":")).encode()


def can_stamp(session: ClientSession) -> bool:
    """Returns whether the session of this SDK can stamp requests and take lists; otherwise they go through the SDK."""
    return all(callable(getattr(session, name, None)) for name in ("_stamp", "_absorb_tool_listing"))
