"""Decides which tools of a pinned MCPServer may be used (`spec.pin`), as they are first seen and as people accept them.

Decision: the first answer that lists tools is the first use, and what it was is kept in the status. Acceptances stay in
the spec and are judged anew at each look: one that does not count any more withholds its tool from the next run. Only
tools that the lists of the object leave to agents are pinned; one that the lists add later is new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarsy.mcp.tool_catalog import ListedTool
from tarsy.plan.policy import names
from tarsy.resources.meta import Condition
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.tool_pin import MAX_PINNED, PinnedTool

_NAMED = 10


@dataclass(frozen=True, slots=True)
class CountedAcceptances:
    """The definitions (tool, digest) that count as accepted, and why entries or all of them do not."""

    accepted: frozenset[tuple[str, str]] = frozenset()
    refused: tuple[str, ...] = ()


NOTHING_ACCEPTED = CountedAcceptances()


@dataclass(frozen=True, slots=True)
class PinnedState:
    """The tools of a server for its status, and how many it has beyond those that fit."""

    tools: tuple[PinnedTool, ...] = ()
    beyond: int = 0
    seen: bool = False
    """Whether the server has ever listed tools."""

    @property
    def trusted(self) -> frozenset[str]:
        """Names of the tools that agents may get."""
        return frozenset(tool.name for tool in self.tools if tool.state == "Trusted")

    @property
    def withheld(self) -> list[str]:
        """Names of the tools that wait to be accepted."""
        return [tool.name for tool in self.tools if tool.state in ("Changed", "New")]


def pinned_state(
    server: MCPServer, listed: Mapping[str, ListedTool] | None, counted: CountedAcceptances
) -> PinnedState:
    """Judges the tools of a server.

    Args:
        server: with the tools as they were known, in its status.
        listed: the tools that it lists now; None: it was not asked, so the known ones count.
        counted: the acceptances that count.
    """
    if server.spec.pin is None:
        return PinnedState()
    spec = server.spec.tools

    def chosen(name: str) -> bool:
        return (not spec.allow or names(spec.allow, name)) and not names(spec.deny, name)

    known = {tool.name: tool for tool in server.status.pinned_tools if chosen(tool.name)}
    on_first_use = server.spec.pin == "TrustOnFirstUse"
    first = {name: tool.first for name, tool in known.items() if tool.first} if on_first_use else {}
    now = {name: tool.digest for name, tool in known.items() if tool.digest}
    if listed is not None:
        now = {name: tool.digest for name, tool in listed.items() if chosen(name)}
    if on_first_use and not first:
        first = now
    # Known first: a server that adds tools does not push out the ones that are in use.
    order = sorted({*now, *first}, key=lambda name: (name not in first, name not in known, name))
    kept = sorted(order[:MAX_PINNED])
    before = {name for name, _ in counted.accepted} | first.keys()
    tools = tuple(
        PinnedTool(
            name=name,
            digest=now.get(name),
            first=first.get(name),
            state="Gone"
            if name not in now
            else "Trusted"
            if now[name] == first.get(name) or (name, now[name]) in counted.accepted
            else "Changed"
            if name in before
            else "New",
        )
        for name in kept
    )
    return PinnedState(tools, len(order) - len(kept), bool(now or first))


def tools_changed(server: MCPServer, found: PinnedState, counted: CountedAcceptances) -> Condition:
    """Makes the condition `ToolsChanged` of a server with `spec.pin`."""
    kind, where = ConditionType.TOOLS_CHANGED, f"{server.metadata.name} -n {server.metadata.namespace}"
    doubt = f" These acceptances do not count: {'; '.join(counted.refused)}." if counted.refused else ""
    if not found.seen:
        text = "The operator has not seen the tools yet, so all of them are withheld."
        return Condition(type=kind, status="Unknown", reason="NotSeen", message=text + doubt)
    withheld = found.withheld
    if withheld or found.beyond:
        text = f"These tools are withheld: {_some(withheld)}. " if withheld else ""
        if found.beyond:
            text += (
                f"{found.beyond} more are withheld because at most {MAX_PINNED} tools can be pinned: list those that "
                "agents need in spec.tools.allow. "
            )
        if withheld:
            text += f"Read them with `kubectl tarsy tools {where}`, then `kubectl tarsy accept-tools {where}`."
        reason = "AcceptancesDoNotCount" if counted.refused and withheld else "ToolsWithheld"
        return Condition(type=kind, status="True", reason=reason, message=text.strip() + doubt)
    how = "as first seen or as accepted" if server.spec.pin == "TrustOnFirstUse" else "as accepted"
    text = f"All {sum(tool.state == 'Trusted' for tool in found.tools)} tools are {how}."
    return Condition(type=kind, status="False", reason="AsAccepted", message=text + doubt)


def _some(tools: Sequence[str]) -> str:
    more = f" and {len(tools) - _NAMED} more" if len(tools) > _NAMED else ""
    return ", ".join(tools[:_NAMED]) + more
