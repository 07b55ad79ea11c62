"""What an agent is offered of all its servers: looked up by the names that models use.

Decision: what the run first saw of a server holds for all of it. A tool that was added since, or is described in
another way, is kept back until a new run; a server that shows its good side first gains nothing by it.
"""

import re
from collections.abc import Mapping, Sequence

from tarsy.mcp.tool_catalog import Offer, held_to_pin, may_have, nothing_offered
from tarsy.plan.model import ServerPlan
from tarsy.record.messages import Access, Refusal, ToolDefinition

_LISTED = 40
_SEPARATOR = re.compile(r"\.|__")  # the name of a server has neither


def split(name: str) -> tuple[str, str]:
    """`server.tool` (or `server__tool`) taken apart; ("", name) when it is neither."""
    found = _SEPARATOR.search(name)
    return (name[: found.start()], name[found.end() :]) if found else ("", name)


class Offers:
    """The offers of an agent's servers.

    Args:
        servers: Each server with what it offers, by name.
    """

    def __init__(self, servers: Mapping[str, tuple[ServerPlan, Offer]]) -> None:
        self._plans = {name: servers[name][0] for name in sorted(servers)}
        self._offers = {name: servers[name][1] for name in sorted(servers)}
        self.tools: Mapping[str, ToolDefinition] = {}
        self._list()

    @property
    def empty(self) -> Mapping[str, str]:
        """Servers that have nothing for this agent, with a sentence each that says what to do."""
        told = {name: nothing_offered(self._plans[name], found) for name, found in self._offers.items()}
        return {name: sentence for name, sentence in told.items() if sentence is not None}

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """A digest of each tool of each server, whether this agent may call it or not."""
        return {name: found.digests for name, found in self._offers.items()}

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Keeps back what is not as `pinned` has it; answers which tools this agent has lost so, by server."""
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
        """What a tool does, as far as that is known."""
        server, tool = split(name)
        return self._offers[server].access.get(tool, Access.UNKNOWN) if server in self._offers else Access.UNKNOWN

    def refusal(self, name: str) -> Refusal | None:
        """Why a tool that its server has is not called for this agent; None when it is, and when there is none such."""
        server, tool = split(name)
        found = self._offers[server].withheld.get(tool) if server in self._offers else None
        return None if found is None else Refusal(found.reason, f"{found.sentence} {self._near(server)}")

    def repeatable(self, name: str) -> bool:
        """Whether the call may be made again when its outcome is unknown."""
        server, tool = split(name)
        return server in self._offers and tool in self._offers[server].repeatable

    def no_such_tool(self, name: str) -> str:
        """What a model is told that called a tool which no server has."""
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
