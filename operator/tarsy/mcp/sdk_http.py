"""Converts failed HTTP requests to JSON-RPC errors, so that they do not end the session of the SDK.

By default, one refused connection ends the SDK's session with every other call on it, and a 401 becomes "Server
returned an error response". This transport converts both to JSON-RPC errors whose data contains the cause and whether
the request may have reached the server, which recovery depends on. Bodies of error pages are never passed on, and
responses are limited to 64 MiB.

Connections go to addresses that were just checked (`tarsy.outbound`). If the SDK names a trace in the `_meta` of a
message, the request also gets the header of W3C Trace Context.
"""

import json
import re
import ssl
from typing import Any

import httpx2
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from tarsy.mcp.connection_errors import no_answer, not_mcp, refusal_reason, unconnected
from tarsy.outbound.address_check import AddressCheck
from tarsy.outbound.transport import PinnedTransport

LARGEST_ANSWER = 64 * 1024 * 1024
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_REFUSED_BEFORE_DOING = {401, 404}
_ON_THE_WAY = {502, 503, 504}
_KEPT_HEADERS = {"content-type", "mcp-session-id"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Wire(httpx2.AsyncBaseTransport):
    """An HTTP transport that converts failed POSTs to JSON-RPC errors.

    Args:
        tls: TLS context that verifies the server.
        judge: Checks the addresses of hosts.
    """

    def __init__(self, tls: ssl.SSLContext, judge: AddressCheck) -> None:
        self._inner = PinnedTransport(judge, tls=tls)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request (`httpx2.AsyncBaseTransport`)."""
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        if (parent := _traceparent(request.content)) is not None:
            request.headers["traceparent"] = parent
        try:
            response = await self._inner.handle_async_request(request)
            json_body = response.headers.get("content-type", "").lower().startswith("application/json")
            asks = b'"id"' in request.content  # any response to a notification is valid
            if response.is_success and not json_body and not (asks and _is_page(response)):
                return response
            try:
                body = await _read(response) if json_body else b""
            finally:
                await response.aclose()
        except _NEVER_SENT as error:
            return _failed(unconnected(error, str(request.url)), sent=False)
        except httpx2.TransportError as error:
            return _failed(f"the connection broke: {type(error).__name__}", sent=True)
        except _TooLarge:
            return _failed(
                f"the answer is larger than {LARGEST_ANSWER // 1024**2} MiB; ask for less", sent=True, lost=False
            )
        session_is_over = response.status_code == 404 and "mcp-session-id" in request.headers
        answers = response.status_code != 401 and not session_is_over and _is_json_rpc_error(body)
        if response.is_success or answers:
            wrong = _no_message(response, body, str(request.url)) if asks and response.is_success else None
            if wrong is not None:
                return _failed(wrong, sent=True, lost=False)
            headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
            return httpx2.Response(response.status_code, headers=headers, content=body)
        return _refused(response.status_code, str(request.url))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


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


class _TooLarge(Exception):
    pass


async def _read(response: httpx2.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise _TooLarge
        parts.append(part)
    return b"".join(parts)


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__


def _is_json_rpc_error(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("jsonrpc") == "2.0" and "error" in document


def _is_page(response: httpx2.Response) -> bool:
    """Returns whether the response to a POST is a web page, from a server that is not MCP."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.status_code == 200 and bool(kind) and kind != "text/event-stream"


def _no_message(response: httpx2.Response, body: bytes, url: str) -> str | None:
    """Describes why a response is not an MCP message; None if it may be one."""
    if _is_page(response) and not body:
        return no_answer(response.headers.get("content-type", ""), url)
    return not_mcp(url) if body and b'"jsonrpc"' not in body else None


def _refused(status: int, url: str) -> httpx2.Response:
    lost = status in _REFUSED_BEFORE_DOING | _ON_THE_WAY
    return _failed(
        refusal_reason(status, url), sent=status not in _REFUSED_BEFORE_DOING, lost=lost, status=max(status, 400)
    )


def _failed(text: str, *, sent: bool, lost: bool = True, status: int = 502) -> httpx2.Response:
    code = CONNECTION_CLOSED if lost else INTERNAL_ERROR
    error: dict[str, Any] = {"code": code, "message": text, "data": {"sent": sent}}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})
