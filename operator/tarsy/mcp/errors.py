"""What can go wrong between us and a tool server, as one small hierarchy.

The SDK reports failures as nested exception groups and bare JSON-RPC codes; callers here see one class, one reason
code and one readable sentence. `sent` is what recovery turns on: a request that may have reached the server is made
again only when its tool is known to be repeatable. `ours` is the sentence without a word of the server's, for places
where who reads need not be who may ask the server (a status, DESIGN section 7).
"""

from collections.abc import Iterator

import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

_OF_THE_SDK = ("Connection closed", "SSE stream ")
"""How the SDK begins what it says of a connection that ended; servers use the same code for errors of their own."""


_CODES = {
    -32700: "it cannot read the message",
    -32600: "the message is not a valid request",
    -32601: "it does not know the method",
    -32602: "it does not accept the parameters",
    -32603: "it has an internal error",
}


class McpError(Exception):
    """A tool server could not do what it was asked.

    Args:
        sentence: What happened and what to do, without secrets.
        sent: Whether the request may have reached the server.
        ours: The sentence without what the server said, when that is another one.
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
    """The server did not answer in time."""

    code = "Timeout"


class ConnectionLost(McpError):
    """The session ended, or its credentials are no longer accepted: a new session may work."""

    code = "ConnectionLost"


class Protocol(McpError):
    """The server answered with an error, or with something that is not MCP."""

    code = "Protocol"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def readable_error(error: BaseException) -> str:
    """The first reason inside nested exception groups, as text (cancellations only when there is nothing else).

    Args:
        error: What the SDK raised.
    """
    first = _first(error)
    return str(first).strip() or type(first).__name__


def is_lost(error: MCPError) -> bool:
    """Whether the connection failed, and not the server answered with an error.

    Args:
        error: What the SDK raised.
    """
    if isinstance(error.data, dict) and "sent" in error.data:  # by `tarsy.mcp.sdk_http`
        return error.code == CONNECTION_CLOSED
    return error.code == CONNECTION_CLOSED and error.message.startswith(_OF_THE_SDK)


def in_our_words(error: BaseException) -> str:
    """The same reason without anything that a server wrote.

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
        return readable_error(first)  # what the others say may quote what a server sent
    return type(first).__name__


def _first(error: BaseException) -> BaseException:
    leaves = list(_leaves(error))
    told = [leaf for leaf in leaves if isinstance(leaf, Exception)] or leaves
    return told[0]
