"""Decides which tools a policy permits, and matches tools with a server's lists.

Decision: two people must agree before an agent can change anything. `toolPolicy` is ReadOnly on an MCPServer and on an
Agent that do not set it, and the stricter of the two holds: the one allows the server's writing tools at all,
the other allows them to this agent.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class ToolPolicy(StrEnum):
    """The tools that an agent gets: those known to be read-only, or all."""

    READ_ONLY = "ReadOnly"
    ALL = "All"


def stricter(*policies: str | None) -> ToolPolicy:
    """Returns the strictest of several policies (None: not set, which is ReadOnly)."""
    return ToolPolicy.ALL if all(policy == ToolPolicy.ALL for policy in policies) else ToolPolicy.READ_ONLY


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
