"""Tests the messages of health checks."""

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tarsy.mcp.errors import OpenFailed, in_our_words, readable_error


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (MCPError(-32000, "words of the server"), "it answered with the JSON-RPC error -32000"),
        (MCPError(-32000, "words of the server", {"hint": 1}), "it answered with the JSON-RPC error -32000"),
        (MCPError(-32000, "HTTP 503 Service Unavailable", {"sent": False}), "HTTP 503 Service Unavailable"),
        (MCPError(-32000, "Connection closed"), "Connection closed"),
        (OpenFailed("its words", ours="HTTP 404 Not Found"), "HTTP 404 Not Found"),
        (OpenFailed("its URL is not allowed"), "its URL is not allowed"),
        (ConnectionRefusedError(111, "Connection refused"), "[Errno 111] Connection refused"),
        (httpx2.ConnectError("All connection attempts failed"), "All connection attempts failed"),
        (ValueError("input 'words of the server' is no JSON"), "ValueError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_failure_is_said_in_our_words_however_deep_it_is(error: Exception, ours: str) -> None:
    nested = ExceptionGroup("unhandled", [ExceptionGroup("errors in a TaskGroup", [error])])
    assert in_our_words(nested) == in_our_words(error) == ours
    assert "words" not in in_our_words(nested)
    assert readable_error(nested) == readable_error(error)
