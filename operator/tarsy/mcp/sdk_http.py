"""Converts failed HTTP requests to JSON-RPC errors, so that they do not end the session of the SDK.

By default, one refused connection ends the SDK's session with every other call on it, and a 401 becomes "Server
returned an error response". This transport converts both to JSON-RPC errors whose data contains the cause and whether
the request may have reached the server, which recovery depends on. Bodies of error pages are never passed on, and
responses are limited to 64 MiB.

Connections are those of the calls of tools (`tarsy.mcp.http_calls`). If the SDK names a trace in the `_meta` of a
message, the request also gets the header of W3C Trace Context.
"""

import json
import re
from typing import Any

import aiohttp
import httpx2
from mcp_types import CONNECTION_CLOSED

from tarsy.mcp.connection_errors import refusal_reason, unconnected
from tarsy.mcp.http_failures import LARGEST_ANSWER, HttpFailure, answer_failure, is_page, too_large
from tarsy.outbound.http_transport import AiohttpTransport

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_KEPT_HEADERS = {"content-type", "mcp-session-id"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Wire(httpx2.AsyncBaseTransport):
    """An HTTP transport that converts failed POSTs to JSON-RPC errors.

    Args:
        http: Sends the requests, to addresses that it checks.
    """

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._inner = AiohttpTransport(http)
        self.session_id: str | None = None
        """The id that the server gave the session; None while it gave none."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request (`httpx2.AsyncBaseTransport`)."""
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        if (parent := _traceparent(request.content)) is not None:
            request.headers["traceparent"] = parent
        try:
            response = await self._inner.handle_async_request(request)
            self.session_id = response.headers.get("mcp-session-id", self.session_id)
            kind = response.headers.get("content-type", "")
            json_body = kind.lower().startswith("application/json")
            asks = b'"id"' in request.content  # any response to a notification is valid
            if response.is_success and not json_body and not (asks and is_page(response.status_code, kind)):
                return response
            try:
                body = await _read(response) if json_body else b""
            finally:
                await response.aclose()
        except _NEVER_SENT as error:
            return _failed(HttpFailure(unconnected(error, str(request.url)), sent=False))
        except httpx2.TransportError as error:
            return _failed(HttpFailure(f"the connection broke: {type(error).__name__}", sent=True))
        except HttpFailure as failure:
            return _failed(failure)
        in_session = "mcp-session-id" in request.headers
        wrong = answer_failure(response.status_code, kind, body, str(request.url), in_session=in_session, asks=asks)
        if wrong is not None:
            return _failed(wrong)
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        return httpx2.Response(response.status_code, headers=headers, content=body)


def failure_of(response: httpx2.Response) -> dict[str, Any] | None:
    """Returns the JSON-RPC error of a failed POST; None if the server accepted it.

    Args:
        response: The response, from `Wire`.
    """
    if response.is_success:
        return None
    if response.headers.get("content-type", "").lower().startswith("application/json"):
        error: dict[str, Any] = response.json()["error"]
        return error
    return {
        "code": CONNECTION_CLOSED,
        "message": refusal_reason(response.status_code, str(response.url)),
        "data": {"sent": False},
    }


def _traceparent(body: bytes) -> str | None:
    """Returns the trace context of a JSON-RPC message; None without one."""
    if b'"traceparent"' not in body:
        return None
    params = json.loads(body).get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    parent = meta.get("traceparent") if isinstance(meta, dict) else None
    return parent if isinstance(parent, str) and _TRACEPARENT.fullmatch(parent) else None


async def _read(response: httpx2.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise too_large()
        parts.append(part)
    return b"".join(parts)


def _failed(failure: HttpFailure) -> httpx2.Response:
    return httpx2.Response(failure.status, json=failure.as_message())
