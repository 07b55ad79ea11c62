"""HTTP as the SDK should see it: a failed request is an answer to that request, never the end of the session.

Left alone, the SDK lets one refused connection tear down the session with every other call on it, and reports a 401
as "Server returned an error response". This transport turns both into JSON-RPC errors whose data says what happened
and whether the request may have reached the server, which is what recovery needs to know. Bodies of error pages are
never passed on, and no answer may be larger than 64 MiB.

A connection goes to an address that was judged just before (`tarsy.outbound`). Where a message belongs to a trace,
which the SDK says in its `_meta`, the request says so too, in the header of W3C Trace Context.
"""

import json
import re
import ssl
from typing import Any

import httpx2
from mcp_types import CONNECTION_CLOSED

from tarsy.mcp.connection_errors import refusal_reason, unconnected
from tarsy.mcp.http_failures import LARGEST_ANSWER, HttpFailure, answer_failure, is_page, too_large
from tarsy.outbound.address_check import AddressCheck
from tarsy.outbound.transport import PinnedTransport

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_KEPT_HEADERS = {"content-type", "mcp-session-id"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Wire(httpx2.AsyncBaseTransport):
    """An HTTP transport that answers failed POSTs with JSON-RPC errors.

    Args:
        tls: How to verify the server.
        judge: Decides about the addresses of hosts.
    """

    def __init__(self, tls: ssl.SSLContext, judge: AddressCheck) -> None:
        self._inner = PinnedTransport(judge, tls=tls)
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
            asks = b'"id"' in request.content  # a notification is answered with anything
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

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


def failure_of(response: httpx2.Response) -> dict[str, Any] | None:
    """The JSON-RPC error that stands for a POST that failed; None when the server took it.

    Args:
        response: The answer, through `Wire`.
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
    """The span that a JSON-RPC message belongs to; None where it belongs to none."""
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
