"""Classifies failed HTTP responses to MCP requests, for the transport of the SDK and for `http_calls`.

A failure becomes a JSON-RPC error whose data says whether the request may have reached the server, which recovery
depends on. Bodies of error pages are never passed on, and responses are limited to 64 MiB.
"""

import json
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from tarsy.mcp.connection_errors import no_answer, not_mcp, refusal_reason

LARGEST_ANSWER = 64 * 1024 * 1024
"""Maximum size in bytes of a response, or of one event of a stream."""
_REFUSED_BEFORE_DOING = {401, 404}
_ON_THE_WAY = {502, 503, 504}


class HttpFailure(Exception):
    """A request over HTTP has no usable response.

    Args:
        text: The sentence, without text of the server.
        sent: Whether the request may have reached the server.
        lost: Whether a new session may help; False if the server itself responded.
        status: HTTP status to pass on.
    """

    def __init__(self, text: str, *, sent: bool, lost: bool = True, status: int = 502) -> None:
        super().__init__(text)
        self.code = CONNECTION_CLOSED if lost else INTERNAL_ERROR
        self.sent = sent
        self.status = status

    def as_error(self) -> MCPError:
        """Returns the failure as the SDK's exception."""
        return MCPError(self.code, str(self), {"sent": self.sent})

    def as_message(self) -> dict[str, Any]:
        """Returns the failure as a JSON-RPC error message."""
        error = {"code": self.code, "message": str(self), "data": {"sent": self.sent}}
        return {"jsonrpc": "2.0", "id": None, "error": error}


def too_large() -> HttpFailure:
    """Returns the failure of a response over the size limit."""
    return HttpFailure(
        f"the answer is larger than {LARGEST_ANSWER // 1024**2} MiB; ask for less", sent=True, lost=False
    )


def is_page(status: int, content_type: str) -> bool:
    """Returns whether the response to a POST is a web page, from a server that is not MCP."""
    kind = content_type.partition(";")[0].strip().lower()
    return status == 200 and bool(kind) and kind != "text/event-stream"


def answer_failure(
    status: int, content_type: str, body: bytes, url: str, *, in_session: bool, asks: bool = True
) -> HttpFailure | None:
    """Returns why a response is not a JSON-RPC message; None if it is one, an error included.

    Args:
        status: Status of the response.
        content_type: Content type of the response; empty without one.
        body: Body of the response if it is JSON, else empty.
        url: The requested URL.
        in_session: Whether the request named a session, which a 404 ends.
        asks: Whether the request requires a response; any response to a notification is valid.
    """
    success = 200 <= status < 300
    session_is_over = status == 404 and in_session
    if not success and (status == 401 or session_is_over or not _is_json_rpc_error(body)):
        lost = status in _REFUSED_BEFORE_DOING | _ON_THE_WAY
        sent = status not in _REFUSED_BEFORE_DOING
        return HttpFailure(refusal_reason(status, url), sent=sent, lost=lost, status=max(status, 400))
    if not (asks and success):
        return None
    if is_page(status, content_type) and not body:
        return HttpFailure(no_answer(content_type, url), sent=True, lost=False)
    return HttpFailure(not_mcp(url), sent=True, lost=False) if body and b'"jsonrpc"' not in body else None


def _is_json_rpc_error(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("jsonrpc") == "2.0" and "error" in document
