"""The tool calls of one answer, each between its two boundaries.

Calls of tools that are known to only read run side by side; any other call waits for all before it, and all after it
wait for it. Before the server hears of a call, the record says so (c); its result and the message the model will see
are one transaction (d). Of a result that is too long a summary is made between the two: the result is put on record
first, then its summary, and whoever resumes goes on from there. A call that a dead attempt left open was perhaps made:
it is made again only when its tool is trusted to be repeatable, else the model is told that its outcome is unknown
(DESIGN section 5, "Resume").
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile
from string import Template
from typing import Any
from uuid import UUID

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.conversation.truncation import truncate_for_timeline
from tarsy.engine.limits.timing import Cut, Stopwatch
from tarsy.engine.model_calls.streaming import CutToConclude
from tarsy.engine.model_calls.text_calls import is_written
from tarsy.engine.ports import RunContext, Toolbox, ToolOutcome
from tarsy.engine.prompts.results import tool_text
from tarsy.engine.tool_calls.gate import ToolCallDecision, decide_tool_call
from tarsy.engine.tool_calls.loop_guard import original
from tarsy.engine.tool_calls.summarization import LongResult, told_of, too_long
from tarsy.record.boundaries import ToolCallResult, ToolCallStart
from tarsy.record.ids import call_ref, event_id, idempotency_key, tool_call_id
from tarsy.record.messages import Access, Message, Role
from tarsy.record.run import InteractionState
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType

_SIDE_BY_SIDE = 8
"""Calls of one agent under way at the same time, at most."""

_UNKNOWN_OUTCOME = ToolOutcome(
    "The outcome of this call is unknown: the connection to the investigator was lost while it ran, and the tool is "
    "not known to be safe to call twice. Check its effect before you call it again.",
    is_error=True,
)

_CUT = Template("$tool was cut off before it answered, because the run was asked to conclude.")

Tell = Callable[[CallTool, str, ToolOutcome], Message]
"""The message that tells a model what became of its call, and what to cite it with."""


def tool_message(turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
    """The answer to a call of a model that was offered functions; `ref` is what it cites the call with."""
    text = tool_text(ref, turn.call.name, outcome)
    return Message(Role.TOOL, text, tool_call_id=turn.call.id or None, tool_name=turn.call.name or None)


async def answer_tool_calls(
    conversation: Conversation,
    calls: Sequence[CallTool],
    toolbox: Toolbox,
    world: RunContext,
    *,
    watch: Stopwatch,
    tell: Tell = tool_message,
) -> None:
    """Makes the first of `calls`, and with it those after it that may run beside it.

    A call that has not begun when the time of `watch` is over is not made, and its answer says so.
    """
    ready = list(takewhile(lambda turn: _reads(toolbox, turn), calls)) or calls[:1]
    width = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def answer(turn: CallTool) -> None:
        async with width:
            await _answer_tool_call(conversation, turn, toolbox, world, watch, tell)

    async with asyncio.TaskGroup() as group:
        for turn in ready:
            group.create_task(answer(turn))


async def _answer_tool_call(
    conversation: Conversation, turn: CallTool, toolbox: Toolbox, world: RunContext, watch: Stopwatch, tell: Tell
) -> None:
    """Makes the call and takes its answer; every failure of the tool, silence too, is an answer."""
    turn = replace(turn, call=replace(turn.call, arguments=toolbox.shown(turn.call.name, turn.call.arguments)))
    left = conversation.unanswered.pop((turn.message_seq, turn.index), None)
    attempt = 0
    if left is not None and left.result is not None:
        call = tool_call_id(conversation.execution, turn.message_seq, turn.index, left.attempt)
        await _tell_long(conversation, turn, call, ToolOutcome(left.result), toolbox, world, watch, tell, left.summary)
        world.guard.answered(conversation.execution, turn.message_seq, turn.index, repeated=False)
        return
    if left is not None:
        if left.made and left.state is InteractionState.STARTED and not toolbox.repeatable(turn.call.name):
            call = tool_call_id(conversation.execution, turn.message_seq, turn.index, left.attempt)
            await _record(conversation, turn, call, _UNKNOWN_OUTCOME, 0, toolbox, world, tell, interrupted=True)
            return
        attempt = left.attempt + 1
    call = tool_call_id(conversation.execution, turn.message_seq, turn.index, attempt)
    verdict = await decide_tool_call(conversation, turn, call, toolbox, world)
    usable = False
    try:
        outcome = await _between_boundaries(conversation, turn, call, attempt, verdict, toolbox, world, watch, tell)
        usable = not outcome.is_error
    finally:
        if verdict.ticket is not None:
            answer = original(call, conversation.execution, turn.message_seq, turn.index)
            world.guard.finished(verdict.ticket, answer if usable else None)
    fresh = verdict.ticket is not None and verdict.ticket.fresh
    repeated = None if fresh else verdict.repeated_of is not None
    world.guard.answered(conversation.execution, turn.message_seq, turn.index, repeated=repeated)


async def _between_boundaries(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    attempt: int,
    verdict: ToolCallDecision,
    toolbox: Toolbox,
    world: RunContext,
    watch: Stopwatch,
    tell: Tell,
) -> ToolOutcome:
    server, tool = toolbox.split(turn.call.name)
    key = idempotency_key(conversation.execution, turn.message_seq, turn.index)
    outcome = verdict.instead or (_no_time(turn) if watch.left <= 0 else None)
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
            made=outcome is None,
            repeatable=toolbox.repeatable(turn.call.name),
            access=toolbox.access(turn.call.name),
            repeated_of=verdict.repeated_of,
            refused=verdict.refused,
        ),
        [_event(conversation, turn, call, "", EventStatus.STREAMING, toolbox, verdict.metadata)],
    )
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts
    started, cut = time.monotonic(), False
    if outcome is None:
        seconds = max(0.0, min(watch.left, conversation.limits.tool_call_seconds))
        with watch.running():
            try:
                outcome = await _call(turn, key, toolbox, seconds, world)
            except CutToConclude:
                outcome, cut = ToolOutcome(_CUT.substitute(tool=turn.call.name), is_error=True), True
        world.meter.tool_finished(call)
    elapsed = round((time.monotonic() - started) * 1000)
    if outcome.is_error or too_long(conversation.agent, server, outcome.content) is None:
        about = verdict.metadata
        await _record(conversation, turn, call, outcome, elapsed, toolbox, world, tell, about, interrupted=cut)
        return outcome
    event = _event(conversation, turn, call, outcome.content, EventStatus.COMPLETED, toolbox, verdict.metadata)
    await world.recorder.tool_call_answered(call, outcome.content, elapsed, [event])
    await _tell_long(conversation, turn, call, outcome, toolbox, world, watch, tell)
    return outcome


async def _tell_long(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    outcome: ToolOutcome,
    toolbox: Toolbox,
    world: RunContext,
    watch: Stopwatch,
    tell: Tell,
    summary: str | None = None,
) -> None:
    """Tells the model of a result that is on record, and too long for it; so may its `summary` be."""
    setting = too_long(conversation.agent, toolbox.split(turn.call.name)[0], outcome.content)
    told = outcome
    if setting is not None:
        long = LongResult(turn, call, outcome.content, setting)
        text = await told_of(conversation, long, world, watch) if summary is None else long.summarized(summary)
        told = replace(outcome, content=text)
    await _close(conversation, turn, call, outcome, told, 0, world, tell, [])


def _reads(toolbox: Toolbox, turn: CallTool) -> bool:
    return toolbox.access(turn.call.name) is Access.READ_ONLY


def _no_time(turn: CallTool) -> ToolOutcome:
    text = f"{turn.call.name} was not called: the calls before it took all the time of this iteration."
    return ToolOutcome(text, is_error=True)


async def _call(turn: CallTool, key: str, toolbox: Toolbox, seconds: float, world: RunContext) -> ToolOutcome:
    """Makes the call; one that is known to only read is cut when the run is to conclude, by CutToConclude.

    Any other is waited for: it may have changed something, and its outcome must be known.
    """
    cut, limit = Cut(), asyncio.timeout(None)
    at_once = world.control.when_concluding(lambda: cut.after(0.0)) if _reads(toolbox, turn) else nullcontext()
    try:
        async with cut:
            with at_once:
                async with asyncio.timeout(seconds) as limit:
                    outcome = await toolbox.call(turn.call.name, turn.sendable, timeout=seconds, idempotency_key=key)
    except TimeoutError:
        if cut.expired():
            raise CutToConclude from None
        if not limit.expired():
            raise
        return ToolOutcome(f"{turn.call.name} did not answer within {round(seconds, 2):g} s.", is_error=True)
    return ToolOutcome(clean(outcome.content), outcome.is_error)


async def _record(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    outcome: ToolOutcome,
    elapsed: int,
    toolbox: Toolbox,
    world: RunContext,
    tell: Tell,
    metadata: Mapping[str, Any] | None = None,
    *,
    interrupted: bool = False,
) -> None:
    """Closes a call with the whole answer told, but that of a long error, which is cut."""
    status = EventStatus.INTERRUPTED if interrupted else EventStatus.COMPLETED
    event = _event(conversation, turn, call, outcome.content, status, toolbox, metadata, is_error=outcome.is_error)
    setting = too_long(conversation.agent, toolbox.split(turn.call.name)[0], outcome.content)
    told = outcome
    if setting is not None and outcome.is_error:
        told = replace(outcome, content=LongResult(turn, call, outcome.content, setting).shortened("it is an error"))
    await _close(conversation, turn, call, outcome, told, elapsed, world, tell, [event], interrupted=interrupted)


async def _close(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    outcome: ToolOutcome,
    told: ToolOutcome,
    elapsed: int,
    world: RunContext,
    tell: Tell,
    events: Sequence[Event],
    *,
    interrupted: bool = False,
) -> None:
    """Boundary (d): what the tool answered, and what the model is told of it."""
    message, seq = tell(turn, _ref(conversation, turn), told), turn.message_seq + 1 + turn.index
    async with conversation.writing:
        loop = conversation.loop.model_copy(update={"tool_calls": conversation.loop.tool_calls + 1})
        await world.recorder.tool_call_finished(
            ToolCallResult(
                id=call,
                execution=conversation.execution,
                message_seq=seq,
                message=message,
                result=outcome.content,
                is_error=outcome.is_error,
                duration_ms=elapsed,
                loop=loop,
                interrupted=interrupted,
            ),
            events,
        )
        conversation.put(seq, message)
        conversation.loop = loop


def _ref(conversation: Conversation, turn: CallTool) -> str:
    return call_ref(idempotency_key(conversation.execution, turn.message_seq, turn.index))


def _event(
    conversation: Conversation,
    turn: CallTool,
    call: UUID,
    content: str,
    status: EventStatus,
    toolbox: Toolbox,
    metadata: Mapping[str, Any] | None = None,
    *,
    is_error: bool = False,
) -> Event:
    server, tool = toolbox.split(turn.call.name)
    return Event(
        id=event_id(call, "call"),
        type=EventType.LLM_TOOL_CALL,
        status=status,
        content=truncate_for_timeline(content),
        metadata={
            "server": server,
            "tool": tool,
            "name": turn.call.name,
            "arguments": turn.call.arguments,
            "call_id": _ref(conversation, turn),
            "place": [turn.message_seq, turn.index],
            "is_error": is_error,
            **({"written_as": "text"} if is_written(turn.call.id) else {}),
            **(metadata or {}),
        },
        stage=conversation.stage,
        execution=conversation.execution,
        tool_call=call,
    )
