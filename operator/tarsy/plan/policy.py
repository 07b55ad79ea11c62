"""Decides which tools a policy permits, and matches tools with a server's lists.

Decision: two people must agree before an agent can change anything. `toolPolicy` is ReadOnly on an MCPServer and on an
Agent that do not set it, and the stricter of the two holds: the one allows the server's writing tools at all,
the other allows them to this agent. With Approve people decide about each call of such a tool, and so they do about
every tool of `tools.destructive`, whatever the policies are.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class ToolPolicy(StrEnum):
    """The tools that an agent gets: those known to be read-only, also others if people approve each call, or all."""

    READ_ONLY = "ReadOnly"
    APPROVE = "Approve"
    ALL = "All"


_STRICT_FIRST = tuple(ToolPolicy)


def stricter(*policies: str | None) -> ToolPolicy:
    """Returns the strictest of several policies (None: not set, which is ReadOnly, as is one that is not known)."""
    known = [ToolPolicy(policy) if policy in _STRICT_FIRST else ToolPolicy.READ_ONLY for policy in policies]
    return min(known, key=_STRICT_FIRST.index, default=ToolPolicy.ALL)


def looser(one: ToolPolicy, other: ToolPolicy) -> ToolPolicy:
    """Returns the one of two policies that permits more."""
    return max(one, other, key=_STRICT_FIRST.index)


def waits_for_people(policy: ToolPolicy, destructive: Collection[str], tool: str, *, reads: bool) -> bool:
    """Whether each call of a tool needs the approval of people.

    Args:
        policy: the stricter of the server's and the agent's.
        destructive: the server's `tools.destructive`.
        tool: name of the tool.
        reads: whether it is known to only read.
    """
    return names(destructive, tool) or (policy is ToolPolicy.APPROVE and not reads)


def names(listed: Collection[str], tool: str) -> bool:
    """Whether a list of a server names a tool; `*` stands for any characters, also none (`pods_*`).

    Linear in the tool's name for each entry: parts are looked for from the left, and none is given back.
    """
    return any(_fits(entry, tool) for entry in listed)


def _fits(pattern: str, name: str) -> bool:
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
