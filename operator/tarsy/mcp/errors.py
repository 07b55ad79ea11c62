"""What can go wrong between us and a tool server, as one small hierarchy.

The SDK reports failures as nested exception groups and bare JSON-RPC codes; callers here see one class, one reason
code and one readable sentence. `sent` is what recovery turns on: a request that may have reached the server is made
again only when its tool is known to be repeatable.
"""

from collections.abc import Iterator


class McpError(Exception):
    """A tool server could not do what it was asked.

    Args:
        sentence: What happened and what to do, without secrets.
        sent: Whether the request may have reached the server.
    """

    code = "McpError"

    def __init__(self, sentence: str, *, sent: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.sent = sent


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


def readable(error: BaseException) -> str:
    """The first reason inside nested exception groups, as text (cancellations only when there is nothing else).

    Args:
        error: What the SDK raised.
    """
    leaves = list(_leaves(error))
    told = [leaf for leaf in leaves if isinstance(leaf, Exception)] or leaves
    first = told[0]
    return str(first).strip() or type(first).__name__
