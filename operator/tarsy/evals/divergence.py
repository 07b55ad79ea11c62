"""Compares the tool calls of two runs: their common beginning, and their first difference.

Decision: calls are compared, prose never. Two good runs word their findings differently, and a difference of words says
nothing; the first call that only one of them makes is where their investigations part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One tool call: `server.tool` and its canonical arguments."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference of two sequences of calls.

    Attributes:
        index: number of calls that are the same before it.
        first: the call of the first run there; None: it made no further call.
        second: the call of the second run there; None: it made no further call.
    """

    index: int
    first: ToolStep | None
    second: ToolStep | None


def canonical_arguments(arguments: str) -> str:
    """Returns arguments as compact JSON with sorted keys; text that is no JSON without surrounding white space."""
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONDecodeError:
        return arguments.strip()


def find_divergence(first: Sequence[ToolStep], second: Sequence[ToolStep]) -> Divergence | None:
    """Returns where two sequences of calls differ first; None: they are the same.

    Args:
        first: calls of one agent in one run, in their order.
        second: calls of the agent in the other run.
    """
    for index in range(max(len(first), len(second))):
        ours = first[index] if index < len(first) else None
        theirs = second[index] if index < len(second) else None
        if ours != theirs:
            return Divergence(index, ours, theirs)
    return None
