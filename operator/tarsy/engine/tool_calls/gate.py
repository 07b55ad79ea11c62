"""Decides whether a tool call is made, or answered without its server.

It is not made when the agent may not make it, when it may change something and nothing confirms that it should or only
untrusted text says where it leads, when it would send what must not leave, when the run's record has its answer, when
the budget is reached, or when people have to approve it and did not. A call that nobody has decided about stops its
agent, and leaves no row.

All others leave the same rows as a call that is made, marked, so that the trace shows what the model asked for.
Decided right before the call's first boundary, and counted there: agents side by side cannot pass a limit together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from types import MappingProxyType
from typing import Any
from uuid import UUID

from tarsy.engine.conversation.compaction import cut_text
from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.limits.budget_stop import note_exceeded
from tarsy.engine.ports import Toolbox
from tarsy.engine.run_context import RunContext
from tarsy.engine.skills.agent_skills import AgentSkills, skill_refusal
from tarsy.engine.skills.loading import load_skills, loads_skills
from tarsy.engine.tool_calls.approval import ask_people
from tarsy.engine.tool_calls.extraction import extracted_fields
from tarsy.engine.tool_calls.loop_guard import GuardedCall, RepeatedCall
from tarsy.engine.tool_calls.origin_check import CheckedOrigins, check_origins, check_outflow
from tarsy.engine.tool_calls.summarization import too_long
from tarsy.record.approvals.git_change import CHANGE_FOR_GIT
from tarsy.record.messages import Access, Refusal, ToolOutcome

_RESULT = 3_000, 800
"""Characters of a result's beginning and end that are given again; the whole still stands in the conversation."""


_FORGOTTEN = ToolOutcome(
    "This call has no result: its arguments hold a secret, which is kept nowhere but in the process that worked on the "
    "investigation, and that process was lost. If you still need the result, make the call again with the whole "
    "arguments.",
    is_error=True,
)


NOTHING_CONFIRMED = "NothingConfirmed"
"""Reason for which a call that may change something is refused."""

_UNCONFIRMED = Template(
    "$tool was not called: it may change something, and so far this investigation has only read text that workloads "
    "can write. Read the state of the object first, with a tool that shows what the control plane says."
)


@dataclass(frozen=True, slots=True)
class ToolCallDecision:
    """A `ticket` to make the call with, or what it is answered with instead (`refused`: why it may not be made).

    `approval` is the one that permits it, if it needs one, and `note` what its model is sent below the result.
    """

    ticket: GuardedCall | None = None
    instead: ToolOutcome | None = None
    repeated_of: UUID | None = None
    refused: str | None = None
    approval: UUID | None = None
    note: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


async def decide_tool_call(
    conversation: Conversation, turn: CallTool, call: UUID, toolbox: Toolbox, world: RunContext
) -> ToolCallDecision:
    """Decides whether a tool call is made; one that is made is counted.

    Args:
        conversation: of the agent.
        turn: the call.
        call: id of its row.
        toolbox: the agent's tools.
        world: the run's ports.

    Raises:
        RunWaits: the call waits for people.
    """
    name, arguments = turn.call.name, turn.call.arguments
    skills = AgentSkills.of(conversation.plan, world.skills)
    loads = loads_skills(turn, skills)
    if (refusal := toolbox.refusal(name)) is not None:
        return refuse(refusal)
    in_use, (server, tool) = skills.in_use(conversation.loop, before=turn.message_seq), toolbox.split(name)
    if server and (refusal := skill_refusal(in_use, f"{server}.{tool}")) is not None:
        return refuse(refusal)
    if await _is_unconfirmed(conversation, toolbox.access(name), world):
        return refuse(Refusal(NOTHING_CONFIRMED, _UNCONFIRMED.substitute(tool=name)))
    reads = toolbox.access(name) is Access.READ_ONLY
    secret = turn.index in conversation.loop.masked_calls
    if secret and turn.arguments is None:
        return ToolCallDecision(instead=_FORGOTTEN, metadata={"made": False})
    if world.control.concluding:
        told = ToolOutcome(f"{name} was not called, because the run was asked to conclude.", is_error=True)
        return ToolCallDecision(instead=told, metadata={"made": False})
    if loads:
        return ToolCallDecision(instead=load_skills(turn, skills, conversation))
    if (leak := await check_outflow(conversation, turn, toolbox, world)) is not None:
        return await _refuse_for_good(leak, turn, call, toolbox, world)
    place = (conversation.execution, *toolbox.split(name), arguments)
    # Masked arguments do not tell one secret from another, so a call with one is never a repetition.
    if reads and not secret and (answered := await _repetition(conversation, turn, place, world)) is not None:
        return answered
    if (spent := await _spent(world)) is not None:
        return spent
    checked = CheckedOrigins() if reads else await check_origins(conversation, turn, toolbox, world)
    metadata = {"provenance": [one.as_json() for one in checked.origins]} if checked.origins else {}
    if checked.refusal is not None:
        return await _refuse_for_good(checked.refusal, turn, call, toolbox, world, metadata)
    approval, note = None, ""
    if toolbox.needs_approval(name):
        answer = await ask_people(conversation, turn, call, toolbox, world, secret=secret, provenance=checked.origins)
        if isinstance(answer, Refusal):
            return refuse(answer, metadata)
        approval, note = answer.approval, answer.undo
    if not reads and (spent := await _spent(world)) is not None:  # others may have begun calls since
        return spent
    world.meter.tool_started(call)
    ticket = world.guard.started(*place, reads=reads, message_seq=turn.message_seq)
    return ToolCallDecision(approval=approval, note=note, ticket=ticket, metadata=metadata)


async def _refuse_for_good(
    refusal: Refusal,
    turn: CallTool,
    call: UUID,
    toolbox: Toolbox,
    world: RunContext,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> ToolCallDecision:
    """Refuses a call that people need not decide about any more."""
    if toolbox.needs_approval(turn.call.name):
        await world.approvals.withdraw(call, refusal.sentence)
    return refuse(refusal, metadata)


async def _repetition(
    conversation: Conversation, turn: CallTool, place: tuple[UUID, str, str, str], world: RunContext
) -> ToolCallDecision | None:
    """Returns the answer to a call whose result the conversation has already; None: it has none.

    `place` is the execution, the server, the tool and the arguments.
    """
    guard, seq = world.guard, turn.message_seq
    again = await guard.repeated(*place, message_seq=seq)
    if again is None or again.original.seq in conversation.superseded:
        return None
    first = again.original
    found = await world.recorder.evidence([first.ref])
    if first.ref not in found:
        return None
    result = found[first.ref].result
    kept = extracted_fields(conversation.agent, place[1], place[2])
    whole = not kept and too_long(conversation.agent, place[1], result) is None
    told = ToolOutcome(_again(turn.call.name, again, guard.seconds, result if whole else None))
    guard.told(*place, message_seq=seq)
    return ToolCallDecision(instead=told, repeated_of=first.id, metadata={"repeated_of": first.ref})


async def _spent(world: RunContext) -> ToolCallDecision | None:
    """Returns the answer to a call that the budget has no room for; None: it has."""
    exceeded = world.meter.spent_for_tools()
    if exceeded is None:
        return None
    await note_exceeded(world, exceeded)
    told = ToolOutcome(f"{exceeded.message} This call was not made.", is_error=True)
    return ToolCallDecision(instead=told, metadata={"made": False})


def refuse(refusal: Refusal, known: Mapping[str, Any] = MappingProxyType({})) -> ToolCallDecision:
    """Returns the decision that a call may not be made.

    Args:
        refusal: why.
        known: other metadata of its event.
    """
    metadata = {"made": False, "refused": refusal.reason, **known}
    if refusal.change is not None:
        metadata[CHANGE_FOR_GIT] = refusal.change.model_dump(mode="json", by_alias=True)
    return ToolCallDecision(
        instead=ToolOutcome(refusal.sentence, is_error=True), refused=refusal.reason, metadata=metadata
    )


async def _is_unconfirmed(conversation: Conversation, access: Access, world: RunContext) -> bool:
    """Whether a call may change something while nothing on record is from the control plane.

    Only where a server of the agent declares who can write its results, so that such a result can be had.
    """
    if access is Access.READ_ONLY or not any(one.evidence is not None for one in conversation.agent.servers):
        return False
    return not await world.recorder.is_confirmed()


def _again(name: str, again: RepeatedCall, seconds: float, result: str | None) -> str:
    """The answer in place of a repeated call; `result` is None when it was too long to be sent whole the first time."""
    first = again.original
    shown = "It is too long to be told again: what you were told of it stands above, under that callId."
    if result is not None:
        shown = f"Its result:\n\n{cut_text(result, *_RESULT, f'the whole stands above, under callId {first.ref}')}"
    look = "If you need the state of now, make the same call once more: it is then made afresh."
    if not again.fresh_next:
        look = f"That was a fresh look already; the same call is made again when its result is {seconds:g} s old."
    return (
        f"This call was not made: you made it {again.age_seconds:.0f} s ago with the same arguments, as callId "
        f"{first.ref}, and this is the result from then. Quote it by that callId. {look} {shown}"
    )
