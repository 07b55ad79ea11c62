"""Pins the tools of a run to those it saw first, and reports tools that are withheld.

The first agent that opens a server pins the list of its tools in the record; every later one of the run, and every
later attempt, compares. What was added or changed since is kept back until a new run, and an event says so: a server
that was harmless when the run began cannot become another one under it. Tools that nobody has accepted
(`MCPServer.spec.pin`) are kept back by the toolbox, in this run and every other; they are told here as well.
"""

import hashlib
from collections.abc import Mapping, Sequence

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.ports import Toolbox
from tarsy.engine.run_context import RunContext
from tarsy.record.boundaries import OfferedTools
from tarsy.record.ids import event_id
from tarsy.record.timeline import NOTICE_TOOLS, Event, EventStatus, EventType

REASON = "ToolsChanged"
UNACCEPTED = "ToolsNotAccepted"


async def hold_to_pins(conversation: Conversation, toolbox: Toolbox, world: RunContext) -> None:
    """Compares the tools with those the run first saw, and keeps back what is not the same.

    Where this agent has lost a tool so, the evidence of the run is degraded.

    Args:
        conversation: conversation of the agent; the events name its stage and execution.
        toolbox: the agent's tools, from which changed ones are removed.
        world: the run; its recorder keeps the pins and writes the events.
    """
    found = toolbox.digests
    if not found:
        return
    await _tell_unaccepted(conversation, toolbox.unaccepted, world)
    offered = OfferedTools(conversation.execution, tuple(toolbox.tools), toolbox.instructions)
    pinned = await world.recorder.pin_tools(found, offered)
    lost = toolbox.hold(pinned)
    events = [
        _event(conversation, server, pinned[server], tools)
        for server, tools in sorted(found.items())
        if pinned[server] != tools
    ]
    if events:
        await world.recorder.write_events(events)
    if lost:
        why = "it changed while the investigation ran, and is used no more for: "
        await world.recorder.degrade_evidence({server: why + _some(tools) for server, tools in lost.items()})


async def _tell_unaccepted(
    conversation: Conversation, unaccepted: Mapping[str, Sequence[str]], world: RunContext
) -> None:
    if not unaccepted:
        return
    events = [
        Event(
            id=event_id(conversation.execution, f"unaccepted/{server}"),
            type=EventType.NOTICE,
            status=EventStatus.COMPLETED,
            content=f"Tools of server {server} are withheld, because their definitions are new or have changed and "
            f"nobody has accepted them: {_some(tools)}. Read them with `kubectl tarsy tools {server}`.",
            metadata={"server": server, "reason": UNACCEPTED, "withheld": list(tools[:NOTICE_TOOLS])},
            stage=conversation.stage,
            execution=conversation.execution,
        )
        for server, tools in sorted(unaccepted.items())
    ]
    await world.recorder.write_events(events)
    why = "nobody has accepted its new or changed definition (spec.pin) of: "
    await world.recorder.degrade_evidence({server: why + _some(tools) for server, tools in unaccepted.items()})


def _event(conversation: Conversation, server: str, pinned: Mapping[str, str], found: Mapping[str, str]) -> Event:
    changes = {
        "added": sorted(found.keys() - pinned.keys()),
        "removed": sorted(pinned.keys() - found.keys()),
        "changed": sorted(tool for tool in found.keys() & pinned.keys() if found[tool] != pinned[tool]),
    }
    told = "; ".join(f"{what} {_some(tools)}" for what, tools in changes.items() if tools)
    seen = hashlib.sha256("".join(f"{tool} {found[tool]}\n" for tool in sorted(found)).encode()).hexdigest()
    return Event(
        id=event_id(conversation.execution, f"tools/{server}/{seen}"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=f"The tools of server {server} are not those that this investigation began with: {told}. What was "
        "added or changed is not used before the next investigation.",
        metadata={
            "server": server,
            "reason": REASON,
            **{what: tools[:NOTICE_TOOLS] for what, tools in changes.items()},
        },
        stage=conversation.stage,
        execution=conversation.execution,
    )


def _some(tools: Sequence[str]) -> str:
    more = f" and {len(tools) - NOTICE_TOOLS} more" if len(tools) > NOTICE_TOOLS else ""
    return ", ".join(tools[:NOTICE_TOOLS]) + more
