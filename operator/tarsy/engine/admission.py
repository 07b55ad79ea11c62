"""Whether a tool call is made, or answered without its server: from the run's record, or because the budget is reached.

Both leave the same rows as a call that is made, marked, so that the trace shows what the model asked for. Decided right
before the call's first boundary, and counted there: agents side by side cannot pass a limit together.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tarsy.engine.compaction import cut
from tarsy.engine.conversation import CallTool, Conversation
from tarsy.engine.cutoff import note_exceeded
from tarsy.engine.guard import Original, Ticket
from tarsy.engine.ports import Toolbox, World
from tarsy.record.messages import ToolOutcome

_RESULT = 3_000, 800
"""Characters of a result's beginning and end that are given again; the whole still stands in the conversation."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A `ticket` to make the call with, or what it is answered with instead."""

    ticket: Ticket | None = None
    instead: ToolOutcome | None = None
    repeated_of: UUID | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


async def judge(conversation: Conversation, turn: CallTool, call: UUID, toolbox: Toolbox, world: World) -> Verdict:
    """Decides about the call with the id `call`; one that is to be made is counted."""
    name, arguments = turn.call.name, turn.call.arguments
    place = (conversation.execution, *toolbox.split(name), arguments)
    repeatable = toolbox.repeatable(name)
    first = await world.guard.repeated(*place) if repeatable else None
    if first is not None and first.seq not in conversation.superseded:
        found = await world.recorder.evidence([first.ref])
        if first.ref in found:
            told = ToolOutcome(_again(name, first, found[first.ref].result))
            return Verdict(instead=told, repeated_of=first.id, metadata={"repeated_of": first.ref})
    if (exceeded := world.meter.spent_for_tools()) is not None:
        await note_exceeded(world, exceeded)
        told = ToolOutcome(f"{exceeded.message} This call was not made.", is_error=True)
        return Verdict(instead=told, metadata={"made": False})
    world.meter.tool_started(call)
    return Verdict(ticket=world.guard.started(*place, repeatable=repeatable))


def _again(name: str, first: Original, result: str) -> str:
    shown = cut(result, *_RESULT, f"the whole stands above, under callId {first.ref}")
    return (
        f"You called {name} with these arguments already, as callId {first.ref}; nothing has happened since that could "
        f"have changed its result. Quote it by that callId, and do not call it again. Its result:\n\n{shown}"
    )
