"""Defines the errors of tool servers, and converts those of the SDK.

The SDK reports failures as nested exception groups and JSON-RPC codes; callers get one class, one reason code and one
sentence. Recovery depends on `sent`: a request that may have reached the server is repeated only if its tool is known
to be repeatable. `ours` is the sentence without the server's own text, for a status, whose readers may not be allowed
to call the server.
"""

from collections.abc import Iterator

import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

_OF_THE_SDK = ("Connection closed", "SSE stream ")
"""Prefixes of the SDK's messages about ended connections; servers use the same code for errors of their own."""


_CODES = {
    -32700: "it cannot read the message",
    -32600: "the message is not a valid request",
    -32601: "it does not know the method",
    -32602: "it does not accept the parameters",
    -32603: "it has an internal error",
}


class McpError(Exception):
    """Base of the errors of tool servers.

    Args:
        sentence: The error and its remedy, without secrets.
        sent: Whether the request may have reached the server.
        ours: The sentence without text of the server; None: `sentence` contains none.
    """

    code = "McpError"

    def __init__(self, sentence: str, *, sent: bool = False, ours: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.sent = sent
        self.ours = sentence if ours is None else ours


class OpenFailed(McpError):
    """The session could not be opened."""

    code = "OpenFailed"


class Timeout(McpError):
    """The server did not respond in time."""

    code = "Timeout"


class ConnectionLost(McpError):
    """The session ended, or its credentials are no longer accepted. A new session may work."""

    code = "ConnectionLost"


class Protocol(McpError):
    """The server responded with an error, or with something that is not MCP."""

    code = "Protocol"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def readable_error(error: BaseException) -> str:
    """Returns the first error in nested exception groups as text (a cancellation only without another error).

    Args:
        error: What the SDK raised.
    """
    first = _first(error)
    return str(first).strip() or type(first).__name__


def is_lost(error: MCPError) -> bool:
    """Returns whether the connection failed, as opposed to an error response of the server.

    Args:
        error: What the SDK raised.
    """
    if isinstance(error.data, dict) and "sent" in error.data:  # by `tarsy.mcp.sdk_http`
        return error.code == CONNECTION_CLOSED
    return error.code == CONNECTION_CLOSED and error.message.startswith(_OF_THE_SDK)


def in_our_words(error: BaseException) -> str:
    """Returns the first error as text, without text of the server.

    Args:
        error: What the SDK raised.
    """
    first = _first(error)
    if isinstance(first, McpError):
        return first.ours
    told_by_wire = isinstance(first, MCPError) and isinstance(first.data, dict) and "sent" in first.data
    if isinstance(first, MCPError) and not told_by_wire and not is_lost(first):
        meaning = _CODES.get(first.code)
        return f"it answered with the JSON-RPC error {first.code}{f' ({meaning})' if meaning else ''}"
    if isinstance(first, MCPError | OSError | httpx2.ConnectError):
        return readable_error(first)  # other errors may quote the server
    return type(first).__name__


def _first(error: BaseException) -> BaseException:
    leaves = list(_leaves(error))
    told = [leaf for leaf in leaves if isinstance(leaf, Exception)] or leaves
    return told[0]
