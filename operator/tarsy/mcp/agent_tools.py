"""Combines the tools of all servers of an agent, looked up by the names that models use.

Decision: the tool definitions that a run saw first are pinned for the whole run. A tool that was added or changed since
is withheld until a new run, so a server gains nothing by showing harmless definitions first.
"""

import re
from collections.abc import Mapping, Sequence

from tarsy.mcp.tool_catalog import NOT_ACCEPTED, Offer, held_to_pin, may_have, nothing_offered
from tarsy.plan.model import ServerPlan
from tarsy.record.messages import Access, Refusal, ToolDefinition

_LISTED = 40
_SEPARATOR = re.compile(r"\.|__")  # names of servers contain neither


def split(name: str) -> tuple[str, str]:
    """Splits `server.tool` or `server__tool`; returns ("", name) for other names."""
    found = _SEPARATOR.search(name)
    return (name[: found.start()], name[found.end() :]) if found else ("", name)


class Offers:
    """The tools of an agent's servers.

    Args:
        servers: Plan and tools of each server, by name.
    """

    def __init__(self, servers: Mapping[str, tuple[ServerPlan, Offer]]) -> None:
        self._plans = {name: servers[name][0] for name in sorted(servers)}
        self._offers = {name: servers[name][1] for name in sorted(servers)}
        self.tools: Mapping[str, ToolDefinition] = {}
        self._list()

    @property
    def empty(self) -> Mapping[str, str]:
        """Servers without a tool for this agent, each with a sentence that contains the remedy."""
        told = {name: nothing_offered(self._plans[name], found) for name, found in self._offers.items()}
        return {name: sentence for name, sentence in told.items() if sentence is not None}

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """Digests of all tools by server, whether or not this agent may call them."""
        return {name: found.digests for name, found in self._offers.items()}

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools by server that are withheld because nobody accepted their definition."""
        found = {
            name: [tool for tool, refusal in sorted(offered.withheld.items()) if refusal.reason == NOT_ACCEPTED]
            for name, offered in self._offers.items()
        }
        return {name: tools for name, tools in found.items() if tools}

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from their pinned digests; returns the tools that this agent lost, by server.

        Args:
            pinned: The digests by server and tool that the run saw first.
        """
        lost: dict[str, Sequence[str]] = {}
        for name, found in self._offers.items():
            first = pinned.get(name, found.digests)
            kept = frozenset(tool for tool, digest in found.digests.items() if first.get(tool) == digest)
            if gone := [tool for tool in sorted(first) if tool not in kept and may_have(self._plans[name], tool)]:
                lost[name] = gone
            self._offers[name] = held_to_pin(found, kept, name)
        self._list()
        return lost

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool."""
        server, tool = split(name)
        return self._offers[server].access.get(tool, Access.UNKNOWN) if server in self._offers else Access.UNKNOWN

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why an existing tool is withheld from this agent; None for other names."""
        server, tool = split(name)
        found = self._offers[server].withheld.get(tool) if server in self._offers else None
        return None if found is None else Refusal(found.reason, f"{found.sentence} {self._near(server)}")

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be repeated if its outcome is unknown."""
        server, tool = split(name)
        return server in self._offers and tool in self._offers[server].repeatable

    def needs_approval(self, name: str) -> bool:
        """Returns whether each call of the tool needs the approval of people."""
        server, tool = split(name)
        return server in self._offers and tool in self._offers[server].gated

    def no_such_tool(self, name: str) -> str:
        """Returns the message to a model that called an unknown tool."""
        server, tool = split(name)
        known = server in self._offers
        what = f"Server {server!r} has no tool {tool[:100]!r}." if known else f"There is no tool {name[:100]!r}."
        return f"{what} {self._near(server)}"

    def _near(self, server: str) -> str:
        near = [known for known in self.tools if known.startswith(f"{server}.")] or list(self.tools)
        if not near:
            return "No tools are available."
        more = f" and {len(near) - _LISTED} more" if len(near) > _LISTED else ""
        return f"Available: {', '.join(near[:_LISTED])}{more}."

    def _list(self) -> None:
        self.tools = {tool.name: tool for found in self._offers.values() for tool in found.definitions}
