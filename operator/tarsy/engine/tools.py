"""One tool call between its two boundaries.

Before the server hears of a call, the record says so (c); its result and the message the model will see are one
transaction (d). A call that a dead attempt left open was perhaps made: it is made again only when its tool is
trusted to be repeatable, else the model is told that its outcome is unknown (DESIGN section 5, "Resume").
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from tarsy.engine.conversation import CallTool, Conversation
from tarsy.engine.ports import Toolbox, ToolOutcome, World
from tarsy.record.ids import event_id, idempotency_key, tool_call_id
from tarsy.record.messages import Message, Role
from tarsy.record.run import InteractionState, ToolCallResult, ToolCallStart
from tarsy.record.timeline import Event, EventStatus, EventType

_UNKNOWN_OUTCOME = ToolOutcome(
    "The outcome of this call is unknown: the connection to the investigator was lost while it ran, and the tool is "
    "not known to be safe to call twice. Check its effect before you call it again.",
    is_error=True,
)

Tell = Callable[[CallTool, ToolOutcome], Message]
"""The message that tells a model what became of its call."""


def tool_message(turn: CallTool, outcome: ToolOutcome) -> Message:
    """The answer to a call of a model that was offered functions."""
    return Message(Role.TOOL, outcome.content, tool_call_id=turn.call.id or None, tool_name=turn.call.name or None)


async def answer_tool_call(
    conversation: Conversation,
    turn: CallTool,
    toolbox: Toolbox,
    world: World,
    *,
    seconds: float,
    tell: Tell = tool_message,
) -> None:
    """Makes the call and appends its answer; every failure of the tool, no answer for `seconds` too, is an answer."""
    left = conversation.unanswered.pop((turn.message_seq, turn.index), None)
    attempt = 0
    if left is not None:
        if left.state is InteractionState.STARTED and not toolbox.repeatable(turn.call.name):
            call = tool_call_id(conversation.execution, turn.message_seq, turn.index, left.attempt)
            await _record(conversation, turn, call, _UNKNOWN_OUTCOME, 0, toolbox, world, tell, interrupted=True)
            return
        attempt = left.attempt + 1
    call = tool_call_id(conversation.execution, turn.message_seq, turn.index, attempt)
    server, tool = toolbox.split(turn.call.name)
    key = idempotency_key(conversation.execution, turn.message_seq, turn.index)
    world.control.check()
    await world.recorder.tool_call_started(
        ToolCallStart(
            id=call,
            execution=conversation.execution,
            message_seq=turn.message_seq,
            index=turn.index,
            attempt=attempt,
            call=turn.call,
            server=server,
            tool=tool,
            idempotency_key=key,
        ),
        [_event(conversation, turn, call, "", EventStatus.STREAMING, toolbox)],
    )
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts
    started = time.monotonic()
    outcome = await _call(turn, key, toolbox, seconds)
    elapsed = round((time.monotonic() - started) * 1000)
    await _record(conversation, turn, call, outcome, elapsed, toolbox, world, tell)


async def _call(turn: CallTool, key: str, toolbox: Toolbox, seconds: float) -> ToolOutcome:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await toolbox.call(turn.call.name, turn.call.arguments, timeout=seconds, idempotency_key=key)
    except TimeoutError:
        if not limit.expired():
            raise
        return ToolOutcome(f"{turn.call.name} did not answer within {round(seconds, 2):g} s.", is_error=True)


async def _record(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    outcome: ToolOutcome,
    elapsed: int,
    toolbox: Toolbox,
    world: World,
    tell: Tell,
    *,
    interrupted: bool = False,
) -> None:
    message = tell(turn, outcome)
    loop = conversation.loop.model_copy(update={"tool_calls": conversation.loop.tool_calls + 1})
    status = EventStatus.INTERRUPTED if interrupted else EventStatus.COMPLETED
    event = _event(conversation, turn, call, outcome.content, status, toolbox, is_error=outcome.is_error)
    await world.recorder.tool_call_finished(
        ToolCallResult(
            id=call,
            execution=conversation.execution,
            message_seq=turn.message_seq + 1 + turn.index,
            message=message,
            result=outcome.content,
            is_error=outcome.is_error,
            duration_ms=elapsed,
            loop=loop,
            interrupted=interrupted,
        ),
        [event],
    )
    conversation.messages.append(message)
    conversation.loop = loop


def _event(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    content: str,
    status: EventStatus,
    toolbox: Toolbox,
    *,
    is_error: bool = False,
) -> Event:
    server, tool = toolbox.split(turn.call.name)
    return Event(
        id=event_id(call, "call"),
        type=EventType.LLM_TOOL_CALL,
        status=status,
        content=content,
        metadata={
            "server": server,
            "tool": tool,
            "name": turn.call.name,
            "arguments": turn.call.arguments,
            "call_id": turn.call.id,
            "is_error": is_error,
        },
        stage=conversation.stage,
        execution=conversation.execution,
        tool_call=call,
    )
