"""Asks people about a tool call that needs their approval, before its first boundary.

A call that nobody has decided about raises `RunWaits`: the other agents of the stage go on, then the run is parked. It
has no row, so that the attempt which resumes finds it unanswered and asks again. The question is put only once the
answer that contains the call is on record, for else another attempt may ask its model again and get another call.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.ports import Toolbox
from tarsy.engine.run_context import RunContext
from tarsy.record.ids import call_ref, event_id, idempotency_key
from tarsy.record.messages import Refusal
from tarsy.record.timeline import APPROVAL_NOTICE, Event, EventStatus, EventType
from tarsy.record.waiting import ApprovalGiven, ApprovalQuestion, ApprovalWaits, RunWaits, Wait, WaitReason

_SAY = "Say in your answer what you would do with it; do not ask for it again."


async def ask_people(
    conversation: Conversation, turn: CallTool, call: UUID, toolbox: Toolbox, world: RunContext, *, secret: bool
) -> ApprovalGiven | Refusal:
    """Returns the approval of a call, or why it is not made.

    Args:
        conversation: of the agent.
        turn: the call.
        call: id of its row.
        toolbox: the agent's tools.
        world: the run's ports.
        secret: whether its arguments hold a secret.

    Raises:
        RunWaits: nobody has decided.
    """
    name = turn.call.name
    if secret:
        # What people see is masked, and the secret is kept nowhere while they decide.
        why = "its arguments hold a secret, so that people cannot see what they approve"
        return Refusal("ApprovalOfSecret", f"{name} was not called: {why}. {_SAY}")
    if world.waiting.full is not None:
        await world.approvals.withdraw(call, world.waiting.full)
        return Refusal("ApprovalUnavailable", f"{name} was not called: {world.waiting.full} {_SAY}")
    await _note(conversation, turn, call, f"{name} needs the approval of people.", world)
    answer = await world.approvals.ask(_question(conversation, turn, call, toolbox, world))
    match answer:
        case ApprovalGiven():
            await _note(conversation, turn, call, answer.sentence, world)
            return answer
        case Refusal():
            await _note(conversation, turn, call, answer.sentence, world)
            return answer
        case ApprovalWaits(until):
            if world.waiting.seconds <= 0:
                hours = world.waiting.limits.seconds / 3600
                why = f"the run has waited {hours:g} h in all, which is as long as it may (maxWaitHours)."
                await world.approvals.withdraw(call, f"Not decided: {why}")
                return Refusal("ApprovalExpired", f"{name} was not called: nobody approved it, and {why} {_SAY}")
            until = min(until, datetime.now(UTC) + timedelta(seconds=world.waiting.seconds))
            sentence = f"{name} waits for the approval of people until {until:%Y-%m-%d %H:%M} UTC."
            await _note(conversation, turn, call, sentence, world)
            raise RunWaits(Wait(WaitReason.APPROVAL, until, sentence))


def _question(
    conversation: Conversation, turn: CallTool, call: UUID, toolbox: Toolbox, world: RunContext
) -> ApprovalQuestion:
    server, tool = toolbox.split(turn.call.name)
    return ApprovalQuestion(
        call=call,
        execution=conversation.execution,
        ref=call_ref(idempotency_key(conversation.execution, turn.message_seq, turn.index)),
        name=turn.call.name,
        server=server,
        tool=tool,
        arguments=turn.call.arguments,
        access=toolbox.access(turn.call.name),
        definition=toolbox.digests.get(server, {}).get(tool, ""),
        answer=conversation.messages[turn.message_seq].content,
        seconds=world.waiting.seconds,
        requests=world.waiting.limits.requests,
    )


async def _note(conversation: Conversation, turn: CallTool, call: UUID, text: str, world: RunContext) -> None:
    """Reports the state of the approval on the timeline; with it, what is held of the execution is on record."""
    event = Event(
        id=event_id(call, "approval"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=text,
        metadata={"reason": APPROVAL_NOTICE, "name": turn.call.name},
        stage=conversation.stage,
        execution=conversation.execution,
        tool_call=call,
    )
    await world.recorder.write_events([event])
